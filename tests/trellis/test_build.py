"""The same scores and sums, whether over a table of pairs or over an automaton."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.labels import Constraints, Grammar, Patterns
from hedgerow.trellis import (
    AutomatonChain,
    Chain,
    NoPathError,
    Scores,
    build_trellis,
    forward_backward,
    viterbi,
)


@st.composite
def constraints_of(draw, n_labels):
    """Some that allow label 0 all the way, or none."""
    if draw(st.booleans()):
        return None
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    allowed = rng.random((n_labels, n_labels)) < draw(st.sampled_from([0.5, 0.8, 0.95]))
    start, end = rng.random((2, n_labels)) < 0.7
    allowed[0, 0] = start[0] = end[0] = True
    return Constraints(allowed, start, end)


def with_a_longer_pattern(grammar):
    """The same grammar, over an automaton because of a pattern of three labels."""
    patterns = Patterns.of([*grammar.patterns, (0, 1, 0)])
    return replace(grammar, patterns=patterns)


def random_potentials(grammar, weights, rng, lengths=(5, 1, 0, 30, 12), edges=None):
    offsets = np.cumsum([0, *lengths])
    nodes = 2 * rng.normal(size=(offsets[-1], grammar.n_labels))
    trellis = build_trellis(grammar)
    trellis.restrict(nodes, offsets)
    return Scores(nodes, trellis.arc_scores(weights), offsets, trellis, edges)


def path_score(dense, codes):
    """Score of codes under first-order potentials."""
    total = dense.nodes[np.arange(len(codes)), codes].sum()
    for begin, end in pairwise(dense.offsets):
        before, after = codes[begin : end - 1], codes[begin + 1 : end]
        total += dense.arcs[before, after].sum()
        if dense.edges is not None:
            total += dense.edges[np.arange(begin + 1, end), before, after].sum()
    return total


def check_forms_agree(dense, dense_weights, sparse, sparse_weights, edges=None):
    """The same likelihoods, whichever form the kernels get."""
    by_table = random_potentials(dense, dense_weights, np.random.default_rng(1), edges=edges)
    by_automaton = random_potentials(sparse, sparse_weights, np.random.default_rng(1), edges=edges)
    assert isinstance(by_table.trellis, Chain)
    assert isinstance(by_automaton.trellis, AutomatonChain)
    labels = np.zeros(by_table.n_positions)
    kind = "sum" if edges is None else "each"
    one = forward_backward(by_table, labels=labels, pairs=kind)
    two = forward_backward(by_automaton, labels=labels, pairs=kind)
    exact = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(two.log_z, one.log_z, **exact)
    np.testing.assert_allclose(two.log_likelihoods, one.log_likelihoods, **exact)
    np.testing.assert_allclose(two.marginals, one.marginals, **exact)
    n_patterns = len(dense.patterns)
    sums = by_table.trellis.pattern_sums(one.arc_sums)
    found = by_automaton.trellis.pattern_sums(two.arc_sums)[:n_patterns]
    np.testing.assert_allclose(found, sums, **exact)
    if edges is not None:
        np.testing.assert_allclose(two.pairs, one.pairs, **exact)
    best, again = viterbi(by_table), viterbi(by_automaton)
    assert path_score(by_table, again) == pytest.approx(path_score(by_table, best), rel=1e-12)
    return by_table, by_automaton


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data(), st.integers(2, 6), st.booleans())
def test_pairs_over_an_automaton_equal_the_first_order_kernel(data, n_labels, has_edges):
    constraints = data.draw(constraints_of(n_labels))
    rng = np.random.default_rng(n_labels)
    patterns, edges = Patterns.pairs(n_labels), None
    if has_edges:  # not every pair needs a weight then
        patterns = patterns.select(rng.random(n_labels**2) < 0.5)
        edges = rng.normal(size=(48, n_labels, n_labels))
    dense = Grammar(n_labels, patterns, constraints, has_edges)
    weights = 2 * rng.normal(size=len(patterns))
    check_forms_agree(dense, weights, with_a_longer_pattern(dense), np.append(weights, 0.0), edges)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_few_pairs_of_many_labels(seed, constrained):
    rng = np.random.default_rng(seed)
    n_labels = 12
    codes = rng.choice(n_labels**2, 5, replace=False)
    patterns = Patterns.of(zip(*(part.tolist() for part in np.divmod(codes, 12)), strict=True))
    constraints = None
    if constrained:
        allowed = np.ones((n_labels, n_labels), np.bool_)
        allowed.ravel()[rng.choice(n_labels**2, 5)] = False
        constraints = Constraints(allowed, rng.random(n_labels) < 0.9, rng.random(n_labels) < 0.9)
    sparse = Grammar(n_labels, patterns, constraints)
    dense = replace(sparse, has_edges=True)  # edges need the table of pairs
    weights = rng.normal(size=5)
    by_table, by_automaton = check_forms_agree(dense, weights, sparse, weights)
    # The arc taken from j to k has the score of the pair, for all pairs.
    pairs = np.array(list(Patterns.pairs(n_labels)), dtype=np.int32)
    taken = by_automaton.trellis.arcs_taken(pairs.ravel(), np.arange(0, pairs.size + 1, 2))
    scores = by_automaton.arcs[taken[1::2]].reshape(n_labels, n_labels)
    np.testing.assert_array_equal(scores, by_table.arcs)


def test_pattern_sums_of_observed_arcs_are_counts():
    rng = np.random.default_rng(4)
    codes, offsets = rng.integers(0, 3, 40).astype(np.int32), np.array([0, 25, 25, 40])
    patterns = Patterns.of([(0, 1), (2, 0, 1), (1, 1), (0, 2, 0, 1)])
    trellis = build_trellis(Grammar(3, patterns))
    taken = trellis.arcs_taken(codes, offsets)
    counts = np.bincount(taken, minlength=trellis.arc_shape[0]).astype(float)
    expected = [
        sum(
            tuple(codes[t - len(z) + 1 : t + 1]) == z
            for begin, end in pairwise(offsets)
            for t in range(begin + len(z) - 1, end)
        )
        for z in patterns
    ]
    assert trellis.pattern_sums(counts).tolist() == expected


def test_what_is_forbidden_stays_forbidden_whatever_its_weight():
    allowed = np.array([[True, False], [True, True]])
    constraints = Constraints(allowed, np.array([True, False]), np.array([False, True]))
    dense = Grammar(2, Patterns.pairs(2), constraints)
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    assert build_trellis(dense).arc_scores(weights).tolist() == [[1.0, -np.inf], [3.0, 4.0]]
    longer = with_a_longer_pattern(dense)
    # Over the strings 0, 1, 00, 01, 10, 11, 010.
    found = build_trellis(longer).arc_scores(np.append(weights, 5.0)).tolist()
    assert found == [0.0, 0.0, 1.0, -np.inf, 3.0, 4.0, 8.0]
    # A sequence must begin with 0 and end with 1, which never comes after 0.
    for grammar, given_weights in ((dense, weights), (longer, np.append(weights, 0.0))):
        nodes = np.zeros((3, 2))
        trellis = build_trellis(grammar)
        trellis.restrict(nodes, np.array([0, 3]))
        assert nodes.tolist() == [[0.0, -np.inf], [0.0, 0.0], [-np.inf, 0.0]]
        arcs = trellis.arc_scores(given_weights)
        with pytest.raises(NoPathError, match="sequence 0 has no labelling"):
            forward_backward(Scores(nodes, arcs, np.array([0, 3]), trellis))


def test_nothing_is_restricted_without_constraints():
    nodes = np.zeros((2, 2))
    build_trellis(Grammar(2, Patterns.pairs(2))).restrict(nodes, np.array([0, 2]))
    assert not nodes.any()


def test_pairs_of_edges_have_arcs_but_no_weights():
    dense = Grammar(3, Patterns.of([(0, 1), (2, 2)]), has_edges=True)
    sums = np.random.default_rng(5).random((3, 3))
    assert build_trellis(dense).pattern_sums(sums).tolist() == [sums[0, 1], sums[2, 2]]
    longer = build_trellis(with_a_longer_pattern(dense))
    assert longer.arc_shape == (3 + 9 + 1,)
    assert longer.pattern_sums(np.arange(13.0)).shape == (3,)


@pytest.mark.parametrize("used", [False, True])
def test_a_trellis_can_be_pickled(used):
    constraints = Constraints(np.tri(3, dtype=np.bool_), *np.ones((2, 3), np.bool_))
    weights = np.array([1.0, 2.0])
    trellis = build_trellis(Grammar(3, Patterns.of([(0, 1), (1, 0, 2)]), constraints))
    if used:
        assert trellis.automaton.program is not None
    again = pickle.loads(pickle.dumps(trellis))
    np.testing.assert_array_equal(again.arc_scores(weights), trellis.arc_scores(weights))
