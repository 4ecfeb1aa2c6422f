"""Mistakes in X and y."""

import numpy as np
import pandas as pd
import polars as pl
from sklearn.exceptions import DataConversionWarning

from hedgerow import DataWarning
from mistakes.data import FEATURES, IDS, LABELS, LISTED, ROWS, TABLE, X, Y, trees, weights
from mistakes.mistake import mistake


@mistake(
    "A", ValueError, "y has 3 sequences but X has 4; pass one list of labels for every sequence"
)
def labels_for_fewer_sequences():
    trees().fit(X, Y[1:])


@mistake(
    "A", ValueError, "y[0] has 2 labels but X[0] has 3 positions; pass one label for every position"
)
def a_label_too_few():
    trees().fit(X, [Y[0][1:], *Y[1:]])


@mistake(
    "A",
    ValueError,
    "y is flat (y[0] is 'run'), but X is not; X is a list of sequences, so y must be a list with",
    "one list of labels for every sequence",
)
def flat_labels_for_a_list():
    trees().fit(X, LABELS)


@mistake("A", ValueError, "y has 15 labels but X has 16 rows; pass one label for every row")
def too_few_labels_for_a_table():
    trees().fit(ROWS, LABELS[1:])


@mistake("B", ValueError, "this method requires y to be passed, but the target y is None")
def no_labels():
    trees().fit(X, None)


@mistake(
    "A",
    DataWarning,
    "y has a single label, 'walk': there is nothing to learn, and this label will be predicted",
    "everywhere; check that y contains the labels of all sequences",
)
def a_single_label():
    trees().fit(X, [["walk"] * len(y) for y in Y])


@mistake(
    "A",
    TypeError,
    "y is of type str; X is a list of sequences, so y must be a list with one list of labels for",
    "every sequence",
)
def labels_as_one_string():
    trees().fit(X, "walk")


@mistake(
    "A",
    ValueError,
    "Unknown label type: y[0] is the float ...; labels are strings or integers: convert with",
    ".astype(int) or .astype(str)",
)
def numbers_to_predict():
    trees().fit(ROWS, ROWS[:, 0])


@mistake(
    "A",
    ValueError,
    "y has no label at any of its 16 positions: all are missing (nan); training needs at least",
    "one label",
)
def no_label_at_all():
    trees().fit(ROWS, np.full(len(ROWS), np.nan))


@mistake(
    "A",
    ValueError,
    "y mixes kinds of labels: y[0][0] is 1 and y[1][0] is 'run'; make all of them strings, or all",
    "integers",
)
def labels_of_two_kinds():
    trees().fit(X, [[1] * 3, *Y[1:]])


@mistake("A", TypeError, "y is a DataFrame; pass the one column that holds the labels")
def a_table_of_labels():
    trees().fit(ROWS, pd.DataFrame({"label": LABELS, "weight": 1}))


@mistake(
    "A",
    DataWarning,
    "y has the index of X in another order: row 0 has the index 15 in y, but 0 in X. Rows are",
    "matched by position, not by index; pass y.loc[X.index], or y.to_numpy() if the order is right",
    "as it is",
)
def labels_that_were_sorted_apart():
    trees().fit(FEATURES, pd.Series(LABELS).sort_index(ascending=False), groups=IDS)


@mistake(
    "A",
    ValueError,
    "X is 1-D with shape (16,); expected 2-D, (positions, features). Reshape your data:",
    "x.reshape(-1, 1) for one feature per position, x.reshape(1, -1) for one position",
)
def one_dimension():
    trees().fit(ROWS[:, 0], LABELS)


@mistake(
    "A",
    ValueError,
    "X[0] is 1-D with shape (3,); expected 2-D, (positions, features). Reshape your data:",
    "x.reshape(-1, 1) for one feature per position, x.reshape(1, -1) for one position",
)
def sequences_of_one_dimension():
    trees().fit([x[:, 0] for x in X], Y)


@mistake(
    "A",
    ValueError,
    "X has 'fast' at position 0, column 0; expected a number, not text; for words and",
    "categories pass a list of lists of dicts, or DataFrames with text columns",
)
def text_in_an_array():
    trees().fit(np.array([["fast", "1"]] * 16), LABELS)


