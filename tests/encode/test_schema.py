"""Schema: prediction must be given the columns of training."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from hedgerow.encode import check_schema, encode
from hedgerow.sequences import Schema

ITEMS = Schema("items", 0, None, ())
ARRAY = encode(np.ones((1, 2))).schema
FRAME = encode(pd.DataFrame({"a": [1], "b": [2]})).schema
TEXT = encode(pd.DataFrame({"a": [1], "b": ["x"]})).schema
UNNAMED_TEXT = encode(pd.DataFrame({0: [1], 1: ["x"]})).schema


def refuses(message, fitted, new):
    with pytest.raises(ValueError, match=re.escape(message)):
        check_schema(fitted, new, "TreeCRF")


@pytest.mark.parametrize(
    ("fitted", "new"),
    [
        (ITEMS, ITEMS),
        (ARRAY, ARRAY),
        (FRAME, ARRAY),
        (ARRAY, FRAME),
        (TEXT, TEXT),
        (UNNAMED_TEXT, UNNAMED_TEXT),
        (FRAME, encode(pl.DataFrame({"a": [0.5], "b": [True]})).schema),
        (ARRAY, encode(scipy.sparse.csr_array((1, 2))).schema),
    ],
)
def test_what_fits(fitted, new):
    check_schema(fitted, new)


def test_different_numbers_of_features():
    message = "X has 1 features, but TreeCRF is expecting 2 features as input"
    refuses(message, ARRAY, encode(np.ones((1, 1))).schema)
    refuses(message, FRAME, encode(np.ones((1, 1))).schema)


@pytest.mark.parametrize(
    ("columns", "difference"),
    [
        (["b", "a"], "the order differs, column 0 is 'b' but 'a' in the training X"),
        (["a"], "column 'b' of the training X is missing in this X"),
        (["a", "c"], "column 'b' of the training X is missing in this X"),
        (["a", "b", "c"], "column 'c' of this X is not in the training X"),
    ],
)
def test_different_columns(columns, difference):
    new = encode(pd.DataFrame(np.ones((1, len(columns))), columns=columns)).schema
    refuses(
        f"X has different columns from those that TreeCRF was fitted on: {difference}", FRAME, new
    )


def test_dicts_and_columns():
    refuses("X holds dicts or attribute strings, but TreeCRF was fitted on 2 columns", ARRAY, ITEMS)
    message = "X holds 2 columns (arrays, DataFrames or sparse matrices), but TreeCRF was fitted on"
    refuses(message, ITEMS, ARRAY)


def test_columns_that_change_their_kind():
    refuses("column 'b' was text when TreeCRF was fitted and is numeric now", TEXT, FRAME)
    refuses("column 'b' was numeric when TreeCRF was fitted and is text now", FRAME, TEXT)
    refuses("column 'b' was numeric when TreeCRF was fitted and is text now", ARRAY, TEXT)
    message = "column 'b' was text when TreeCRF was fitted and is numeric now; convert it, or pass"
    refuses(message, TEXT, ARRAY)


def test_text_columns_need_names_on_both_sides():
    unlike = "column names, unlike the X that TreeCRF was fitted on, and column"
    rule = "is text, so columns cannot be matched: pass X"
    lacks = f"X lacks {unlike} 'b' {rule} with the same column names, as in fit"
    refuses(lacks, TEXT, UNNAMED_TEXT)
    refuses(f"X has {unlike} 1 {rule} without column names, as in fit", UNNAMED_TEXT, TEXT)
