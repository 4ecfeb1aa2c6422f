"""Inference over label automata: by enumeration, at extremes, for any batch and any threads."""

import itertools
import os
import signal
import sys
import threading
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtri

from hedgerow import _core
from hedgerow.labels import Constraints, Patterns, pin_known
from hedgerow.labels.automaton import Automaton, pair_automaton
from hedgerow.trellis import (
    NoPathError,
    Potentials,
    forward_backward,
    k_best,
    log_likelihood,
    log_z,
    sample,
    viterbi,
    weighted_forward_backward,
)
from reference.automata import (
    DenseChain,
    PaperInference,
    PatternChain,
    draw_labels,
    enumerate_patterns,
    weighted_log_likelihood,
)

examples = partial(settings, deadline=None, derandomize=True)


@dataclass
class Batch:
    """Sequences that share their patterns, and the automaton that scores them."""

    chains: list
    automaton: Automaton
    potentials: Potentials

    @classmethod
    def of(cls, chains, n_labels):
        """Forbidden pairs become patterns of the score -inf, all else nodes of that score."""
        one = chains[0]
        extra = [(pair, -np.inf) for pair in one.forbidden]
        if one.edges is not None:
            extra += [(pair, 0.0) for pair in Patterns.pairs(n_labels)]
        automaton = Automaton.build(n_labels, [*one.patterns, *(pattern for pattern, _ in extra)])
        arcs = automaton.arc_scores([*one.weights, *(score for _, score in extra)])
        offsets = np.cumsum([0, *(len(chain.nodes) for chain in chains)])
        nodes = np.concatenate([chain.nodes for chain in chains])
        pin_known(nodes, np.concatenate([chain.known for chain in chains]).astype(np.int32))
        flags = [np.isin(np.arange(n_labels), list(group)) for group in (one.start, one.end)]
        Constraints(np.ones((n_labels, n_labels), np.bool_), *flags).restrict(nodes, offsets)
        edges = None
        if one.edges is not None:
            edges = np.concatenate([chain.edges for chain in chains])
        return cls(chains, automaton, Potentials(nodes, arcs, offsets, edges, automaton))

    @property
    def n_patterns(self):
        return len(self.chains[0].patterns)

    def parts(self):
        """Positions of each sequence."""
        return itertools.starmap(slice, itertools.pairwise(self.potentials.offsets))


def free_chain(nodes, patterns, weights):
    """One sequence in which nothing is forbidden."""
    every = frozenset(range(nodes.shape[1]))
    known = (-1,) * len(nodes)
    return PatternChain(nodes, patterns, np.array(weights), start=every, end=every, known=known)


def moderate(rng, *shape):
    return 2 * rng.normal(size=shape)


def extreme(rng, *shape):
    """Huge and tiny numbers, in steps that add up without rounding."""
    huge = rng.choice([1e2, -1e2, 8e2, -8e2, 1e5, -1e5], shape)
    return np.where(rng.random(shape) < 0.3, huge, rng.integers(-320, 321, shape) / 64)


def extreme_or_forbidden(rng, *shape):
    return np.where(rng.random(shape) < 0.2, -np.inf, extreme(rng, *shape))