@mistake(
    "A",
    ValueError,
    "X[0] has inf at position 0, column 0; TreeCRF needs finite numbers, or NaN for missing ones:",
    "clip or drop it",
)
def infinite_numbers():
    trees().fit([np.full((3, 2), np.inf), *X[1:]], Y)


@mistake(
    "A",
    ValueError,
    "X[0] has NaN at position 0, column 0; LinearCRF needs finite numbers: impute or drop it",
)
def missing_numbers_in_a_linear_model():
    weights().fit([np.full((3, 2), np.nan), *X[1:]], Y)


@mistake("A", ValueError, "X is empty; expected at least one sequence")
def nothing_to_learn_from():
    trees().fit([], [])


@mistake("A", ValueError, "X[4] is empty; a sequence needs at least one position: drop it")
def an_empty_sequence():
    trees().fit([*X, np.empty((0, 2))], [*Y, []])


@mistake(
    "A",
    ValueError,
    "X[0] is ragged: position 1 has 1 column but position 0 has 2; every position needs the same",
    "columns",
)
def rows_of_different_lengths():
    trees().fit([[[1.0, 2.0], [3.0]]], [["run", "walk"]])


@mistake(
    "A", ValueError, "X[1] has 3 columns but X[0] has 2; every sequence needs the same columns"
)
def sequences_of_different_width():
    trees().fit([X[0], np.ones((4, 3)), *X[2:]], Y)


@mistake(
    "A",
    TypeError,
    "X[0] is a list of strings such as 'the'; expected a list of dicts or of lists of attribute",
    "strings. For words write [[word] for word in sequence]; if X is one sequence of attribute",
    "lists, wrap it in a list: [X]",
)
def words_that_are_not_wrapped():
    weights().fit([["the", "man"], ["a", "dog"]], [["D", "N"], ["D", "N"]])


@mistake(
    "A",
    TypeError,
    "X is a flat list: X[0] is a dict, one position; expected a list of sequences. Wrap a single",
    "sequence in a list: [X]",
)
def one_sequence_of_dicts():
    weights().fit([{"word": "the"}, {"word": "man"}], ["D", "N"])


@mistake(
    "A",
    TypeError,
    "X mixes forms: X[0] is an array of numbers and X[1] is a DataFrame; give all sequences in",
    "one form",
)
def arrays_and_frames():
    trees().fit([X[0], *(pd.DataFrame(x) for x in X[1:])], Y)


@mistake(
    "A",
    TypeError,
    "X is of type dict; expected a list of 2-D arrays, of DataFrames, of sparse matrices, or of",
    "lists of dicts or attribute strings; or one 2-D array, DataFrame or sparse matrix",
)
def a_dict_of_columns():
    trees().fit({"speed": ROWS[:, 0]}, LABELS)


@mistake(
    "A",
    TypeError,
    "column 'at' of X has dtype ...; expected numbers, bools, strings or categories: convert it",
    "first",
)
def dates_as_features():
    trees().fit(FEATURES.assign(at=pd.Timestamp("2024-05-01")), LABELS, groups=IDS)


@mistake(
    "A",
    ValueError,
    "Complex data not supported: X has dtype complex128; pass real and imaginary parts as two",
    "columns",
)
def complex_numbers():
    trees().fit(ROWS * 1j, LABELS)


@mistake(
    "A",
    TypeError,
    "X is a lazy frame; convert it to a frame in memory first, in polars by .collect(), in Dask by",
    ".compute()",
)
def a_lazy_frame():
    trees().fit(pl.LazyFrame({"speed": ROWS[:, 0]}), LABELS)


@mistake(
    "A",
    ValueError,
    "X is a DataFrame with a column name used twice; rename one. Expected unique column names,",
    "got: - 'speed' 2 times",
)
def two_columns_of_one_name():
    trees().fit(pd.DataFrame(ROWS, columns=["speed", "speed"]), LABELS)


@mistake(
    "A",
    ValueError,
    "X[1] has different columns from X[0]: column 'noise' of X[0] is missing in X[1]; every",
    "sequence needs the same columns in the same order",
)
def columns_that_differ_between_sequences():
    first, second = (pd.DataFrame(x, columns=["speed", "noise"]) for x in X[:2])
    trees().fit([first, second.rename(columns={"noise": "nose"})], Y[:2])


