"""Trellises: inference on scores of up to a hundred thousand, against listing all labellings."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from abuse.draws import check_draws
from abuse.kind import Case, Kind
from hedgerow import trellis
from hedgerow.trellis import Chain, NoPathError, Scores
from reference.automata import Enumeration, enumerate_patterns, weighted_log_likelihood
from reference.batches import SCORES, Batch, batch_cases, make_batch

EPSILON = np.finfo(np.float64).eps


@st.composite
def batch_of_any_scores(draw: st.DrawFn) -> Case:
    """Short sequences; all pairs of labels are patterns if the arcs are to be a table of them."""
    case = draw(batch_cases(draw(st.sampled_from(sorted(SCORES))), most_labels=4))
    case["dense"] = draw(st.booleans())
    if case["dense"]:
        labels = range(case["n_labels"])
        case["patterns"] = [[j, k] for j in labels for k in labels]
    return case


def check(case: Case) -> None:
    """Everything that `hedgerow.trellis` has, for one batch."""
    batch = make_batch(case)
    potentials = _over_pairs(batch) if case["dense"] else batch.potentials
    exact = list(map(enumerate_patterns, batch.chains))
    rng = np.random.default_rng(case["seed"])
    uniforms = rng.random((2, potentials.n_positions))
    if None in exact:
        _check_refused(potentials, uniforms)
        return
    slack = _slack(batch, exact)
    places = list(batch.parts())
    pairs = "each" if case["dense"] or case["edges"] else None  # other automata lack pairs
    found = trellis.forward_backward(potentials, pairs=pairs, n_threads=1)
    np.testing.assert_array_equal(found.log_z, trellis.log_z(potentials, n_threads=1))
    best = trellis.viterbi(potentials, n_threads=1)
    k = 1 + case["seed"] % 9
    rows, counts, log_probs = trellis.k_best(potentials, k, n_threads=1)
    drawn = trellis.sample(potentials, uniforms, n_threads=1)
    direction = rng.normal(size=potentials.nodes.shape)
    moved = trellis.tangent(potentials, found.marginals, direction, pairs=None, n_threads=1)
    for s, (place, one) in enumerate(zip(places, exact, strict=True)):
        np.testing.assert_allclose(found.log_z[s], one.log_z, rtol=0, atol=slack)
        np.testing.assert_allclose(found.marginals[place], one.marginals, rtol=0, atol=slack)
        if pairs:
            np.testing.assert_allclose(found.pairs[place], one.pairs, rtol=0, atol=slack)
        assert one.log_probs[tuple(best[place].tolist())] + one.log_z >= one.best[0][0] - slack
        codes = list(map(tuple, rows[: counts[s], place].tolist()))
        assert len(codes) == len(set(codes)) == min(k, len(one.best))
        expected = [one.log_probs[labels] for labels in codes]
        ranked = [score - one.log_z for score, _ in one.best[:k]]
        np.testing.assert_allclose(log_probs[: counts[s], s], expected, rtol=0, atol=slack)
        np.testing.assert_allclose(expected, ranked, rtol=0, atol=slack)
        check_draws(one.chain, one.scores, drawn[:, place], uniforms[:, place], slack)
        slopes = _tangent(one, direction[place])
        largest = 1.0 + np.abs(direction[place]).sum()
        np.testing.assert_allclose(moved.marginals[place], slopes, rtol=0, atol=slack * largest)
    _check_weighted(potentials, batch, exact, rng, slack)


def _over_pairs(batch: Batch) -> Scores:
    """The same scores as a first-order chain, all patterns being pairs."""
    chain, n_labels = batch.chains[0], batch.automaton.n_labels
    arcs = np.zeros((n_labels, n_labels))
    for pattern, weight in zip(chain.patterns, chain.weights, strict=True):
        arcs[pattern] += weight
    for pair in chain.forbidden:
        arcs[pair] = -np.inf
    return replace(batch.potentials, arcs=arcs, trellis=Chain(n_labels))


def _slack(batch: Batch, exact: list[Enumeration]) -> float:
    """How far apart log probabilities may be: scores round, and the oracle adds up many numbers."""
    finite = [np.abs(one.scores[one.scores > -np.inf]).max() for one in exact]
    chain = batch.chains[0]
    tables = [chain.weights, *(one.nodes for one in batch.chains)]
    tables += [] if chain.edges is None else [one.edges for one in batch.chains]
    largest = max(
        (np.abs(table[table > -np.inf]).max(initial=0.0) for table in tables), default=0.0
    )
    n_terms = 64 * (2 + len(chain.patterns))
    n_labellings = max(len(one.scores) for one in exact)
    return EPSILON * (n_labellings + max(finite) + n_terms * largest)


def _check_refused(potentials: Scores, uniforms: np.ndarray) -> None:
    """A sequence without a labelling is an error everywhere."""
    for ask in (
        trellis.forward_backward,
        trellis.log_z,
        trellis.viterbi,
        lambda potentials: trellis.k_best(potentials, 2),
        lambda potentials: trellis.sample(potentials, uniforms),
    ):
        try:
            ask(potentials)
        except NoPathError:
            continue
        raise AssertionError("a sequence has no labelling, but no error was raised")


def _tangent(exact: Enumeration, direction: np.ndarray) -> np.ndarray:
    """Covariances (T, K) of each label and the sum of the direction along a labelling."""
    labellings = exact.chain.labellings
    sums = direction[np.arange(len(direction)), labellings].sum(axis=1)
    weights = exact.probs * (sums - exact.probs @ sums)
    rows = [
        np.bincount(labellings[:, t], weights, direction.shape[1]) for t in range(len(direction))
    ]
    return np.array(rows).reshape(direction.shape)


def _check_weighted(
    potentials: Scores,
    batch: Batch,
    exact: list[Enumeration],
    rng: np.random.Generator,
    slack: float,
) -> None:
    """The weighted likelihood of possible labels, and its expected counts."""
    codes = [np.array(one.best[rng.integers(len(one.best))][1], np.int32) for one in exact]
    weights = rng.integers(0, 4, potentials.n_positions) / 2.0
    found = trellis.weighted_forward_backward(
        potentials, np.concatenate(codes), weights, pairs=None, n_threads=1
    )
    for s, (place, one) in enumerate(zip(batch.parts(), exact, strict=True)):
        expected = weighted_log_likelihood(one.chain, codes[s], weights[place])
        assert found.log_likelihoods is not None
        total = 2.0 * slack * (1.0 + weights[place].sum())
        np.testing.assert_allclose(found.log_likelihoods[s], expected, rtol=0, atol=total)
        counts = _weighted_counts(one, codes[s], weights[place])
        np.testing.assert_allclose(found.marginals[place], counts, rtol=0, atol=total)


def _weighted_counts(exact: Enumeration, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Expected counts (T, K): what the gradient of the weighted likelihood subtracts."""
    n_positions, n_labels = exact.chain.nodes.shape
    labellings = exact.chain.labellings
    counts = np.zeros((n_positions, n_labels))
    counts[np.arange(n_positions), codes] = weights
    agree = np.ones(len(labellings), dtype=bool)
    for t, weight in enumerate(weights.tolist()):
        after = agree & (labellings[:, t] == codes[t])
        for flags, sign in ((agree, weight), (after, -weight)):
            scores = np.where(flags, exact.scores, -np.inf)
            probs = np.exp(scores - scores.max())
            for u in range(n_positions):
                counts[u] += sign * np.bincount(labellings[:, u], probs / probs.sum(), n_labels)
        agree = after
    return counts


KINDS = [Kind("differential-trellis", batch_of_any_scores(), check, in_suite=20)]