@st.composite
def batches(draw, scores=moderate, edges=None, constrained=True, longest=6):
    """A few short sequences, with patterns and constraints of all kinds."""
    n_labels = draw(st.integers(1, 3))
    labels = st.integers(0, n_labels - 1)
    patterns = draw(st.lists(st.lists(labels, min_size=1, max_size=4).map(tuple), max_size=6))
    lengths = draw(st.lists(st.integers(0, longest), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = scores(rng, len(patterns))
    has_edges = draw(st.booleans()) if edges is None else edges
    every = frozenset(range(n_labels))
    forbidden, start, end, known = frozenset(), every, every, st.just(-1)
    if constrained and draw(st.booleans()):
        forbidden = draw(st.frozensets(st.tuples(labels, labels), min_size=1, max_size=3))
        start = draw(st.just(every) | st.frozensets(labels, min_size=1))
        end = draw(st.just(every) | st.frozensets(labels, min_size=1))
        known = st.just(-1) | st.just(-1) | labels
    finite = extreme if scores is extreme_or_forbidden else scores
    chains = [
        PatternChain(
            nodes=scores(rng, length, n_labels),
            patterns=patterns,
            weights=weights,
            edges=finite(rng, length, n_labels, n_labels) if has_edges else None,
            forbidden=forbidden,
            start=start,
            end=end,
            known=tuple(draw(st.lists(known, min_size=length, max_size=length))),
        )
        for length in lengths
    ]
    return Batch.of(chains, n_labels)


def random_labels(batch, rng):
    n_labels = batch.automaton.n_labels
    return rng.integers(0, n_labels, batch.potentials.n_positions).astype(np.int32)


def enumerate_or_refuse(batch):
    """The exact answers; None, and errors, where some sequence has no labelling."""
    exact = [enumerate_patterns(chain) for chain in batch.chains]
    if None not in exact:
        return exact
    potentials = batch.potentials
    labels, ones = np.zeros(potentials.n_positions), np.ones(potentials.n_positions)
    for function in (
        forward_backward,
        log_z,
        partial(log_likelihood, labels=labels),
        partial(weighted_forward_backward, labels=labels, weights=ones),
        viterbi,
        partial(k_best, k=2),
        partial(sample, uniforms=0.5 * ones[None]),
    ):
        with pytest.raises(NoPathError, match=r"sequence \d has no labelling with a finite score"):
            function(potentials)
    return None


def check_posteriors(batch, seed=0):
    exact = enumerate_or_refuse(batch)
    if exact is None:
        return
    potentials, automaton = batch.potentials, batch.automaton
    rng = np.random.default_rng(seed)
    labels, weights = random_labels(batch, rng), rng.random(potentials.n_sequences)
    has_edges = potentials.edges is not None
    result = forward_backward(
        potentials,
        labels=labels,
        pairs="each" if has_edges else "sum",
        arc_marginals=True,
        weights=weights,
    )
    close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)
    close_probs = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-300)
    close(result.log_z, [one.log_z for one in exact])
    close(log_z(potentials), result.log_z, rtol=1e-12, atol=1e-12)
    pattern_marginals = automaton.pattern_sums(result.arc_marginals)[:, : batch.n_patterns]
    for s, (chain, one, part) in enumerate(zip(batch.chains, exact, batch.parts(), strict=True)):
        close(result.log_likelihoods[s], one.log_probs[tuple(labels[part].tolist())])
        close_probs(result.marginals[part], one.marginals)
        close_probs(pattern_marginals[part], one.pattern_marginals)
        close_probs(result.arc_marginals[part], arc_marginals(automaton, chain, one))
        if has_edges:
            close_probs(result.pairs[part], one.pairs)
    close(log_likelihood(potentials, labels), result.log_likelihoods, rtol=1e-12, atol=1e-12)
    close_probs(
        automaton.pattern_sums(result.arc_sums)[: batch.n_patterns],
        sum(w * one.pattern_marginals.sum(0) for w, one in zip(weights, exact, strict=True)),
    )


def arc_marginals(automaton, chain, exact):
    """Probability of each arc at each position, (T, A), over all labellings."""
    every = chain.labellings
    offsets = np.arange(len(every) + 1) * every.shape[1]
    taken = automaton.arcs_taken(every.ravel().astype(np.int32), offsets).reshape(every.shape)
    probs = np.exp(list(exact.log_probs.values()))
    found = np.zeros((every.shape[1], automaton.n_arcs))
    for t in range(every.shape[1]):
        np.add.at(found[t], taken[:, t], probs)
    return found


@examples(max_examples=150)
@given(batches())
def test_posteriors_equal_enumeration(batch):
    check_posteriors(batch)


@examples(max_examples=150)
@given(batches(extreme))
def test_posteriors_equal_enumeration_at_extreme_scores(batch):
    check_posteriors(batch)


@examples(max_examples=100)
@given(batches(extreme_or_forbidden))
def test_posteriors_equal_enumeration_with_forbidden_nodes_and_patterns(batch):
    check_posteriors(batch)


@examples(max_examples=60)
@given(batches(constrained=False, longest=5))
def test_pattern_marginals_equal_the_formula_of_the_paper(batch):
    result = forward_backward(batch.potentials, arc_marginals=True)
    patterns = batch.automaton.pattern_sums(result.arc_marginals)
    for s, (chain, part) in enumerate(zip(batch.chains, batch.parts(), strict=True)):
        paper = PaperInference(chain)
        assert np.log(paper.Z) == pytest.approx(result.log_z[s], rel=1e-10, abs=1e-10)
        for t, (labels, found) in enumerate(
            zip(result.marginals[part], patterns[part], strict=True), start=1
        ):
            expected = [paper.marginal(t, (k,)) for k in range(len(labels))]
            np.testing.assert_allclose(labels, expected, rtol=1e-10)
            expected = [paper.marginal(t, z) for z in chain.patterns]
            np.testing.assert_allclose(found[: len(expected)], expected, rtol=1e-10, atol=1e-300)


def check_best(batch, k):
    exact = enumerate_or_refuse(batch)
    if exact is None:
        return
    best = viterbi(batch.potentials)
    codes, counts, log_probs = k_best(batch.potentials, k)
    np.testing.assert_array_equal(codes[0], best)
    for s, (one, part) in enumerate(zip(exact, batch.parts(), strict=True)):
        # Of equally good labellings viterbi finds the first.
        assert tuple(best[part].tolist()) == one.best[0][1]
        assert counts[s] == min(k, len(one.best))
        found = [tuple(row.tolist()) for row in codes[: counts[s], part]]
        assert len(set(found)) == counts[s]
        expected = [score - one.log_z for score, _ in one.best[:k]]
        np.testing.assert_allclose(
            [one.log_probs[labels] for labels in found], expected, rtol=1e-10, atol=1e-10
        )
        np.testing.assert_allclose(log_probs[: counts[s], s], expected, rtol=1e-10, atol=1e-10)
        assert (log_probs[counts[s] :, s] == -np.inf).all()


