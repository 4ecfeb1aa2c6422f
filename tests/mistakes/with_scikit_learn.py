"""Mistakes with scikit-learn."""

from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from hedgerow import DataWarning
from hedgerow.model_selection import SequenceKFold, StratifiedSequenceKFold, train_test_split
from hedgerow.scorers import make_position_scorer
from mistakes.data import FEATURES, LABELS, LISTED, ROWS, TABLE, X, Y, trees, weights
from mistakes.mistake import TORN_APART, UNKNOWN_LABEL, mistake

SHUFFLED = KFold(2, shuffle=True, random_state=0)


@mistake("A", DataWarning, TORN_APART.format("X"))
def folds_that_tear_sequences_apart():
    cross_val_score(trees(group_column="walk"), TABLE, LABELS, cv=SHUFFLED)


@mistake("A", DataWarning, TORN_APART.format("X"))
def a_search_that_tears_sequences_apart():
    scorer = make_position_scorer(accuracy_score)
    search = GridSearchCV(
        trees(group_column="walk"), {"max_depth": [1]}, cv=SHUFFLED, scoring=scorer
    )
    search.fit(TABLE, LABELS)


@mistake("A", DataWarning, UNKNOWN_LABEL.format("y"))
def a_label_of_one_fold():
    cross_val_score(weights(), X, [["swim", "run", "run"], *Y[1:]], cv=2)


@mistake(
    "A",
    ValueError,
    "X is one flat table without ids of sequences; pass groups=..., or",
    "name the column of X that holds the ids: group_column=..., for the estimator and also",
    "for SequenceKFold if you pass that as cv",
)
def folds_of_a_table_without_groups():
    cross_val_score(trees(), FEATURES, LABELS, cv=SequenceKFold(2))


@mistake(
    "A",
    ValueError,
    "n_splits is 5, but X has 4 sequences; every fold needs at least one: lower n_splits",
)
def more_folds_than_sequences():
    cross_val_score(trees(), X, Y, cv=SequenceKFold(5))


@mistake(
    "A",
    ValueError,
    "random_state is 0, but nothing is drawn at random; pass shuffle=True too, or leave",
    "random_state out",
)
def a_seed_without_shuffling():
    SequenceKFold(5, random_state=0)


@mistake("A", ValueError, "y is None, but StratifiedSequenceKFold needs the labels; pass y")
def strata_without_labels():
    list(StratifiedSequenceKFold(2).split(X))


@mistake(
    "A",
    ValueError,
    "X is one flat table without ids of sequences; pass groups=..., or",
    "name the column of X that holds the ids: group_column=...",
)
def a_split_of_a_table_without_groups():
    train_test_split(ROWS, LABELS)


@mistake(
    "A",
    ValueError,
    "argument 2 of train_test_split has 3 entries, but X has 4 sequences; pass one entry for each",
)
def a_split_with_labels_for_fewer_sequences():
    train_test_split(X, Y[1:])


@mistake("A", ValueError, "TreeCRF has no parameter 'n_trees'; did you mean n_rounds?")
def a_search_over_a_parameter_that_does_not_exist():
    GridSearchCV(trees(), {"n_trees": [1]}, cv=2).fit(X, Y)


@mistake(
    "A",
    TypeError,
    "score_func is 0.5; expected a metric such as sklearn.metrics.f1_score, or the name of a",
    "scorer such as 'f1_macro'",
)
def a_scorer_of_nothing():
    make_position_scorer(0.5)


@mistake(
    "A",
    ValueError,
    "y_true has 3 sequences but 4 were predicted; pass one list of labels for every sequence",
)
def a_scorer_with_labels_for_fewer_sequences():
    make_position_scorer(accuracy_score)(LISTED, X, Y[1:])


@mistake("A", DataWarning, UNKNOWN_LABEL.format("y").replace(", first at y[0][0]", ""))
def a_scorer_with_a_label_of_its_own():
    make_position_scorer(accuracy_score)(LISTED, X, [["swim", "run", "run"], *Y[1:]])
