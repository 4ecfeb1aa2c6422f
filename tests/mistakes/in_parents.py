"""Mistakes in the parents of tree-shaped graphs."""

from mistakes.data import FEATURES, IDS, LABELS, LISTED, ROWS, TABLE, X, Y, trees
from mistakes.mistake import mistake

PARENTS = [[-1, 0, 0], [1, -1, 1, 2], [-1, 0, 0, 2, 2], [3, 0, 0, -1]]
HEADS = [[parent + 1 for parent in parents] for parents in PARENTS]
FLAT = [parent for parents in PARENTS for parent in parents]
TREES = trees().fit(X, Y, parents=PARENTS)


@mistake(
    "A",
    ValueError,
    "parents has 3 entries but X has 4 sequences; pass a list with one array for each",
)
def parents_of_fewer_sequences():
    trees().fit(X, Y, parents=PARENTS[1:])


@mistake(
    "A",
    ValueError,
    "parents[0] has 2 parents but X[0] has 3 positions; pass one parent for every position",
)
def parents_of_fewer_positions():
    trees().fit(X, Y, parents=[[-1, 0], *PARENTS[1:]])


@mistake(
    "A",
    TypeError,
    "parents[0] is -1; expected an entry for every position (to name a column of X instead, set",
    "the model's parameter parents_column)",
)
def flat_parents_of_a_list():
    trees().fit(X, Y, parents=FLAT[:4])


@mistake(
    "A",
    TypeError,
    "parents is 'head'; expected an entry for every row of X (to name a column of X",
    "instead, set the model's parameter parents_column)",
)
def the_name_of_the_column_as_parents():
    trees().fit(FEATURES, LABELS, groups=IDS, parents="head")


@mistake(
    "A",
    ValueError,
    "parents[0] at position 0 is 0, the position itself; expected another one, or -1 for a root.",
    "If these are heads of CoNLL-U, counted from 1 with 0 for a root, set parents_format='conllu'",
)
def heads_of_conllu_as_parents():
    trees().fit(X[:3], Y[:3], parents=[[0, 1, 1], [2, 0, 2, 3], [0, 1, 1, 3, 3]])


@mistake(
    "A",
    ValueError,
    "parents[0] at position 0 is -1, but its sequence has 3 positions; expected 1 to 3, counted",
    "within the sequence, or 0 for a root. If parents are counted from 0, with -1 for a root, add",
    "1 to each, or in Python set parents_format='zero_based'",
)
def parents_as_heads_of_conllu():
    trees(parents_format="conllu").fit(X, Y, parents=PARENTS)


@mistake(
    "A",
    ValueError,
    "parents at row 4, position 1 of group 'w1', is 5, but its sequence has 4 positions; expected",
    "0 to 3, counted within the sequence, or -1 for a root",
)
def rows_of_a_table_as_parents():
    trees().fit(ROWS, LABELS, groups=IDS, parents=[*FLAT[:4], 5, *FLAT[5:]])


@mistake(
    "A",
    ValueError,
    "parents[1] at position 0 is part of a cycle: 0 -> 1 -> 2 -> 0, positions counted from 0;",
    "every path of parents must end at a root",
)
def parents_in_a_circle():
    trees().fit(X, Y, parents=[PARENTS[0], [1, 2, 0, -1], *PARENTS[2:]])


@mistake(
    "A",
    ValueError,
    "parents[0] at position 1 is 'the'; expected the index of the parent in its sequence, a whole",
    "number, or -1 for a root",
)
def words_as_parents():
    trees().fit(X, Y, parents=[[-1, "the", 0], *PARENTS[1:]])


@mistake(
    "A",
    ValueError,
    "parents_column is 'head', but X has the columns 'walk', 'speed', 'noise'; pass X with the",
    "column of parents to fit and to predict, or pass the argument parents",
)
def a_column_of_parents_that_is_not_there():
    trees(parents_column="head", group_column="walk").fit(TABLE, LABELS)


@mistake(
    "A",
    ValueError,
    "TreeCRF was fitted with parents, but X comes without parents; pass parents=..., or X with the",
    "column that parents_column names. For a chain the parents are -1, 0, 1, ..., or",
    "0, 1, 2, ... with parents_format='conllu'",
)
def no_parents_to_predict():
    TREES.predict(X)


@mistake(
    "A",
    ValueError,
    "X comes with parents, but LinearCRF was fitted without, on chains; leave them out, or fit",
    "with parents",
)
def parents_for_a_model_of_chains():
    LISTED.predict(X, parents=PARENTS)


@mistake(
    "A",
    ValueError,
    "in eval_set: X comes without parents, but fit was given parents; pass a dict, {'X': X, 'y':",
    "y, 'parents': parents}",
)
def an_eval_set_without_parents():
    trees().fit(X, Y, parents=PARENTS, eval_set=(X, Y))


@mistake(
    "A",
    ValueError,
    "ancestors is 1, but X comes without parents; pass parents=... to fit, or name the column of X",
    "that holds them: parents_column=...",
)
def ancestors_without_parents():
    trees(ancestors=1).fit(X, Y)


@mistake("A", ValueError, "parents_format is 'heads'; expected 'zero_based' or 'conllu'...")
def an_unknown_format_of_parents():
    trees(parents_format="heads").fit(X, Y, parents=HEADS)