@examples(max_examples=80)
@given(batches(), st.sampled_from([1, 2, 7, 40]))
def test_the_best_labellings_are_those_of_an_enumeration(batch, k):
    check_best(batch, k)


@examples(max_examples=80)
@given(batches(extreme_or_forbidden), st.sampled_from([1, 5, 40]))
def test_the_best_labellings_at_extreme_scores(batch, k):
    check_best(batch, k)


def test_the_best_labellings_are_in_the_order_of_an_enumeration():
    rng = np.random.default_rng(0)
    patterns = [(0, 1), (2, 0, 1), (1, 1, 1, 2), (2,)]
    chain = free_chain(rng.normal(size=(6, 3)), patterns, rng.normal(size=4))
    exact = enumerate_patterns(chain)
    codes, counts, log_probs = k_best(Batch.of([chain], 3).potentials, 1000)
    assert counts.tolist() == [3**6]
    assert list(map(tuple, codes[: 3**6].tolist())) == [labels for _, labels in exact.best]
    assert np.exp(log_probs).sum() == pytest.approx(1.0, rel=1e-12)


@examples(max_examples=80)
@given(batches(), st.integers(0, 2**32 - 1))
def test_samples_invert_the_cumulated_probabilities(batch, seed):
    if enumerate_or_refuse(batch) is None:
        return
    uniforms = np.random.default_rng(seed).random((3, batch.potentials.n_positions))
    codes = sample(batch.potentials, uniforms)
    for chain, part in zip(batch.chains, batch.parts(), strict=True):
        for labels, numbers in zip(codes[:, part], uniforms[:, part], strict=True):
            assert labels.tolist() == draw_labels(chain, numbers)


@examples(max_examples=80)
@given(batches(extreme_or_forbidden))
def test_samples_are_possible_whatever_the_random_numbers(batch):
    exact = enumerate_or_refuse(batch)
    if exact is None:
        return
    ends = np.array([0.0, 5e-324, 0.5, np.nextafter(1.0, 0.0)])
    uniforms = np.repeat(ends[:, None], batch.potentials.n_positions, axis=1)
    codes = sample(batch.potentials, uniforms)
    for one, part in zip(exact, batch.parts(), strict=True):
        for labels in codes[:, part].tolist():
            # No factor is 0, nor so small that a double cannot hold it.
            assert one.log_probs[tuple(labels)] >= -746.0 * len(labels)


@pytest.mark.parametrize("spread", [1.0, 400.0], ids=["scaled", "log space"])
def test_samples_have_the_right_frequencies(spread):
    rng = np.random.default_rng(1)
    nodes = rng.normal(size=(4, 3))
    nodes[2, 1] += spread
    chain = free_chain(nodes, [(0, 1), (2, 0, 1), (1, 1), (0, 0, 0)], [1.0, 1.0, -spread, 0.5])
    probs = np.exp(list(enumerate_patterns(chain).log_probs.values()))
    n_samples = 20_000
    codes = sample(Batch.of([chain], 3).potentials, rng.random((n_samples, 4)))
    counts = np.bincount(codes @ [27, 9, 3, 1], minlength=81)
    # Those that are rare share a cell, if they are not too rare all together.
    often = n_samples * probs >= 5
    observed = np.append(counts[often], counts[~often].sum())
    expected = n_samples * np.append(probs[often], probs[~often].sum())
    observed, expected = observed[expected >= 1], expected[expected >= 1]
    assert len(expected) >= 8
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert statistic < chdtri(len(expected) - 1, 1e-4)
    assert counts[probs < 1e-15].sum() == 0


def slopes(array, value):
    """Central differences of a value with respect to each entry of an array, in place."""
    found = np.empty_like(array)
    for index in np.ndindex(array.shape):
        kept, ends = array[index], []
        for moved in (kept + 1e-5, kept - 1e-5):
            array[index] = moved
            ends.append(value())
        array[index] = kept
        found[index] = (ends[0] - ends[1]) / 2e-5
    return found


