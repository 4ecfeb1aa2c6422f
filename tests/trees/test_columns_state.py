"""Columns in model files: equal after saving and loading; inconsistent ones are refused."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from hedgerow import ModelFileError, _core
from hedgerow.encode import encode
from hedgerow.sequences import Schema
from hedgerow.state import State
from hedgerow.trees.columns_state import pack_columns, unpack_columns
from reference.columns import learn
from reference.model_files import changed, put

FRAME = pd.DataFrame(
    {
        "n": np.arange(300) % 7 / 4,
        "word": [f"mot été {i}" for i in range(300)],
        "kind": pd.Series(["a", None, "b\udcff"] * 100, dtype=object),
        "flag": [True, False, True] * 100,
    }
)
ITEMS = [[{"mot": "été", "n": 2.5}, {"n": -1.0}], [["mot:été"]]]
SPARSE = scipy.sparse.csr_array([[0.0, 2.0], [1.0, -3.0]])


def state_of(columns):
    state = pack_columns(columns)
    return State(state.tensors, json.loads(json.dumps(state.metadata)))


def unpack(state, columns):
    """Schema and names are kept elsewhere in the file."""
    index = _core.StringIndex() if columns.index is None else columns.index
    return unpack_columns(state, columns.schema, index)


def learned(X):
    return learn(X, index=_core.StringIndex())


@pytest.mark.parametrize("X", [FRAME, [FRAME[:1], FRAME[1:]], ITEMS, SPARSE, np.eye(3), [[[], []]]])
@pytest.mark.parametrize(
    "copy",
    [
        lambda columns: unpack(state_of(columns), columns),
        lambda columns: pickle.loads(pickle.dumps(columns)),
    ],
    ids=["state", "pickle"],
)
def test_round_trip(X, copy):
    columns, sequences = learned(X)
    again = copy(columns)
    assert again.schema == columns.schema
    assert again.categories == columns.categories
    assert again.column_names() == columns.column_names()
    for name in ("cut_offsets", "cuts", "n_bins", "categorical", "default_bins"):
        np.testing.assert_array_equal(getattr(again, name), getattr(columns, name))
    before, after = columns.bin(sequences, 1), again.bin(sequences, 1)
    for name in ("dense", "indptr", "attributes", "attribute_bins"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))


def test_names_and_schema_must_fit():
    index = _core.StringIndex()
    columns, _ = learn(ITEMS, index=index)
    state = state_of(columns)
    refuses(state, columns.schema, _core.StringIndex(), "does not fit the attribute names")
    encode([[["later"]]], index=index)
    refuses(state, columns.schema, index, "cuts.offsets does not fit the attribute names")
    text = Schema("columns", 2, None, (True, False))
    refuses(state, text, index, "its categories do not fit its text columns")
    numbers = Schema("columns", 3, None, (True, True, True))
    refuses(state, numbers, index, "cuts.offsets does not fit the columns")
    of_numbers = state_of(learned(np.eye(2))[0])
    refuses(of_numbers, Schema("items", 0, None, ()), index, "its attributes are not sparse")


def refuses(state, schema, index, message):
    with pytest.raises(ModelFileError, match=re.escape(message)):
        unpack_columns(state, schema, index)


def with_metadata(**changes):
    return lambda tensors, metadata: metadata.update(changes)


def with_tensors(**changes):
    named = {name.replace("_", "."): value for name, value in changes.items()}
    return lambda tensors, metadata: tensors.update(named)


def with_fills(fills):
    def change(tensors, metadata):
        metadata["missing_values"] = "indicator"
        tensors["columns.fills"] = np.array(fills, np.uint8)

    return change


def without(name):
    return lambda tensors, metadata: (tensors.pop(name, None), metadata.pop(name, None))


def with_entry(name, number, value):
    return lambda tensors, metadata: changed(f"cuts.{name}", put(number, value))(tensors)


def without_last_cut(tensors, metadata):
    tensors["cuts.values"] = tensors["cuts.values"][:-1]
    tensors["cuts.offsets"] = np.append(tensors["cuts.offsets"][:-1], len(tensors["cuts.values"]))


MANY = np.arange(255.0)


@pytest.mark.parametrize(
    ("X", "change", "message"),
    [
        (SPARSE, without("cuts.offsets"), "cuts.offsets is missing"),
        (SPARSE, without("cuts.values"), "cuts.values is missing"),
        (SPARSE, with_tensors(cuts_values=np.zeros(3, np.float32)), "cuts.values has the wrong"),
        (SPARSE, with_tensors(cuts_values=np.zeros((3, 1))), "cuts.values has the wrong type"),
        (SPARSE, with_tensors(cuts_offsets=np.zeros(0, np.int64)), "does not begin at 0"),
        (SPARSE, with_entry("offsets", 0, 1), "cuts.offsets does not begin at 0"),
        (SPARSE, with_entry("offsets", -1, 2), "cuts.offsets does not end at the number of cuts"),
        (SPARSE, with_entry("offsets", 1, 9), "cuts.offsets decreases"),
        (SPARSE, with_entry("offsets", 1, -(2**63)), "cuts.offsets decreases"),
        (
            SPARSE,
            with_tensors(cuts_values=MANY, cuts_offsets=np.array([0, 255, 255])),
            "a column has too many cuts",
        ),
        (SPARSE, with_entry("values", 0, np.nan), "cuts.values is not finite"),
        (SPARSE, with_entry("values", 0, np.inf), "cuts.values is not finite"),
        (SPARSE, with_entry("values", 1, 1.0), "cuts.values is not ascending within a column"),
        (SPARSE, with_tensors(cuts_offsets=np.array([0, 1, 2, 3])), "does not fit the columns"),
        (SPARSE, with_tensors(cuts_offsets=np.array([0]), cuts_values=np.empty(0)), "the columns"),
        (SPARSE, without("sparse"), "sparse is not true or false"),
        (SPARSE, with_metadata(sparse=1), "sparse is not true or false"),
        (SPARSE, without("missing_values"), "its method for missing values is not known"),
        (
            SPARSE,
            with_metadata(missing_values="guess"),
            "its method for missing values is not known",
        ),
        (
            SPARSE,
            with_metadata(missing_values=["impute"]),
            "its method for missing values is not known",
        ),
        (SPARSE, with_metadata(missing_values="impute"), "columns.fills is missing"),
        *(
            (SPARSE, with_fills(fills), "columns.fills is not valid")
            for fills in ([1], [1, 1, 1], [0, 1], [1, 9])
        ),
        (SPARSE, without("categories"), "its categories are not valid"),
        (SPARSE, with_metadata(categories={}), "its categories are not valid"),
        (SPARSE, with_metadata(categories=[["a"]]), "its categories do not fit its text columns"),
        (FRAME, with_metadata(sparse=True), "it has both sparse columns and text columns"),
        (FRAME, with_metadata(categories=[["a"]]), "its categories do not fit its text columns"),
        (FRAME, with_metadata(categories=[["a"], ["b"]]), "cuts.offsets does not fit the columns"),
        (FRAME, with_metadata(categories=[["a"], "b"]), "its categories are not valid"),
        (FRAME, with_metadata(categories=[["a"], [1]]), "a category is not text"),
        (FRAME, with_metadata(categories=[["a"], ["b", "a"]]), "its categories are not in order"),
        (FRAME, with_metadata(categories=[["a"], ["b", "b"]]), "its categories are not in order"),
        (FRAME, with_entry("offsets", 3, 8), "a text column has cuts"),
        (FRAME, without_last_cut, "the cuts of a category are not valid"),
        (FRAME, with_entry("values", -1, 0.75), "the cuts of a category are not valid"),
        (ITEMS, with_metadata(sparse=False), "its attributes are not sparse"),
        (ITEMS, with_entry("offsets", 1, 0), "cuts.values is not ascending within a column"),
    ],
)
def test_what_makes_no_sense_is_refused(X, change, message):
    columns, _ = learned(X)
    state = state_of(columns)
    unpack(state, columns)
    change(state.tensors, state.metadata)
    with pytest.raises(ModelFileError, match=re.escape(message)):
        unpack(state, columns)
