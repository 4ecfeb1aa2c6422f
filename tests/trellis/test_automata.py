"""Inference over label automata equals the enumeration of all labellings."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtri

from hedgerow.trellis import (
    NoPathError,
    forward_backward,
    k_best,
    log_likelihood,
    log_z,
    sample,
    viterbi,
    weighted_forward_backward,
)
from reference.automata import (
    PaperInference,
    arc_marginals,
    draw_labels,
    enumerate_patterns,
    free_chain,
    weighted_log_likelihood,
)
from reference.batches import Batch, batches, extreme, extreme_or_forbidden, moderate
from reference.problems import central_differences
from reference.scores import every_arc

examples = partial(settings, deadline=None, derandomize=True)


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


@pytest.mark.parametrize("scores", [moderate, extreme, extreme_or_forbidden])
@examples(max_examples=150)
@given(data=st.data())
def test_posteriors_equal_enumeration(scores, data):
    batch = data.draw(batches(scores))
    exact = enumerate_or_refuse(batch)
    if exact is None:
        return
    potentials, automaton = batch.potentials, batch.automaton
    rng = np.random.default_rng(0)
    labels, weights = random_labels(batch, rng), rng.random(potentials.n_sequences)
    has_edges = potentials.edges is not None
    result = forward_backward(
        potentials,
        labels=labels,
        pairs="each" if has_edges else "sum",
        patterns=every_arc(automaton),
        weights=weights,
    )
    close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)
    close_probs = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-300)
    close(result.log_z, [one.log_z for one in exact])
    close(log_z(potentials), result.log_z, rtol=1e-12, atol=1e-12)
    pattern_marginals = automaton.pattern_sums(result.pattern_marginals)[:, : batch.n_patterns]
    members = automaton.pattern_members(batch.n_patterns)
    alone = forward_backward(potentials, pairs=None, patterns=members).pattern_marginals
    close_probs(alone, pattern_marginals)
    for s, (chain, one, part) in enumerate(zip(batch.chains, exact, batch.parts(), strict=True)):
        close(result.log_likelihoods[s], one.log_probs[tuple(labels[part].tolist())])
        close_probs(result.marginals[part], one.marginals)
        close_probs(pattern_marginals[part], one.pattern_marginals)
        close_probs(result.pattern_marginals[part], arc_marginals(automaton, chain, one))
        if has_edges:
            close_probs(result.pairs[part], one.pairs)
    close(log_likelihood(potentials, labels), result.log_likelihoods, rtol=1e-12, atol=1e-12)
    close_probs(
        automaton.pattern_sums(result.arc_sums)[: batch.n_patterns],
        sum(w * one.pattern_marginals.sum(0) for w, one in zip(weights, exact, strict=True)),
    )


@examples(max_examples=60)
@given(batches(constrained=False, longest=5))
def test_pattern_marginals_equal_the_formula_of_the_paper(batch):
    result = forward_backward(batch.potentials, patterns=every_arc(batch.automaton))
    patterns = batch.automaton.pattern_sums(result.pattern_marginals)
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


@pytest.mark.parametrize("scores", [moderate, extreme_or_forbidden])
@examples(max_examples=80)
@given(data=st.data(), k=st.sampled_from([1, 2, 5, 7, 40]))
def test_the_best_labellings_are_those_of_an_enumeration(scores, data, k):
    batch = data.draw(batches(scores))
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
        close(central_differences(value, chain.nodes, 1e-5), seen - result.marginals[part])
        if chain.edges is not None:
            seen = np.zeros_like(chain.edges)
            seen[np.arange(1, len(here)), here[:-1], here[1:]] = counted[1:]
            close(central_differences(value, chain.edges, 1e-5), seen - result.pairs[part])
    seen = np.zeros(batch.automaton.n_arcs)
    np.add.at(seen, batch.automaton.arcs_taken(labels, potentials.offsets), weights)
    counts = batch.automaton.pattern_sums(seen - result.arc_sums)[: batch.n_patterns]
    shared = batch.chains[0].weights  # one array for all chains
    close(central_differences(lambda: sum(value() for value in values), shared, 1e-5), counts)