@examples(max_examples=80)
@given(batches(longest=5), st.integers(0, 2**32 - 1))
def test_weighted_likelihood_and_its_gradient(batch, seed):
    exact = enumerate_or_refuse(batch)
    if exact is None:
        return
    rng = np.random.default_rng(seed)
    potentials = batch.potentials
    # Labels that can be observed are those that are possible.
    observed = [one.best[rng.integers(len(one.best))][1] for one in exact]
    labels = np.array([k for some in observed for k in some], dtype=np.int32)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], potentials.n_positions)
    pairs = "sum" if potentials.edges is None else "each"
    result = weighted_forward_backward(potentials, labels, weights, pairs=pairs)
    assert np.isnan(result.log_z).all()
    np.testing.assert_allclose(result.marginals.sum(axis=1), weights, rtol=1e-10, atol=1e-10)

    values = [
        partial(weighted_log_likelihood, chain, labels[part], weights[part])
        for chain, part in zip(batch.chains, batch.parts(), strict=True)
    ]
    expected = [value() for value in values]
    np.testing.assert_allclose(result.log_likelihoods, expected, rtol=1e-10, atol=1e-10)
    # The gradient is observed less expected counts.
    close = partial(np.testing.assert_allclose, rtol=0, atol=1e-6)
    for chain, part, value in zip(batch.chains, batch.parts(), values, strict=True):
        here, counted = labels[part], weights[part]
        seen = np.zeros_like(chain.nodes)
        seen[np.arange(len(here)), here] = counted
        close(slopes(chain.nodes, value), seen - result.marginals[part])
        if chain.edges is not None:
            seen = np.zeros_like(chain.edges)
            seen[np.arange(1, len(here)), here[:-1], here[1:]] = counted[1:]
            close(slopes(chain.edges, value), seen - result.pairs[part])
    seen = np.zeros(batch.automaton.n_arcs)
    np.add.at(seen, batch.automaton.arcs_taken(labels, potentials.offsets), weights)
    counts = batch.automaton.pattern_sums(seen - result.arc_sums)[: batch.n_patterns]
    shared = batch.chains[0].weights  # one array for all chains
    close(slopes(shared, lambda: sum(value() for value in values)), counts)


def over_pairs(potentials):
    """First-order potentials, over the automaton of all pairs."""
    n_labels = potentials.nodes.shape[1]
    arcs = np.concatenate([np.zeros(n_labels), potentials.arcs.ravel()])
    return replace(potentials, arcs=arcs, automaton=pair_automaton(n_labels))


