"""Mistakes in facts and queries about them."""

from hedgerow.relational import At, Atoms, RelationalFeatures
from mistakes.data import trees
from mistakes.mistake import mistake

SESSIONS = Atoms(
    [[[("cd", "a")], [("ls", "a")]], [[("ls", "b")], [("ls", "c")]]],
    background=[("ending", "a", "tex")],
)


@mistake(
    "A",
    TypeError,
    "X[0] is an AtomSequence, which holds facts, but the model was not fitted on facts; turn them",
    "into attributes with the RelationalFeatures that the model was trained with, or fit the model",
    "on Atoms",
)
def facts_for_a_model_of_attributes():
    trees().fit([[["a"], ["b"]]], [["x", "y"]]).predict(SESSIONS)


@mistake(
    "A",
    TypeError,
    "queries is of type list; expected a hedgerow.relational.RelationalFeatures, which defines",
    "queries about facts",
)
def modes_for_queries():
    trees(queries=["ls(+t,-file)"]).fit(SESSIONS, [["x", "y"], ["x", "y"]])


@mistake(
    "A",
    ValueError,
    "transitions is 'trees', which cannot be combined with trees that extend queries, because",
    "these add columns during training; set max_literals=1 to turn this off, or leave",
    "transitions out",
)
def trees_of_labels_that_refine_queries():
    queries = RelationalFeatures(["ls(+t,-file)", "ls(+t,+file)"], window=1)
    trees(queries=queries, transitions="trees").fit(SESSIONS, [["x", "y"], ["x", "y"]])


@mistake(
    "A",
    ValueError,
    "mode 'lss(+t,-file)': no fact of X has the predicate 'lss'; did you mean ls?",
)
def an_unknown_predicate():
    RelationalFeatures(["lss(+t,-file)"]).fit(SESSIONS)


@mistake(
    "A",
    ValueError,
    "mode 'ls(-file)' has 1 argument, but facts of ls have 2, the position itself first: ls(t,c),",
    "t being a position and c a constant",
)
def a_mode_without_the_position():
    RelationalFeatures(["ls(-file)"]).fit(SESSIONS)


@mistake(
    "A",
    ValueError,
    "mode 'ending(+name,#e)' can never be used: no usable mode introduces a variable of",
    "type 'name'; give another mode an argument -name, or correct the type",
)
def a_mode_that_never_binds():
    RelationalFeatures(["ls(+t,-file)", "ending(+name,#e)"]).fit(SESSIONS)


@mistake(
    "A",
    ValueError,
    "('ls', 'a', 'b') at X[0][1] is of the form ls(t,c,c), but ('ls', 'a') at X[0][0] of the form",
    "ls(t,c), t being a position and c a constant; all facts of a predicate must have the same",
    "number and kinds of arguments (a fact at a position has that position as its first argument):",
    "rename one predicate",
)
def facts_of_different_lengths():
    Atoms([[[("ls", "a")], [("ls", "a", "b")]]])


@mistake(
    "A",
    ValueError,
    "('head', At(position=2)) at X[0][0] names position 2, but the sequence has 2 positions;",
    "expected At(0) to At(1)",
)
def positions_that_count_from_one():
    Atoms([[[("head", At(2))], []]])


@mistake(
    "A",
    ValueError,
    "at least 5 queries hold at 1 position or more (5 with 1 literal; the last 3 of the form",
    "'ls=...'), but max_queries is 4; raise min_count, lower depth or window, leave out modes, or",
    "raise max_queries",
)
def too_many_queries():
    RelationalFeatures(["ls(+t,-f)", "cd(+t,#f)", "ls(+t,#f)"], max_queries=4).fit(SESSIONS)


@mistake(
    "A",
    ValueError,
    "X has no facts of 'ending', which fit had in the background; pass the same background:",
    "Atoms(X, background=...)",
)
def prediction_without_the_background():
    features = RelationalFeatures(["ls(+t,-f)", "ending(+f,#e)"]).fit(SESSIONS)
    features.transform([[[("ls", "a")]]])
