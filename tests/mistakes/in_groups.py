"""Mistakes in groups, and in evaluation data."""

import numpy as np

from hedgerow import DataWarning
from mistakes.data import BY_COLUMN, FEATURES, FITTED, IDS, LABELS, LISTED, ROWS, TABLE, X, Y, trees
from mistakes.mistake import TORN_APART, UNKNOWN_LABEL, mistake

EVEN = np.arange(len(IDS)) % 2 == 0


@mistake(
    "A",
    DataWarning,
    "sample_weight looks like the ids of groups, such as 0, 0, 1, 1, 1, 2, but X has no groups, so",
    "all of its rows are one sequence; the third argument of fit is sample_weight: pass groups by",
    "name, groups=...",
)
def groups_without_their_name():
    trees().fit(ROWS, LABELS, np.arange(16) // 3)


@mistake("A", ValueError, "groups has 15 ids but X has 16 rows; pass one id for every row")
def groups_for_fewer_rows():
    trees().fit(ROWS, LABELS, groups=IDS[1:])


@mistake(
    "A",
    ValueError,
    "group 'a' occurs again at row 2 after it began at row 0; the rows of a group must be",
    "consecutive: sort X, y and groups by group first (stably, to keep the order within a group)",
)
def groups_that_come_back():
    trees().fit(ROWS, LABELS, groups=["a", "b"] * 8)


@mistake("A", ValueError, "groups has no id (None or NaN) at row 0; every row needs one")
def a_row_without_a_group():
    trees().fit(ROWS, LABELS, groups=[None, *IDS[1:]])


@mistake(
    "A",
    ValueError,
    "groups is for one flat X, but X is a list of sequences, which needs no groups;",
    "leave groups out, or concatenate X",
)
def groups_for_a_list():
    trees().fit(X, Y, groups=IDS)


@mistake(
    "A",
    TypeError,
    "groups is 'walk'; expected one id for every row, such as X['sequence'] (to name a column",
    "of X, set group_column instead)",
)
def the_name_of_the_column_as_groups():
    trees().fit(TABLE, LABELS, groups="walk")


@mistake("A", TypeError, "groups is a DataFrame; pass one column of it")
def a_table_as_groups():
    trees().fit(FEATURES, LABELS, groups=TABLE[["walk"]])


@mistake(
    "A",
    ValueError,
    "group_column is 'walks', but X has the columns 'walk', 'speed', 'noise'; pass X with the",
    "column of group ids to fit and to predict, or pass the argument groups",
)
def a_group_column_that_is_not_there():
    trees(group_column="walks").fit(TABLE, LABELS)


@mistake(
    "A",
    ValueError,
    "group_column is 'walk', but X has no column names; pass the number of the column, or a",
    "DataFrame",
)
def a_group_column_by_name_in_an_array():
    trees(group_column="walk").fit(ROWS, LABELS)


@mistake(
    "A",
    ValueError,
    "X has only the column of group ids, group_column='walk'; at least one feature is needed",
)
def a_table_with_nothing_but_groups():
    trees(group_column="walk").fit(TABLE[["walk"]], LABELS)


@mistake(
    "A",
    DataWarning,
    "X is one flat table without groups, so all of its 16 rows are one sequence, but fit was",
    "given groups, and no sequence had more than 5; pass groups=... here too. If X is one",
    "sequence, pass [X]",
)
def predictions_without_the_groups_of_training():
    FITTED.predict(FEATURES)


@mistake("A", DataWarning, TORN_APART.format("X"))
def a_score_of_groups_that_were_torn_apart():
    crf = trees(group_column="walk").fit(TABLE[EVEN], LABELS[EVEN])
    crf.score(TABLE[~EVEN], LABELS[~EVEN])


@mistake("A", DataWarning, TORN_APART.format("eval_set"))
def an_eval_set_of_groups_that_were_torn_apart():
    rest = (TABLE[~EVEN], LABELS[~EVEN])
    trees(group_column="walk").fit(TABLE[EVEN], LABELS[EVEN], eval_set=rest)


@mistake(
    "A",
    ValueError,
    "in eval_set: X is one flat table of 16 rows without groups, but fit was given groups; pass",
    "(X, y, groups). If X is one sequence, pass ([X], [y])",
)
def an_eval_set_without_groups():
    trees().fit(ROWS, LABELS, groups=IDS, eval_set=(ROWS, LABELS))


@mistake(
    "A",
    ValueError,
    "eval_set is of type tuple of length 1; expected (X, y), or (X, y, groups) for a flat X,",
    "or a dict such as {'X': X, 'y': y, 'base_scores': scores}; a list of such sets, or a dict of",
    "them by name",
)
def an_eval_set_without_labels():
    trees().fit(X, Y, eval_set=(X,))


@mistake(
    "A",
    ValueError,
    "in eval_set: X has different columns from those that TreeCRF was fitted on: column 'noise' of",
    "the training X is missing in this X; pass the columns used in training, and no others",
)
def an_eval_set_with_other_columns():
    trees().fit(FEATURES, LABELS, eval_set=(FEATURES[["speed"]], LABELS))


@mistake("A", DataWarning, UNKNOWN_LABEL.format("eval_set"))
def an_eval_set_with_a_label_of_its_own():
    trees().fit(X, Y, eval_set=(X, [["swim", "run", "run"], *Y[1:]]))


@mistake("A", DataWarning, UNKNOWN_LABEL.format("y"))
def a_score_with_a_label_of_its_own():
    LISTED.score(X, [["swim", "run", "run"], *Y[1:]])


@mistake("A", DataWarning, UNKNOWN_LABEL.format("y"))
def a_likelihood_with_a_label_of_its_own():
    LISTED.log_likelihood(X, [["swim", "run", "run"], *Y[1:]])


@mistake(
    "A",
    ValueError,
    "groups are given twice: by a column of X, group_column='walk', and by groups; leave groups",
    "out, or take the column out of X and set group_column=None",
)
def groups_for_a_model_that_has_its_column():
    BY_COLUMN.predict(TABLE, groups=IDS)
