"""Items: dicts and attribute strings. These tests need the compiled core."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from hedgerow import _core
from hedgerow.encode import check_schema, encode, renumber_items, seen_items

DICTS = [[{"word": "the", "upper": True}, {"word": "cat"}], [{"word": "the"}]]
STRINGS = [[["word:the", "upper"], ["word:cat"]], [["word:the"]]]


@pytest.mark.parametrize(
    "X",
    [
        DICTS,
        STRINGS,
        tuple(map(tuple, DICTS)),
        [[tuple(attributes) for attributes in sequence] for sequence in STRINGS],
        iter(DICTS),
        [iter(sequence) for sequence in DICTS],
        [np.array(sequence, object) for sequence in DICTS],
    ],
)
def test_all_forms_of_items_are_equal_inside(X):
    index = _core.StringIndex()
    sequences = encode(X, index=index)
    assert sequences.offsets.tolist() == [0, 2, 3]
    assert (sequences.offsets.dtype, sequences.sparse.indptr.dtype) == (np.int64, np.int64)
    assert sequences.sparse.indices.dtype == np.int32
    assert sequences.sparse.indptr.tolist() == [0, 2, 3, 4]
    assert sequences.sparse.indices.tolist() == [0, 1, 2, 0]
    assert sequences.sparse.n_columns == len(index) == 3
    assert sequences.schema.kind == "items"
    assert sequences.dense is None
    assert not sequences.flat


def test_sets_and_positions_without_attributes():
    sequences = encode([[[], {"a"}], [frozenset(), []]], index=_core.StringIndex())
    assert sequences.sparse.indptr.tolist() == [0, 0, 1, 1, 1]


def test_unknown_attributes_are_dropped_when_the_index_stands_still():
    index = _core.StringIndex()
    fitted = encode(DICTS, index=index)
    new = encode([[{"word": "dog", "upper": True}]], index=index, grow=False)
    assert new.sparse.indices.tolist() == [1]
    assert new.sparse.n_columns == 3
    check_schema(fitted.schema, new.schema)


def test_numbers_are_values():
    sequences = encode([[{"speed": 2.5}, {"speed": 1}]], index=_core.StringIndex())
    assert sequences.sparse.values.tolist() == [2.5, 1.0]


def test_empty_sequence():
    with pytest.raises(ValueError, match=r"X\[1\] is empty; a sequence needs at least one"):
        encode([[{"a": 1}], []], index=_core.StringIndex())


def test_items_by_another_index():
    index, other = _core.StringIndex(), _core.StringIndex()
    sequences = encode([[{"a": 1.0, "b": 2.0}], [{"c": 3.0}, {"b": 4.0, "d": 5.0}]], None, index)
    encode([[{"d": 1.0}, {"b": 1.0}]], None, other)
    found = renumber_items(sequences, index, other).sparse
    assert (found.indptr.tolist(), found.n_columns) == ([0, 1, 1, 3], 2)
    assert (found.indices.tolist(), found.values.tolist()) == ([1, 1, 0], [2.0, 4.0, 5.0])


def test_attributes_that_are_seen_in_their_order():
    index = _core.StringIndex()
    sequences = encode([[{"a": 1, "b": 1, "c": 1}], [{"c": 1}, {"a": 1}]], None, index)
    last = sequences.part(1, 2)
    assert seen_items(last, index).names() == ["a", "c"]


def test_a_number_that_changes_its_dict_leaves_the_names_before_it():
    class Clearing:
        def __float__(self):
            item.clear()
            return 2.0

    item = {f"{name} before it": 1 for name in "ab"}
    item["last"] = Clearing()
    index = _core.StringIndex()
    sequences = encode([[item]], index=index)
    assert index.names() == ["a before it", "b before it", "last"]
    assert sequences.sparse.values.tolist() == [1, 1, 2]


def test_code_that_changes_earlier_positions_leaves_their_names():
    class Clearing:
        def __float__(self):
            first.clear()
            return 2.0

    class ClearingSet(set):
        def __iter__(self):
            second.clear()
            return (f"{name} of the set" for name in "dc")

    first, second = [f"{name} before it" for name in "ab"], [f"{name} after it" for name in "ab"]
    X = [[first, [], {"number": Clearing()}, second, ClearingSet()], [["last of all"]]]
    index = _core.StringIndex()
    sequences = encode(X, index=index)
    names = [index.names()[number] for number in sequences.sparse.indices]
    assert names == [
        *("a before it", "b before it", "number", "a after it", "b after it"),
        *("c of the set", "d of the set", "last of all"),
    ]
    assert sequences.sparse.indptr.tolist() == [0, 2, 2, 3, 5, 7, 8]
    assert sequences.sparse.values.tolist() == [1, 1, 2, 1, 1, 1, 1, 1]


def test_names_are_read_alike_however_many_there_are():
    X = [[[f"{t % 7} {i}" for i in range(t % 40)] for t in range(200)] for _ in range(3)]
    index = _core.StringIndex()
    sequences = encode(X, index=index)
    rows = np.split(sequences.sparse.indices, sequences.sparse.indptr[1:-1])
    found = [[index.names()[number] for number in row] for row in rows]
    assert found == [names for sequence in X for names in sequence]


def test_numbers_of_a_dict_are_read_alike():
    numbers = [1, 1.0, True, np.float32(1), np.float64(1), np.int64(1), np.bool_(True)]
    numbers += [np.array(1.0), Decimal(1), Fraction(1)]
    index = _core.StringIndex()
    sequences = encode([[{"a": number, "b:c": 2} for number in numbers]], index=index)
    assert sequences.sparse.values.tolist() == [1, 2] * 10
    with pytest.raises(ValueError, match=r"X\[0\]\[0\] has a value of type int for 'a'; expected"):
        encode([[{"a": 10**400}]], index=index)
