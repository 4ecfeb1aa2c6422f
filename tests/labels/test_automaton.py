"""The label automaton against its definition, string by string."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.labels import Patterns
from hedgerow.labels.automaton import Automaton, pair_automaton
from reference.automata import NaiveAutomaton


@st.composite
def patterns_of_labels(draw, longest=6):
    """Number of labels, and patterns of one or more of them, or none; doubles are welcome."""
    n_labels = draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(1, longest), max_size=12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return n_labels, [tuple(rng.integers(n_labels, size=length).tolist()) for length in lengths]


def check_tables(automaton, naive):
    arcs, states = naive.arcs, naive.states
    longest = max(map(len, arcs))
    tables = {
        "arc_offsets": [sum(len(a) <= n for a in arcs) for n in range(longest + 1)],
        "sources": [states[a[:-1]] for a in arcs],
        "labels": [a[-1] for a in arcs],
        "targets": [states[naive.longest_state(a)] for a in arcs],
        "links": [arcs.get(naive.longest_arc(a[1:]), -1) for a in arcs],
        "failures": [states[naive.longest_state(q[1:])] if q else -1 for q in states],
        "last_labels": [q[-1] if q else -1 for q in states],
        "pattern_arcs": [arcs[z] for z in naive.patterns],
    }
    assert (automaton.n_states, automaton.n_arcs) == (len(states), len(arcs))
    for name, expected in tables.items():
        found = getattr(automaton, name)
        assert found.dtype == (np.int64 if name == "arc_offsets" else np.int32)
        assert found.tolist() == expected, name


@settings(max_examples=80, deadline=None, derandomize=True)
@given(patterns_of_labels(), st.integers(0, 2**32 - 1))
def test_an_automaton_is_what_its_definition_says(given_patterns, seed):
    n_labels, patterns = given_patterns
    automaton, naive = Automaton.build(n_labels, patterns), NaiveAutomaton(n_labels, patterns)
    rng = np.random.default_rng(seed)
    check_tables(automaton, naive)
    assert automaton.program.n_terms >= n_labels
    # Numbers whose sums are exact.
    weights = rng.integers(-64, 65, len(patterns)) / 8
    weights[rng.random(len(patterns)) < 0.1] = -np.inf
    assert automaton.arc_scores(weights).tolist() == naive.arc_scores(weights)
    check_pattern_sums(automaton, list(naive.arcs), patterns, rng)
    check_arcs_taken(automaton, naive, n_labels, rng)


def check_pattern_sums(automaton, arcs, patterns, rng):
    """They are over the arcs that end in a pattern."""
    sums = rng.random((2, 3, len(arcs)))
    kept = sums.copy()
    found = automaton.pattern_sums(sums)
    assert found.shape == (2, 3, len(patterns))
    for p, pattern in enumerate(patterns):
        ending = [a[-len(pattern) :] == pattern for a in arcs]
        np.testing.assert_allclose(found[..., p], sums[..., ending].sum(axis=-1), rtol=1e-13)
    np.testing.assert_array_equal(automaton.pattern_sums(sums[1, 2]), found[1, 2])
    np.testing.assert_array_equal(sums, kept)


def check_arcs_taken(automaton, naive, n_labels, rng):
    """They are the longest suffixes."""
    sequences = [rng.integers(-1, n_labels, length).tolist() for length in (0, 8, 1, 5)]
    expected = []
    for codes in sequences:
        so_far = ()
        for code in codes:
            so_far = (*so_far, code) if code >= 0 else ()
            expected.append(naive.arcs.get(naive.longest_arc(so_far), -1))
    offsets = np.cumsum([0, *map(len, sequences)])
    codes = np.array([code for codes in sequences for code in codes], dtype=np.int32)
    assert automaton.arcs_taken(codes, offsets).tolist() == expected


def test_an_automaton_worked_by_hand():
    # Labels 0 and 1; the patterns 01 and 101, of the weights 2 and 0.5, and 1, of the weight 4.
    automaton = Automaton.build(2, [(0, 1), (1, 0, 1), (1,)])
    # Arcs:                                        0   1   01  10  101
    assert automaton.arc_offsets.tolist() == [0, 2, 4, 5]
    assert automaton.labels.tolist() == [0, 1, 1, 0, 1]
    # States: 0 the empty string, 1 "0", 2 "1", 3 "10".
    assert automaton.failures.tolist() == [-1, 0, 0, 1]
    assert automaton.last_labels.tolist() == [-1, 0, 1, 0]
    assert automaton.sources.tolist() == [0, 0, 1, 2, 3]
    assert automaton.targets.tolist() == [1, 2, 2, 3, 2]  # after 01, and after 101, the state is 1
    assert automaton.links.tolist() == [-1, -1, 1, 0, 2]
    assert automaton.pattern_arcs.tolist() == [2, 4, 1]
    assert automaton.arc_scores([2.0, 0.5, 4.0]).tolist() == [0.0, 4.0, 6.0, 0.0, 6.5]
    sums = automaton.pattern_sums(np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    assert sums.tolist() == [20.0, 16.0, 22.0]
    # 1 0 1 takes 1, 10, 101; then 1 is after the state 1 again, and 0 0 begins anew after -1.
    codes, offsets = np.array([1, 0, 1, 1, -1, 0, 0], np.int32), np.array([0, 7])
    assert automaton.arcs_taken(codes, offsets).tolist() == [1, 3, 4, 1, -1, 0, 0]


def test_the_automaton_of_all_pairs():
    automaton = pair_automaton(3)
    assert pair_automaton(3) is automaton
    check_tables(automaton, NaiveAutomaton(3, list(Patterns.pairs(3))))
    assert automaton.pattern_arcs.tolist() == list(range(3, 12))


def test_long_patterns():
    rng = np.random.default_rng(0)
    patterns = [(0,) * 150, (0, 1) * 80, tuple(rng.integers(0, 2, 200).tolist())]
    automaton = Automaton.build(2, patterns)
    check_tables(automaton, NaiveAutomaton(2, patterns))
    codes = np.concatenate([np.array(patterns[2]), np.zeros(200)]).astype(np.int32)
    taken = automaton.arcs_taken(codes, np.array([0, 400]))
    assert taken[199] == automaton.pattern_arcs[2]
    assert taken[399] == automaton.pattern_arcs[0]


def test_thousands_of_patterns():
    rng = np.random.default_rng(1)
    n_labels = 40
    patterns = [tuple(rng.integers(0, n_labels, n).tolist()) for n in rng.integers(2, 6, 10_000)]
    automaton = Automaton.build(n_labels, patterns)
    check_tables(automaton, NaiveAutomaton(n_labels, patterns))
    assert automaton.program.n_terms >= automaton.n_arcs
    codes = rng.integers(0, n_labels, 1000).astype(np.int32)
    taken = automaton.arcs_taken(codes, np.array([0, 1000]))
    np.testing.assert_array_equal(automaton.labels[taken], codes)


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("again", [lambda a: pickle.loads(pickle.dumps(a)), copy.deepcopy])
def test_an_automaton_can_be_pickled_and_copied(again, used):
    automaton = Automaton.build(3, [(0, 1), (1, 0, 2)])
    if used:
        assert automaton.program is automaton.program
    check_tables(again(automaton), NaiveAutomaton(3, [(0, 1), (1, 0, 2)]))
    assert again(automaton).program.n_terms == automaton.program.n_terms


# The tables of test_an_automaton_worked_by_hand, with a number that is wrong.
@pytest.mark.parametrize(
    ("table", "place", "value", "message"),
    [
        ("failures", 0, 0, "state 0 must not have a failure state"),
        ("failures", 1, 1, "a failure state must come before its state"),
        ("failures", 2, -1, "a failure state must come before its state"),
        ("last_labels", 1, 1, "states must be in this order: the empty string"),
        ("last_labels", 3, 1, "longer strings, which must end in the string"),
        ("sources", 4, 4, "an arc leads out of range"),
        ("targets", 4, 4, "an arc leads out of range"),
        ("targets", 4, 0, "an arc leads out of range"),
        ("targets", 4, 1, "or to a state of another label"),
        ("labels", 4, 2, "an arc leads out of range"),
        ("sources", 3, 0, "arcs must be sorted by source and label"),
        ("links", 0, 0, "state 0 must have an arc for every label"),
        ("links", 4, 4, "every other arc must link to an arc before it"),
        ("links", 4, 0, "every other arc must link to an arc before it"),
        ("failures", None, None, "last_labels must have an entry for each state"),
        ("links", None, None, "labels, targets and links must have an entry for each arc"),
    ],
)
def test_tables_that_do_not_hang_together_are_errors(table, place, value, message):
    automaton = Automaton.build(2, [(0, 1), (1, 0, 1)])
    numbers = getattr(automaton, table).copy()
    if place is None:
        numbers = numbers[:-1]
    else:
        numbers[place] = value
    with pytest.raises(ValueError, match=message):
        replace(automaton, **{table: numbers}).program  # noqa: B018
    with pytest.raises(ValueError, match="a state and an arc for every label"):
        replace(Automaton.build(2, []), n_labels=3).program  # noqa: B018


def test_arcs_taken_checks_what_it_gets():
    automaton = Automaton.build(2, [(0, 1)])
    codes = np.array([0, 2], dtype=np.int32)
    with pytest.raises(ValueError, match="a label code lies outside -1"):
        automaton.arcs_taken(codes, np.array([0, 2]))
    with pytest.raises(ValueError, match="offsets must run from 0 to the number of positions"):
        automaton.arcs_taken(codes[:1], np.array([0, 2]))


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_long_chains_of_failures_do_not_make_the_program_long(n):
    # 0, 00, 000, ... each fails to the one before; arcs for the other labels leave only the last.
    automaton = Automaton.build(50, [(0,) * n + (k,) for k in range(1, 50)])
    assert automaton.program.n_terms <= 4 * automaton.n_arcs