@pytest.mark.parametrize(
    ("n_positions", "scale", "edges"),
    [(100_000, 1.0, False), (10_000, 500.0, False), (10_000, 1.0, True)],
    ids=["scaled", "log space", "edges"],
)
def test_long_first_order_chains_equal_the_first_order_kernel(n_positions, scale, edges):
    rng = np.random.default_rng(2)
    chain = Potentials(
        scale * rng.normal(size=(n_positions, 3)),
        scale * rng.normal(size=(3, 3)),
        np.array([0, n_positions]),
        rng.normal(size=(n_positions, 3, 3)) if edges else None,
    )
    labels, weights = rng.integers(0, 3, n_positions), rng.random(n_positions)
    one = forward_backward(chain, labels=labels)
    two = forward_backward(over_pairs(chain), labels=labels)
    np.testing.assert_allclose(two.log_z, one.log_z, rtol=1e-12)
    np.testing.assert_allclose(two.log_likelihoods, one.log_likelihoods, rtol=1e-10)
    np.testing.assert_allclose(two.marginals, one.marginals, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(two.arc_sums[3:].reshape(3, 3), one.arc_sums, rtol=1e-9)
    assert two.arc_sums[:3].tolist() == pytest.approx(two.marginals[0].tolist(), rel=1e-12)
    np.testing.assert_array_equal(viterbi(over_pairs(chain)), viterbi(chain))
    one = weighted_forward_backward(chain, labels, weights)
    two = weighted_forward_backward(over_pairs(chain), labels, weights)
    np.testing.assert_allclose(two.log_likelihoods, one.log_likelihoods, rtol=1e-9)
    np.testing.assert_allclose(two.marginals, one.marginals, rtol=1e-9, atol=1e-9)


def test_first_order_chains_go_over_the_automaton_of_pairs():
    rng = np.random.default_rng(3)
    chain = Potentials(rng.normal(size=(9, 3)), rng.normal(size=(3, 3)), np.array([0, 5, 9]))
    for one, two in zip(k_best(chain, 6), k_best(over_pairs(chain), 6), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)
    codes, counts, log_probs = k_best(chain, 6)
    assert counts.tolist() == [6, 6]
    for rank in range(6):
        np.testing.assert_allclose(log_likelihood(chain, codes[rank]), log_probs[rank], rtol=1e-12)
    uniforms = rng.random((4, 9))
    np.testing.assert_array_equal(sample(chain, uniforms), sample(over_pairs(chain), uniforms))


def test_thousands_of_positions_and_hundreds_of_states():
    # More numbers than are kept at a time: the kernels go through the sequence block by block.
    rng = np.random.default_rng(4)
    n_positions, n_labels = 2_700, 5
    patterns = [z for z in itertools.product(range(n_labels), repeat=5) if rng.random() < 0.7]
    patterns += [(0, 1), (1, 1), (4, 3, 2)]
    weights, nodes = rng.normal(size=len(patterns)), 2 * rng.normal(size=(n_positions, n_labels))
    automaton = Automaton.build(n_labels, patterns)
    assert n_positions * automaton.n_states > 2**21
    arcs = automaton.arc_scores(weights)
    potentials = Potentials(nodes, arcs, np.array([0, n_positions]), None, automaton)
    dense = DenseChain(n_labels, patterns, weights, nodes)

    result = forward_backward(potentials)
    assert result.log_z[0] == pytest.approx(dense.log_z, rel=1e-12)
    np.testing.assert_allclose(result.marginals, dense.marginals(), rtol=1e-9)
    by_label = np.bincount(automaton.labels, result.arc_sums)
    np.testing.assert_allclose(by_label, result.marginals.sum(axis=0), rtol=1e-10)

    codes, counts, log_probs = k_best(potentials, 3)
    assert counts.tolist() == [3]
    np.testing.assert_array_equal(codes[0], viterbi(potentials))
    best = dense.forward(np.maximum)[1]
    assert log_probs[0, 0] == pytest.approx(best - result.log_z[0], rel=1e-10)
    for row, expected in zip(codes, log_probs[:, 0], strict=True):
        assert log_likelihood(potentials, row)[0] == pytest.approx(expected, rel=1e-10)

    uniforms = rng.random((2, n_positions))
    for row, numbers in zip(sample(potentials, uniforms), uniforms, strict=True):
        np.testing.assert_array_equal(row, dense.sample(numbers))

    weighted = weighted_forward_backward(potentials, codes[0], np.full(n_positions, 2.0))
    assert weighted.log_likelihoods[0] == pytest.approx(2 * log_probs[0, 0], rel=1e-10)
    np.testing.assert_allclose(weighted.marginals, 2 * result.marginals, rtol=1e-9)
    np.testing.assert_allclose(weighted.arc_sums, 2 * result.arc_sums, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("n_positions", [5, 300])
def test_nothing_is_lost_next_to_states_that_take_arcs_of_their_own(n_positions):
    # Nearly all weight is on label 0, whose states have arcs of their own for the labels 1 and 2.
    # What the others give to the shared arcs must not be a difference of two numbers close to 1.
    rng = np.random.default_rng(5)
    patterns = [(0, 1), (0, 0, 1), (0, 2), (0, 0, 0, 2), (2, 0, 1), (1, 0)]
    nodes = rng.normal(size=(n_positions, 3)) - [0.0, 45.0, 70.0]
    weights, automaton = rng.normal(size=6), Automaton.build(3, patterns)
    arcs = automaton.arc_scores(weights)
    potentials = Potentials(nodes, arcs, np.array([0, n_positions]), None, automaton)
    result = forward_backward(potentials, arc_marginals=True)
    expected = DenseChain(3, patterns, weights, nodes).marginals()
    assert expected[:, 2].max() < 1e-25
    np.testing.assert_allclose(result.marginals, expected, rtol=1e-10)
    if n_positions <= 5:
        chain = free_chain(nodes, patterns, weights)
        wanted = arc_marginals(automaton, chain, enumerate_patterns(chain))
        np.testing.assert_allclose(result.arc_marginals, wanted, rtol=1e-10)
        np.testing.assert_allclose(result.arc_sums, wanted.sum(axis=0), rtol=1e-10)


def test_paths_that_drift_apart_and_come_back():
    # Two labels that never meet: scaled arithmetic alone would lose label 1 on the way.
    nodes = np.zeros((4_001, 2))
    nodes[:2_000, 0] = 1.0
    nodes[2_000:4_000, 1] = 1.0
    automaton = Automaton.build(2, [(0, 1), (1, 0), (0, 0, 0)])
    arcs = automaton.arc_scores([-np.inf, -np.inf, 0.0])
    potentials = Potentials(nodes, arcs, np.array([0, len(nodes)]), None, automaton)
    result = forward_backward(potentials)
    np.testing.assert_allclose(result.marginals, 0.5, rtol=1e-9)
    assert result.log_z[0] == pytest.approx(2_000 + np.log(2), rel=1e-12)
    codes = sample(potentials, np.array([[0.4], [0.6]]) + np.zeros(len(nodes)))
    assert codes.tolist() == [[0] * len(nodes), [1] * len(nodes)]


@pytest.mark.parametrize("offsets", [[0], [0, 0, 0]])
def test_no_positions(offsets):
    automaton = Automaton.build(2, [(0, 1, 1), (1, 0)])
    potentials = Potentials(np.zeros((0, 2)), np.zeros(5), np.array(offsets), None, automaton)
    n_sequences = len(offsets) - 1
    result = forward_backward(potentials, labels=[], arc_marginals=True)
    assert result.log_z.tolist() == result.log_likelihoods.tolist() == [0.0] * n_sequences
    assert result.arc_sums.tolist() == [0.0] * 5
    assert (result.marginals.shape, result.arc_marginals.shape) == ((0, 2), (0, 5))
    assert weighted_forward_backward(potentials, [], []).arc_sums.tolist() == [0.0] * 5
    assert viterbi(potentials).shape == (0,)
    assert sample(potentials, np.zeros((3, 0))).shape == (3, 0)
    codes, counts, log_probs = k_best(potentials, 2)
    assert (codes.shape, counts.tolist()) == ((2, 0), [1] * n_sequences)
    assert log_probs.tolist() == [[0.0] * n_sequences, [-np.inf] * n_sequences]


def random_potentials(n_sequences=45, edges=True, seed=6):
    rng = np.random.default_rng(seed)
    n_labels = 4
    patterns = [*Patterns.pairs(n_labels), (0, 1, 2), (3, 3, 3), (1, 0, 1, 0), (2, 1, 0)]
    automaton = Automaton.build(n_labels, patterns)
    weights = rng.normal(size=len(patterns))
    weights[5] = -np.inf
    lengths = rng.integers(0, 40, n_sequences)
    offsets = np.concatenate([[0], lengths.cumsum()])
    nodes = 2 * rng.normal(size=(offsets[-1], n_labels))
    # Some sequences need log space.
    for s in (2, 3, 17):
        nodes[offsets[s] : offsets[s + 1]] *= 500
    edge_scores = rng.normal(size=(offsets[-1], n_labels, n_labels)) if edges else None
    return Potentials(nodes, automaton.arc_scores(weights), offsets, edge_scores, automaton)


def everything(potentials, labels, weights, uniforms, n_jobs=None):
    """All results: by position, by sequence (each along the last axis), and of the whole batch."""
    plain = forward_backward(
        potentials, labels=labels, pairs="each", arc_marginals=True, n_jobs=n_jobs
    )
    weighted = weighted_forward_backward(potentials, labels, weights, pairs="each", n_jobs=n_jobs)
    codes, counts, log_probs = k_best(potentials, 4, n_jobs=n_jobs)
    by_position = {
        "marginals": plain.marginals.T,
        "arc_marginals": plain.arc_marginals.T,
        "pairs": plain.pairs.T,
        "weighted marginals": weighted.marginals.T,
        "weighted pairs": weighted.pairs.T,
        "viterbi": viterbi(potentials, n_jobs=n_jobs),
        "k_best": codes,
        "sample": sample(potentials, uniforms, n_jobs=n_jobs),
    }
    by_sequence = {
        "log_z": plain.log_z,
        "log_z alone": log_z(potentials, n_jobs=n_jobs),
        "log_likelihoods": plain.log_likelihoods,
        "log_likelihood": log_likelihood(potentials, labels, n_jobs=n_jobs),
        "weighted log_likelihoods": weighted.log_likelihoods,
        "counts": counts,
        "log_probs": log_probs,
    }
    whole = {"arc_sums": plain.arc_sums, "weighted arc_sums": weighted.arc_sums}
    return by_position, by_sequence, whole


def random_inputs(potentials):
    rng = np.random.default_rng(7)
    n_positions = potentials.n_positions
    labels = sample(potentials, rng.random((1, n_positions)))[0]
    return labels, rng.random(n_positions), rng.random((3, n_positions))


@pytest.mark.parametrize("edges", [False, True], ids=["arcs", "edges"])
def test_bit_identical_for_any_number_of_threads(edges):
    potentials = random_potentials(edges=edges)
    inputs = random_inputs(potentials)
    one, *others = (everything(potentials, *inputs, n_jobs=n_jobs) for n_jobs in (1, 2, 7))
    for other in others:
        for expected, found in zip(one, other, strict=True):
            for name in expected:
                np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@pytest.mark.parametrize("edges", [False, True], ids=["arcs", "edges"])
def test_bit_identical_alone_or_in_a_batch(edges):
    potentials = random_potentials(edges=edges)
    labels, weights, uniforms = random_inputs(potentials)
    by_position, by_sequence, whole = everything(potentials, labels, weights, uniforms)
    sums = dict.fromkeys(whole, 0.0)
    for s, (begin, end) in enumerate(itertools.pairwise(potentials.offsets)):
        part = slice(begin, end)
        inputs = labels[part], weights[part], uniforms[:, part]
        alone = everything(potentials.part(slice(s, s + 1)), *inputs)
        for name, expected in by_position.items():
            np.testing.assert_array_equal(alone[0][name], expected[..., part], err_msg=name)
        for name, expected in by_sequence.items():
            np.testing.assert_array_equal(alone[1][name][..., 0], expected[..., s], err_msg=name)
        for name in sums:
            sums[name] = sums[name] + alone[2][name]
    for name, expected in whole.items():
        np.testing.assert_allclose(sums[name], expected, rtol=1e-10, atol=1e-12, err_msg=name)


def test_shifted_scores_change_log_z_alone():
    potentials = random_potentials()
    rng = np.random.default_rng(8)
    shifts = rng.normal(size=(potentials.n_positions, 1))
    shifted = replace(potentials, nodes=potentials.nodes + shifts, arcs=potentials.arcs + 3.0)
    plain, other = (forward_backward(p, pairs="each") for p in (potentials, shifted))
    lengths = np.diff(potentials.offsets)
    added = np.add.reduceat(np.append(shifts, 0.0), potentials.offsets[:-1]) * (lengths > 0)
    np.testing.assert_allclose(other.log_z, plain.log_z + added + 3.0 * lengths, rtol=1e-12)
    np.testing.assert_allclose(other.marginals, plain.marginals, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(other.pairs, plain.pairs, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(other.arc_sums, plain.arc_sums, rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(viterbi(shifted), viterbi(potentials))


def test_every_wish_gives_the_same_numbers():
    potentials = random_potentials()
    labels = random_inputs(potentials)[0]
    whole = forward_backward(potentials, labels=labels, pairs="each", arc_marginals=True)
    for pairs, arcs in itertools.product(["sum", "each", None], [False, True]):
        out = np.empty_like(potentials.nodes)
        part = forward_backward(potentials, pairs=pairs, arc_marginals=arcs, out=out)
        assert part.marginals is out
        assert part.log_likelihoods is None
        for name in ("log_z", "marginals", "arc_sums", "pairs", "arc_marginals"):
            if getattr(part, name) is not None:
                np.testing.assert_array_equal(getattr(part, name), getattr(whole, name), name)
        assert (part.arc_sums is None, part.pairs is None) == (pairs is None, pairs != "each")
        assert (part.arc_marginals is None) == (not arcs)


def test_the_arrays_handed_in_stay_as_they_are():
    potentials = random_potentials(n_sequences=20)
    given = potentials.nodes, potentials.arcs, potentials.edges, potentials.offsets
    inputs = random_inputs(potentials)
    kept = [array.copy() for array in (*given, *inputs)]
    everything(potentials, *inputs)
    for now, before in zip((*given, *inputs), kept, strict=True):
        np.testing.assert_array_equal(now, before)


def call(name, potentials):
    """One of the functions, with inputs of the right shapes."""
    n_positions = len(potentials.nodes)
    labels, ones = np.zeros(n_positions), np.ones(n_positions)
    return {
        "forward_backward": forward_backward,
        "log_z": log_z,
        "log_likelihood": partial(log_likelihood, labels=labels),
        "weighted_forward_backward": partial(
            weighted_forward_backward, labels=labels, weights=ones
        ),
        "viterbi": viterbi,
        "k_best": partial(k_best, k=2),
        "sample": partial(sample, uniforms=ones[None] / 2),
    }[name](potentials)


every_function = pytest.mark.parametrize(
    "function",
    [
        "forward_backward",
        "log_z",
        "log_likelihood",
        "weighted_forward_backward",
        "viterbi",
        "k_best",
        "sample",
    ],
)


@every_function
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_inf_are_errors_that_name_the_place(function, value):
    good = random_potentials(n_sequences=20)
    s = int(np.flatnonzero(np.diff(good.offsets) > 3)[2])
    place = good.offsets[s] + 2
    nodes, edges, arcs = good.nodes.copy(), good.edges.copy(), good.arcs.copy()
    nodes[place, 3] = edges[place, 1, 2] = arcs[7] = value
    where = f"score is NaN or \\+inf at position 2 of sequence {s};"
    with pytest.raises(ValueError, match=f"a node {where}"):
        call(function, replace(good, nodes=nodes))
    with pytest.raises(ValueError, match=f"an edge {where}"):
        call(function, replace(good, edges=edges))
    with pytest.raises(ValueError, match=r"the score of arc 7 is NaN or \+inf"):
        call(function, replace(good, arcs=arcs))


@every_function
def test_edges_into_a_first_position_are_not_read(function):
    potentials = random_potentials(n_sequences=20)
    first = potentials.offsets[:-1][np.diff(potentials.offsets) > 0]
    other = replace(potentials, edges=potentials.edges.copy())
    other.edges[first] = np.nan
    one, two = call(function, potentials), call(function, other)
    if function.endswith("forward_backward"):
        one, two = (one.marginals, one.arc_sums), (two.marginals, two.arc_sums)
    for expected, found in zip(one, two, strict=True):
        np.testing.assert_array_equal(found, expected)


@every_function
def test_a_sequence_without_labellings_is_named(function):
    good = random_potentials(n_sequences=20)
    s = int(np.flatnonzero(np.diff(good.offsets) > 3)[2])
    nodes = good.nodes.copy()
    nodes[good.offsets[s] + 1] = -np.inf
    with pytest.raises(NoPathError, match=f"sequence {s} has no labelling with a finite score"):
        call(function, replace(good, nodes=nodes))
    # A sequence that begins with 1 1, which is forbidden.
    nodes = good.nodes.copy()
    known = np.full(len(nodes), -1, np.int32)
    automaton, place = good.automaton, good.offsets[s]
    known[place : place + 2] = 1, 1
    pin_known(nodes, known)
    arcs = good.arcs.copy()
    arcs[(automaton.labels == 1) & (automaton.last_labels[automaton.sources] == 1)] = -np.inf
    with pytest.raises(NoPathError, match=f"sequence {s} has no labelling with a finite score"):
        call(function, replace(good, nodes=nodes, arcs=arcs))


@every_function
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": np.zeros((4, 3))}, "nodes must have a column for each label"),
        ({"arcs": np.zeros(4)}, "arcs must have an entry for each arc"),
        ({"edges": np.zeros((4, 2, 3))}, "edges and pairs must have shape"),
        ({"edges": np.zeros((3, 2, 2))}, "edges and pairs must have shape"),
        ({"offsets": np.array([0, 3])}, "offsets must run from 0 to the number of positions"),
        ({"offsets": np.array([0, 3, 1, 4])}, "offsets must not fall"),
    ],
)
def test_potentials_of_wrong_shapes_are_errors(function, change, message):
    automaton = pair_automaton(2)
    good = Potentials(np.zeros((4, 2)), np.zeros(6), np.array([0, 4]), None, automaton)
    with pytest.raises(ValueError, match=message):
        call(function, replace(good, **change))


@every_function
@pytest.mark.parametrize("patterns", [[], [(0, 1)], [(0, 0), (0, 1), (1, 0)], [(0, 1) * 6]])
def test_edges_need_all_pairs(function, patterns):
    automaton = Automaton.build(2, patterns)
    nodes, arcs, edges = np.zeros((4, 2)), np.zeros(automaton.n_arcs), np.zeros((4, 2, 2))
    potentials = Potentials(nodes, arcs, np.array([0, 4]), edges, automaton)
    with pytest.raises(ValueError, match="edges need an automaton with an arc for every label"):
        call(function, potentials)
    without = replace(potentials, edges=None)
    with pytest.raises(ValueError, match="pairs need an automaton with an arc for every label"):
        forward_backward(without, pairs="each")
    call(function, without)


GOOD = Potentials(np.zeros((4, 2)), np.zeros(6), np.array([0, 4]), None, pair_automaton(2))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"labels": [0, 1]}, "labels must have an entry for each position"),
        ({"labels": [0, 1, 2, 0]}, "a label code lies outside"),
        ({"labels": [0, 1, -1, 0]}, "a label code lies outside"),
        ({"pairs": "all"}, "pairs is 'all'; expected 'sum', 'each' or None"),
        ({"out": np.zeros((3, 2))}, "marginals must have the shape of nodes"),
        ({"weights": np.zeros(2)}, "weights must have an entry for each sequence"),
    ],
)
def test_wrong_wishes_are_errors(wanted, message):
    with pytest.raises(ValueError, match=message):
        forward_backward(GOOD, **wanted)


