"""Parents of positions, as passed by users."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hedgerow import _core
from hedgerow.encode import GivenParents, encode
from hedgerow.encode.cut_frame import CutFrame
from hedgerow.encode.numbered_names import NumberedNames

# A tree of two levels, a chain, two roots of which one is alone, one position.
PARENTS = [[2, 0, -1, 2], [-1, 0, 1], [-1, 2, -1], [-1]]
EXPECTED = np.concatenate(PARENTS)
HEADS = [[p + 1 for p in parents] for parents in PARENTS]
LENGTHS = list(map(len, PARENTS))
X = [np.arange(2.0 * length).reshape(-1, 2) + 10 * s for s, length in enumerate(LENGTHS)]
ROWS = np.concatenate(X)
IDS = np.repeat(np.arange(4), LENGTHS)
OFFSETS = [0, *np.cumsum(LENGTHS).tolist()]


def read(X, parents=None, groups=None, **more):
    return encode(X, groups, _core.StringIndex(), parents=GivenParents(parents, **more))


@pytest.mark.parametrize(
    "parents",
    [
        PARENTS,
        [np.array(each) for each in PARENTS],
        [np.array(each, np.int8) for each in PARENTS],
        [np.array(each, np.float64) for each in PARENTS],
        [[None if p == -1 else p for p in each] for each in PARENTS],
        [[np.nan if p == -1 else p for p in each] for each in PARENTS],
        [[str(p) for p in each] for each in PARENTS],
        [pd.Series(each) for each in PARENTS],
        [pl.Series([None if p == -1 else p for p in each], dtype=pl.Int64) for each in PARENTS],
        [pd.array([None if p == -1 else p for p in each], dtype="Int64") for each in PARENTS],
        [np.ma.masked_equal(each, -1) for each in PARENTS],
        (iter(each) for each in PARENTS),
        np.array([np.array(each) for each in PARENTS], dtype=object),
    ],
)
def test_parents_of_a_list_of_sequences(parents):
    found = read(X, parents)
    np.testing.assert_array_equal(found.parents, EXPECTED)
    assert found.parents.dtype == np.int32
    assert found.schema.has_parents


@pytest.mark.parametrize(
    "parents",
    [EXPECTED, EXPECTED.tolist(), pd.Series(EXPECTED), pl.Series(EXPECTED), EXPECTED.astype(float)],
)
def test_parents_of_a_flat_block(parents):
    np.testing.assert_array_equal(read(ROWS, parents, IDS).parents, EXPECTED)


def test_heads_of_conllu():
    found = read(X, HEADS, format="conllu")
    np.testing.assert_array_equal(found.parents, EXPECTED)
    none = [[None if head == 0 else head for head in heads] for heads in HEADS]
    np.testing.assert_array_equal(read(X, none, format="conllu").parents, EXPECTED)


def test_chains_are_recognised():
    chains = [np.arange(length) - 1 for length in LENGTHS]
    found = read(X, chains)
    assert found.parents is None
    assert found.schema.has_parents
    assert read(X).parents is None
    assert not read(X).schema.has_parents


TABLE = {"a": ROWS[:, 0], "HEAD": np.concatenate(HEADS), "group": IDS, "b": ROWS[:, 1]}
FRAME = pd.DataFrame(TABLE)
CONLLU = {"column": "HEAD", "format": "conllu"}


@pytest.mark.parametrize(
    ("X", "more"),
    [
        (FRAME, CONLLU),
        (pl.DataFrame(TABLE), CONLLU),
        (pa.table(TABLE), CONLLU),
        (FRAME.assign(HEAD=FRAME["HEAD"].astype(str)), CONLLU),
        (FRAME.to_numpy(), {"column": 1, "format": "conllu"}),
        (FRAME.to_numpy().tolist(), {"column": -3, "format": "conllu"}),
        (sparse.csr_array(FRAME.to_numpy()), {"column": 1, "format": "conllu"}),
    ],
)
def test_a_column_of_a_flat_table(X, more):
    group_column = 2 if isinstance(more["column"], int) else "group"
    found = encode(X, group_column=group_column, parents=GivenParents(**more))
    np.testing.assert_array_equal(found.parents, EXPECTED)
    np.testing.assert_array_equal(found.offsets, OFFSETS)
    values = found.dense
    if found.sparse is not None:
        rows = found.sparse
        values = sparse.csr_array((rows.values, rows.indices, rows.indptr)).toarray()
    np.testing.assert_array_equal(values, ROWS)


def test_a_column_of_a_list_of_tables():
    frames = [FRAME[begin:end] for begin, end in pairwise(OFFSETS)]
    found = encode(frames, group_column="group", parents=GivenParents(**CONLLU))
    np.testing.assert_array_equal(found.parents, EXPECTED)
    assert found.schema.names == ("a", "b")
    arrays = [frame.to_numpy() for frame in frames]
    found = encode(arrays, group_column=2, parents=GivenParents(column=1, format="conllu"))
    np.testing.assert_array_equal(found.parents, EXPECTED)
    np.testing.assert_array_equal(found.dense, ROWS)


def test_a_column_of_cut_frames():
    frames = CutFrame(pa.table(TABLE), OFFSETS)
    found = encode(frames, parents=GivenParents(**CONLLU))
    np.testing.assert_array_equal(found.parents, EXPECTED)
    assert found.schema.names == ("a", "group", "b")
    np.testing.assert_array_equal(read(frames, PARENTS).parents, EXPECTED)


def test_a_key_of_dicts():
    dicts = [[{"w": f"w{h}", "HEAD": h} for h in heads] for heads in HEADS]
    plain = [[{"w": f"w{h}"} for h in heads] for heads in HEADS]
    index = _core.StringIndex()
    found = encode(dicts, index=index, parents=GivenParents(**CONLLU))
    np.testing.assert_array_equal(found.parents, EXPECTED)
    assert index.names() == ["w:w3", "w:w1", "w:w0", "w:w2"] or "HEAD" not in str(index.names())
    np.testing.assert_array_equal(read(plain, PARENTS).parents, EXPECTED)
    assert dicts[0][0] == {"w": "w3", "HEAD": 3}


def test_other_forms_with_parents_beside():
    names = NumberedNames([[["a"]] * length for length in LENGTHS])
    np.testing.assert_array_equal(read(names, PARENTS).parents, EXPECTED)
    stack = np.zeros((2, 3, 1))
    np.testing.assert_array_equal(read(stack, [[-1, 0, 0]] * 2).parents, [-1, 0, 0] * 2)
    np.testing.assert_array_equal(read(stack, np.array([[-1, 0, 0]] * 2)).parents, [-1, 0, 0] * 2)
    frame = FRAME.drop(columns="HEAD")
    found = encode(frame, group_column="group", parents=GivenParents(EXPECTED, "HEAD"))
    np.testing.assert_array_equal(found.parents, EXPECTED)


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([[-1], [0]], "parents has 2 entries but X has 4 sequences; pass a list with one array"),
        (
            [[2, 0, -1], *PARENTS[1:]],
            r"parents\[0\] has 3 parents but X\[0\] has 4 positions; pass",
        ),
        ([3, 1, 2, 3], r"parents\[0\] is 3; expected an entry for every position \(to name"),
        (7, "parents is 7; expected an entry for every sequence of X"),
        ("HEAD", "parents is 'HEAD'; expected an entry for every sequence of X"),
        (
            [PARENTS[0], [-1, 0, 3], *PARENTS[2:]],
            r"parents\[1\] at position 2 is 3, but its sequence has 3 positions; expected 0 to 2, "
            "counted within the sequence, or -1 for a root$",
        ),
        ([PARENTS[0], [-1, 0, -2], *PARENTS[2:]], r"parents\[1\] at position 2 is -2, but its seq"),
        ([PARENTS[0], [-1, 0.5, 1], *PARENTS[2:]], r"parents\[1\] at position 1 is 0.5; expected"),
        ([PARENTS[0], [-1, "x", 1], *PARENTS[2:]], r"parents\[1\] at position 1 is 'x'; expected "),
        ([PARENTS[0], [-1, True, 1], *PARENTS[2:]], r"parents\[1\] at position 1 is True; expect"),
        ([PARENTS[0], [-1, 2**40, 1], *PARENTS[2:]], r"position 1 is 1099511627776; expected the"),
        ([*PARENTS[:2], np.array([-1, np.inf, 0]), [-1]], r"parents\[2\] at position 1 is inf; ex"),
        ([*PARENTS[:2], [-1, 1, 0], [-1]], r"parents\[2\] at position 1 is 1, the position itself"),
        (
            [*PARENTS[:2], [1, 2, 1], [-1]],
            r"parents\[2\] at position 1 is part of a cycle: 1 -> 2 -> 1, positions counted from 0;"
            " every path of parents must end at a root$",
        ),
        (
            HEADS,
            r"parents\[2\] at position 1 is 3, but .*If these are heads of CoNLL-U, counted from 1 "
            "with 0 for a root, set parents_format='conllu'",
        ),
    ],
)
def test_bad_parents_are_refused(parents, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read(X, parents)


def test_bad_parents_of_other_forms_are_refused():
    with pytest.raises(ValueError, match="parents has 3 entries but X has 11 rows; pass one"):
        read(ROWS, [-1, 0, 1], IDS)
    with pytest.raises(ValueError, match=r"parents has shape \(11, 1\); expected 1-D"):
        read(ROWS, EXPECTED[:, None], IDS)
    wrong = EXPECTED.copy()
    wrong[5] = 4
    message = "parents at row 5, position 1 of sequence 1, is 4, but its sequence has 3 positions"
    with pytest.raises(ValueError, match=message):
        read(ROWS, wrong, IDS)
    with pytest.raises(ValueError, match="parents at row 5, position 1 of group 'b', is 4, but"):
        read(ROWS, wrong, np.array(list("abcd"))[IDS])
    with pytest.raises(ValueError, match="parents at row 1 is 1, the position itself"):
        read(ROWS[:2], [-1, 1])
    message = "parents_column 'HEAD' at row 8, position 1 of group 2, is 3, .*set parents_format"
    with pytest.raises(ValueError, match=message):
        encode(FRAME, group_column="group", parents=GivenParents(column="HEAD"))
    frames = [FRAME[begin:end].drop(columns="group") for begin, end in pairwise(OFFSETS)]
    with pytest.raises(ValueError, match=r"parents_column 'HEAD' of X\[2\] at position 1 is 3"):
        encode(frames, parents=GivenParents(column="HEAD"))
    message = r"is -1, but its .*If parents are counted from 0, with -1 for a root, add 1 to each"
    with pytest.raises(ValueError, match=message):
        read(X, PARENTS, format="conllu")
    with pytest.raises(ValueError, match=re.escape("0 -> 1 -> 2 -> 3 -> 4 -> ..., positions")):
        read(np.zeros((9, 1)), [1, 2, 3, 4, 5, 6, 7, 0, -1])


def test_bad_columns_of_parents_are_refused():
    def refuse(message, X=FRAME, group_column=None, **more):
        with pytest.raises(ValueError, match=message):
            encode(X, None, _core.StringIndex(), True, group_column, GivenParents(**more))

    refuse(
        "parents_column is 'head', but X has the columns 'a', 'HEAD', 'group', 'b'; pass X with "
        "the column of parents to fit and to predict, or pass the argument parents",
        column="head",
    )
    refuse(
        r"parents_column is 'head', but X\[0\] has the columns .*; pass sequences that have this "
        "column too, or pass the argument parents",
        X=[FRAME],
        column="head",
    )
    unset = "set parents_column=None and pass the argument parents"
    refuse(f"this column too, or {unset}", X=[FRAME.to_numpy()], column=9)
    refuse(f"None for a root, or {unset}", X=[[{"w": 1}]], column=9)
    refuse(f"only a dict can have such a key; {unset}", X=[[["w"]]], column=9)
    refuse(
        "parents are given twice: by a column of X, parents_column='HEAD', and by parents; leave",
        values=EXPECTED,
        column="HEAD",
    )
    refuse(
        "group_column='a' and parents_column='a' are the same column of X", FRAME, "a", column="a"
    )
    refuse("X has only the column of parents, parents_column='a'", FRAME[["a"]], column="a")
    dicts = [[{"w": 1, "HEAD": 0}, {"w": 1}]]
    refuse(r"but X\[0\] has no such key at position 1; give every position", dicts, column="HEAD")
    refuse(r"but X\[0\] holds a list at position 0, where only a dict", [[["a"]]], column="HEAD")
    with pytest.raises(ValueError, match=re.escape("parents_column is 1.5; expected the name or")):
        GivenParents(column=1.5).check()
    with pytest.raises(ValueError, match="parents_format is 'one'; expected"):
        GivenParents(format="one").check()


def has_cycle(parents):
    """Follow each position to the root, one step at a time."""
    for t in range(len(parents)):
        at = t
        for _ in parents:
            at = parents[at] if at >= 0 else -1
        if at >= 0:
            return True
    return False


@given(st.lists(st.integers(-1, 7), min_size=8, max_size=8))
def test_cycles_are_found(parents):
    X = np.zeros((8, 1))
    if has_cycle(parents):
        with pytest.raises(ValueError, match=r"the position itself|is part of a cycle") as caught:
            read(X, parents)
        first = int(re.search(r"at row (\d)", str(caught.value)).group(1))
        at = parents[first]
        while at != first:
            at = parents[at]  # which ends, as the first one named is on a cycle
    else:
        found = read(X, parents).parents
        np.testing.assert_array_equal(np.arange(8) - 1 if found is None else found, parents)


def test_parents_go_with_their_sequences():
    sequences = read(X, PARENTS)
    np.testing.assert_array_equal(sequences.part(1, 3).parents, [-1, 0, 1, -1, 2, -1])
    positions, offsets = np.array([7, 8, 9, 0, 1, 2, 3]), np.array([0, 3, 7])
    np.testing.assert_array_equal(
        sequences.select(positions, offsets).parents, [-1, 2, -1, 2, 0, -1, 2]
    )
    # A part of a sequence: places are counted from its first position.
    lone = read(np.zeros((5, 1)), [-1, 0, -1, 4, -1])
    np.testing.assert_array_equal(
        lone.select(np.arange(2, 5), np.array([0, 3])).parents, [-1, 2, -1]
    )
