"""Attributes of items are numbered by what the sequences hold, and not by their order."""

import numpy as np
import pytest

from hedgerow import _core
from hedgerow.encode import number_by_count
from hedgerow.encode.items import read_items

SEQUENCES = [
    [["b", "once a"], ["a", "b"], ["z"]],
    [["a", "once c", "once b"], ["b"], ["once d"]],
    [["b"], ["once e"], ["a"]],
]


def names_of(sequences):
    index = _core.StringIndex()
    items = read_items(sequences, index, grow=True)
    numbered, renamed = number_by_count(items, index)
    old, new = items.sparse.indices, numbered.sparse.indices
    assert [renamed.names()[i] for i in new] == [index.names()[i] for i in old]
    return renamed.names()


def test_the_most_frequent_attributes_come_first_and_then_those_of_a_sequence():
    names = names_of(SEQUENCES)
    assert names[:2] == ["b", "a"]
    assert sorted(names[2:]) == ["once a", "once b", "once c", "once d", "once e", "z"]
    # By position, and within one by name.
    assert names.index("once a") + 1 == names.index("z")
    first = names.index("once b")
    assert names[first : first + 3] == ["once b", "once c", "once d"]


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (2, 0, 1, 1)])
def test_numbers_do_not_depend_on_the_order_of_sequences_and_attributes(order):
    given = [SEQUENCES[i] for i in order]
    reordered = [[names[::-1] for names in sequence] for sequence in reversed(given)]
    assert names_of(reordered) == names_of(given)


def test_an_attribute_that_does_not_occur_comes_last():
    index = _core.StringIndex()
    index.add("nowhere")
    items = read_items(SEQUENCES, index, grow=True)
    assert number_by_count(items, index)[1].names()[-1] == "nowhere"


def test_each_name_needs_a_count_and_a_place():
    index = _core.StringIndex()
    index.add("a")
    one, none = np.zeros(1, np.int64), np.zeros(0, np.int64)
    with pytest.raises(ValueError, match="counts must have an entry for each name"):
        index.numbers_by_count(none, one.astype(np.uint64))
    with pytest.raises(ValueError, match="places must have an entry for each name"):
        index.numbers_by_count(one, none.astype(np.uint64))
    codes = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="an attribute is out of range"):
        _core.find_places(np.array([0, 1]), np.array([0, 1]), codes + 1, index)
    with pytest.raises(ValueError, match="offsets must run from 0 to the number of positions"):
        _core.find_places(np.array([0, 2]), np.array([0, 1]), codes, index)