def test_wrong_weights_labels_and_uniforms_are_errors():
    with pytest.raises(ValueError, match="weights must have an entry for each position"):
        weighted_forward_backward(GOOD, np.zeros(4), np.zeros(3))
    with pytest.raises(ValueError, match="a label code lies outside"):
        weighted_forward_backward(GOOD, np.full(4, 2), np.zeros(4))
    with pytest.raises(ValueError, match="labels must have an entry for each position"):
        log_likelihood(GOOD, np.zeros(3))
    with pytest.raises(ValueError, match="labels must have a column for each position"):
        sample(GOOD, np.zeros((2, 3)))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize("kernel", ["posteriors", "weighted", "viterbi", "k_best", "samples"])
def test_ctrl_c_ends_a_long_call_before_its_work_is_done(kernel):
    # Two groups of four sequences that would take seconds; the signal comes while they run.
    n_labels, n_positions = 300, 64_000
    automaton = pair_automaton(n_labels)
    offsets = np.arange(0, n_positions + 1, n_positions // 8)
    nodes, arcs = np.zeros((n_positions, n_labels)), np.zeros(automaton.n_arcs)
    codes, numbers = np.full((1, n_positions), -1, np.int32), np.full((1, 8), np.nan)
    labels, marginals = np.zeros(n_positions, np.int32), np.empty_like(nodes)
    fill, outputs = {
        "posteriors": (
            _core.fill_automaton_posteriors,
            (None, numbers[0], None, marginals, None, None, None, None),
        ),
        "weighted": (
            _core.fill_weighted_automaton_posteriors,
            (labels, np.ones(n_positions), numbers[0], marginals, None, None),
        ),
        "viterbi": (_core.fill_automaton_viterbi, (codes[0],)),
        "k_best": (_core.fill_k_best, (codes, np.zeros(8, np.int64), numbers)),
        "samples": (_core.fill_samples, (np.zeros((1, n_positions)), codes)),
    }[kernel]
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        fill(automaton.program, nodes, arcs, None, offsets, *outputs, 2)
    timer.join()
    assert np.isnan(numbers).any()
    assert (codes < 0).any()


@pytest.mark.parametrize("order", [1, 2])
def test_an_impossible_label_of_weight_0_does_not_count(order):
    arcs = np.array([[0.0, -np.inf], [0.0, 0.0]])
    potentials = Potentials(np.zeros((3, 2)), arcs, np.array([0, 3]))
    if order == 2:
        automaton = Automaton.build(2, [(0, 1), (0, 1, 1)])
        scores = automaton.arc_scores([-np.inf, 0.0])
        potentials = Potentials(np.zeros((3, 2)), scores, np.array([0, 3]), None, automaton)
    found = weighted_forward_backward(potentials, [0, 1, 1], [1.0, 0.0, 1.0])
    assert np.isfinite(found.log_likelihoods).all()