@mistake(
    "A",
    TypeError,
    "column 'all' of X holds values that are not hashable (unhashable type: 'list'); expected",
    "numbers, bools, strings or categories: convert it first",
)
def a_column_of_lists():
    trees().fit(FEATURES.assign(all=[[1]] * 16), LABELS, groups=IDS)


@mistake(
    "A",
    DataWarning,
    "X is one flat table without groups, so all of its 16 rows are one sequence, but column",
    "'walk' looks like an id of sequences; pass groups=X['walk'] to fit, or",
    "TreeCRF(group_column='walk'). If X is one sequence, pass [X] and [y]",
)
def a_table_of_many_sequences_without_groups():
    trees().fit(TABLE, LABELS)


@mistake(
    "A",
    DataWarning,
    "X is one flat table without groups, so all of its 100,001 rows are one sequence; pass",
    "groups=..., an id for every row, to fit, or TreeCRF(group_column=...). If X is one",
    "sequence, pass [X] and [y]",
)
def very_many_rows_without_groups():
    trees(n_rounds=1).fit(np.zeros((100_001, 1), np.uint8), np.arange(100_001) % 2)


@mistake(
    "A",
    DataWarning,
    "all values of column 'noise' look like numbers, such as '...', but are stored as text,",
    "so they are treated as categories; convert the column to numbers, with an empty cell or NaN",
    "for a missing value, for example by pandas.to_numeric(X['noise'], errors='coerce'). If they",
    "are codes, convert it to a categorical dtype (in a CSV file, put a letter before each code)",
)
def numbers_stored_as_text():
    trees().fit(FEATURES.assign(noise=FEATURES["noise"].map(str)), LABELS, groups=IDS)


@mistake(
    "A",
    DataWarning,
    "all values of column 'noise' except 'n/a' look like numbers, such as '...', but are stored",
    "as text, so they are treated as categories; convert the column to numbers, with an empty cell",
    "or NaN for a missing value, for example by pandas.to_numeric(X['noise'], errors='coerce'). If",
    "they are codes, convert it to a categorical dtype (in a CSV file, put a letter before each",
    "code)",
)
def numbers_with_a_word_for_missing_ones():
    noise = ["n/a", *FEATURES["noise"].map(str)[1:]]
    trees().fit(FEATURES.assign(noise=noise), LABELS, groups=IDS)


@mistake(
    "A",
    DataConversionWarning,
    "A column-vector y was passed when a 1d array was expected. Please change the shape of y,",
    "(16, 1), to (16,): y.ravel()",
)
def a_column_vector_of_labels():
    trees().fit(ROWS, LABELS[:, None])


@mistake(
    "A",
    ValueError,
    "sample_weight has shape (2,) but X has 4 sequences; pass one weight for each sequence",
)
def weights_for_fewer_sequences():
    trees().fit(X, Y, sample_weight=[1, 2])


@mistake(
    "A",
    ValueError,
    "sample_weight[3] is -1.0; weights must be finite and not negative, and at most 1e+12",
)
def negative_weights():
    trees().fit(X, Y, sample_weight=[1, 1, 1, -1])


@mistake(
    "A",
    ValueError,
    "sample_weight is not an array of numbers: setting an array element with a sequence...; pass",
    "one weight for each sequence",
)
def weights_of_positions_in_lists():
    trees().fit(X, Y, sample_weight=[np.ones(len(y)) for y in Y])


@mistake(
    "A",
    ValueError,
    "y[0][1] is 'walk' after 'run', which the parameter 'forbidden' forbids; correct the labels or",
    "relax the constraints",
)
def labels_that_break_a_rule():
    trees(forbidden=[("run", "walk")]).fit([np.ones((2, 2))], [["run", "walk"]])


@mistake(
    "A",
    ValueError,
    "constraints='BIO' does not fit the labels 'run', 'walk'; expected 'O', or one of B, I,",
    "alone or with a hyphen and a type, as in 'B-NP'",
)
def labels_that_are_no_chunks():
    weights(constraints="BIO").fit(X, Y)


@mistake("B", ValueError, "unknown label 0 at y[0][0]; known labels: 'run', 'walk'")
def labels_of_another_kind_to_score():
    LISTED.score(X, [[0] * len(y) for y in Y])
