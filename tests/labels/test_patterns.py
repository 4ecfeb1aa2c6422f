"""Label patterns: those that occur, those that a user lists."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.labels import Labels, Patterns, rare_shares

LETTERS = Labels(np.array(["A", "B", "C"]))
NUMBERS = Labels(np.array([1, 2, 3]))


def concatenate(sequences):
    codes = np.array([code for sequence in sequences for code in sequence], dtype=np.int32)
    return codes, np.cumsum([0, *map(len, sequences)])


def seen_by_counting(sequences, order, min_count):
    """Runs of 2 to order + 1 known labels that occur often enough, the shorter ones first."""
    counts = Counter(
        tuple(sequence[begin : begin + length])
        for sequence in sequences
        for length in range(2, order + 2)
        for begin in range(len(sequence) - length + 1)
    )
    found = [run for run, count in counts.items() if -1 not in run and count >= min_count]
    return sorted(found, key=lambda run: (len(run), run))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    st.integers(1, 3).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.lists(st.integers(-1, n - 1), max_size=12)))
    ),
    st.integers(0, 5),
    st.integers(1, 4),
)
def test_seen_patterns_are_those_that_a_count_finds(labelled, order, min_count):
    n_labels, sequences = labelled
    codes, offsets = concatenate(sequences)
    found = Patterns.seen(codes, offsets, order, n_labels=n_labels, min_count=min_count)
    assert list(found) == seen_by_counting(sequences, order, min_count)
    assert (found.offsets.dtype, found.labels.dtype) == (np.int64, np.int32)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.lists(st.integers(-1, 2), max_size=8), st.sampled_from([0, 0.5, 1, 2]))),
    st.integers(2, 4),
)
def test_rare_shares_are_those_that_a_count_finds(weighted, longest):
    sequences = [sequence for sequence, _ in weighted]
    codes, offsets = concatenate(sequences)
    weights = np.repeat([weight for _, weight in weighted], np.diff(offsets)).astype(float)
    counts = Counter()
    for sequence, weight in weighted:
        for length in range(2, longest + 1):
            for begin in range(len(sequence) - length + 1):
                counts[tuple(sequence[begin : begin + length])] += weight
    known = {run: count for run, count in counts.items() if -1 not in run and count > 0}
    expected = []
    for length in range(2, longest + 1):
        found = [count <= 1 for run, count in known.items() if len(run) == length]
        expected.append(sum(found) / len(found) if found else 0.0)
    assert rare_shares(codes, offsets, weights, longest, n_labels=3) == pytest.approx(expected)
    if set(weights.tolist()) == {1.0}:
        assert rare_shares(codes, offsets, None, longest, n_labels=3) == pytest.approx(expected)


def test_seen_patterns_stop_at_borders_and_unknown_labels():
    # 0 1 | 1 0 ? 0 1: no pattern 1 1 across the border, none across the unknown label.
    codes, offsets = concatenate([[0, 1], [], [1, 0, -1, 0, 1]])
    assert list(Patterns.seen(codes, offsets, 3, n_labels=2)) == [(0, 1), (1, 0)]
    assert list(Patterns.seen(codes, offsets, 3, n_labels=2, min_count=2)) == [(0, 1)]
    assert list(Patterns.seen(codes, offsets, 3, n_labels=2, min_count=3)) == []


def test_order_0_has_no_patterns():
    codes, offsets = concatenate([[0, 1, 0]])
    patterns = Patterns.seen(codes, offsets, 0, n_labels=2)
    assert len(patterns) == 0
    assert patterns.longest == 1


def test_patterns_as_arrays_and_back():
    strings = [(2, 0, 1), (0,), (1, 1), (2, 0, 1)]
    patterns = Patterns.of(strings)
    assert patterns.offsets.tolist() == [0, 3, 4, 6, 9]
    assert patterns.labels.tolist() == [2, 0, 1, 0, 1, 1, 2, 0, 1]
    assert list(patterns) == strings
    assert (len(patterns), patterns.longest) == (4, 3)
    rows = [np.array([[0, 1], [1, 0]], np.int32), np.array([[1, 1, 1]], np.int32)]
    assert list(Patterns.from_rows(rows)) == [(0, 1), (1, 0), (1, 1, 1)]
    for none in (Patterns.of([]), Patterns.from_rows([])):
        assert list(none) == []
        assert none.offsets.tolist() == [0]
        assert none.longest == 1


def test_all_pairs():
    assert list(Patterns.pairs(2)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert list(Patterns.pairs(1)) == [(0, 0)]


def test_select_keeps_some():
    patterns = Patterns.of([(0, 1), (1, 1, 0), (2, 2), (0, 0, 0, 0)])
    assert list(patterns.select(np.array([True, False, False, True]))) == [(0, 1), (0, 0, 0, 0)]
    assert list(patterns.select(np.zeros(4, np.bool_))) == []
    assert list(patterns.select(np.ones(4, np.bool_))) == list(patterns)


def test_map_labels_changes_the_codes():
    mapped = Patterns.of([(0, 1), (2, 1, 0)]).map_labels(np.array([5, 3, 4]))
    assert list(mapped) == [(5, 3), (4, 3, 5)]
    assert mapped.labels.dtype == np.int32


def test_read_takes_names():
    given = [("B", "A"), ["A", "B", "C"], ("C",), np.array(["B", "A"]), ("A", "A")]
    # A single label and a double are left out; the others keep their order.
    assert list(Patterns.read(given, LETTERS)) == [(1, 0), (0, 1, 2), (0, 0)]
    assert list(Patterns.read(iter(given), LETTERS)) == [(1, 0), (0, 1, 2), (0, 0)]
    assert list(Patterns.read([(3, 1), (np.int64(2), 2)], NUMBERS)) == [(2, 0), (1, 1)]
    assert list(Patterns.read([], LETTERS)) == []


@pytest.mark.parametrize("given", ["AB", 3, None])
def test_read_refuses_what_is_no_list(given):
    message = f"label_patterns is {given!r}; expected a list of tuples of labels, such as"
    with pytest.raises(TypeError, match=re.escape(message)):
        Patterns.read(given, LETTERS)


@pytest.mark.parametrize(
    ("pattern", "error", "message"),
    [
        ("AB", TypeError, "is 'AB'; expected a tuple of labels"),
        (7, TypeError, "is 7; expected a tuple of labels"),
        ((), ValueError, "is empty; a pattern has at least two labels"),
        (("A", "D"), ValueError, "has the unknown label 'D'; known labels: 'A', 'B', 'C'"),
        (("A", None), ValueError, "has the unknown label None; known labels"),
        (("A", 1), ValueError, "has the unknown label 1; known labels"),
    ],
)
def test_read_refuses_a_pattern_and_says_which(pattern, error, message):
    with pytest.raises(error, match=re.escape(f"label_patterns[1] {message}")):
        Patterns.read([("A", "B"), pattern], LETTERS)


@pytest.mark.parametrize("label", [True, 1.0, "1"])
def test_read_does_not_take_another_type_for_a_number(label):
    with pytest.raises(ValueError, match=re.escape(f"has the unknown label {label!r}")):
        Patterns.read([(1, label)], NUMBERS)


def test_weights_are_carried_over_by_pattern():
    old = Patterns.of([(0, 1), (2, 2), (0, 1, 2)])
    new = Patterns.of([(2, 2), (1, 1), (0, 1, 2)])
    assert new.carry_over(old, np.array([1.0, 2.0, 3.0])).tolist() == [2.0, 0.0, 3.0]
    assert Patterns.of([]).carry_over(old, np.ones(3)).shape == (0,)
