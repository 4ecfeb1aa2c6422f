"""Edges of arcs: scores of an automaton's arcs that differ from position to position."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hedgerow.labels import Labels
from hedgerow.labels.automaton import Automaton, pair_automaton
from hedgerow.objectives import LabelCosts, Likelihood, MaxMargin
from hedgerow.trellis import (
    forward_backward,
    k_best,
    sample,
    tangent,
    viterbi,
    weighted_forward_backward,
)
from reference.batches import SCORES, batch_cases, make_batch
from reference.exact_trellis import Exact, check_slopes, close, close_probs
from reference.scores import scores_of, slopes_of, targets_of
from reference.tangent import covariances, node_gains

MARGIN = MaxMargin(LabelCosts()).for_labels(Labels(np.arange(3)))


class ExactWithEdges(Exact):
    """Sums over the labellings of one chain, with scores of arcs by position, (T, A)."""

    def __init__(self, chain, automaton, edges):
        super().__init__(chain, automaton)
        assume(self.answers is not None)
        taken = edges[np.arange(1, len(edges))[None], self.arcs[:, 1:]]
        self.scores = self.answers.scores + taken.sum(axis=1)
        self.log_z = np.logaddexp.reduce(self.scores)
        self.probs = np.exp(self.scores - self.log_z)

    def edges(self, sums):
        """Of the arcs, but where the sequence begins."""
        arcs = sums.arcs.copy()
        arcs[:1] = 0.0
        return arcs


@pytest.mark.parametrize("kind", SCORES)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(case=batch_cases(edges=False, longest=5), seed=st.integers(0, 2**32 - 1))
def test_every_function_equals_enumeration(kind, case, seed):
    rng, batch = np.random.default_rng(seed), make_batch(case, SCORES[kind])
    potentials, automaton, finite = batch.potentials, batch.automaton, SCORES[kind][1]
    edges = finite(rng, potentials.n_positions, automaton.n_arcs)
    edges[potentials.offsets[:-1][np.diff(potentials.offsets) > 0]] = np.nan  # not read
    potentials = replace(potentials, edges=edges)
    exact = [
        ExactWithEdges(chain, automaton, edges[part])
        for chain, part in zip(batch.chains, batch.parts(), strict=True)
    ]
    labels = np.concatenate([one.every[one.scores.argmax()] for one in exact]).astype(np.int32)
    weights = np.repeat(1 + rng.random(potentials.n_sequences), np.diff(potentials.offsets))
    moves = np.where(potentials.nodes == -np.inf, 0.0, rng.normal(size=potentials.nodes.shape))
    found = forward_backward(potentials, labels=labels, pairs="each")
    weighted = weighted_forward_backward(potentials, labels, weights, pairs="each")
    moved = tangent(potentials, found.marginals, moves, pairs="each")
    best, (codes, counts, log_probs) = viterbi(potentials), k_best(potentials, 3)
    drawn = sample(potentials, rng.random((2, potentials.n_positions)))
    assert found.pairs.shape == edges.shape
    sums = 0.0
    for s, (one, part) in enumerate(zip(exact, batch.parts(), strict=True)):
        expected = one.sum(one.probs)
        close(found.log_z[s], one.log_z)
        close(found.log_likelihoods[s], one.scores[one.find(labels[part])] - one.log_z)
        close_probs(found.marginals[part], expected.marginals)
        close_probs(found.pairs[part], one.edges(expected))
        sums = sums + expected.arcs.sum(axis=0)
        share = weights[part][:, None]
        close(weighted.marginals[part], share * expected.marginals, atol=1e-9)
        close(weighted.pairs[part], share * one.edges(expected), atol=1e-9)
        slopes, sizes = map(one.sum, covariances(one.probs, node_gains(one.every, moves[part])))
        check_slopes(moved.marginals[part], slopes.marginals, sizes.marginals)
        check_slopes(moved.pairs[part], one.edges(slopes), one.edges(sizes))
        ranked = np.sort(one.scores[one.scores > -np.inf])[::-1][:3]
        close(one.scores[one.find(best[part])], ranked[0])
        assert counts[s] == len(ranked)
        close(log_probs[: counts[s], s], ranked - one.log_z)
        close([one.scores[one.find(row)] for row in codes[: counts[s], part]], ranked)
        assert all(one.scores[one.find(row)] > -np.inf for row in drawn[:, part])
    close_probs(found.arc_sums, sums)


def random_scores(rng, automaton, offsets):
    n_labels, n_positions = automaton.n_labels, offsets[-1]
    nodes, edges = (rng.normal(size=(n_positions, n)) for n in (n_labels, automaton.n_arcs))
    return scores_of(nodes, rng.normal(size=automaton.n_arcs), offsets, edges, automaton)


@pytest.mark.parametrize("given_weights", ["none", "sequences"])
def test_slopes_of_the_likelihood_are_its_derivatives(given_weights):
    rng, offsets = np.random.default_rng(0), np.array([0, 4, 4, 7])
    automaton = Automaton.build(2, [(0, 1), (1, 0, 1)])
    scores = random_scores(rng, automaton, offsets)
    weights = {"sequence_weights": np.array([0.5, 1.0, 3.0])} if given_weights != "none" else {}
    codes = np.array([0, 1, 0, 1, 1, -1, 0], np.int32)  # one is not known
    targets = targets_of(offsets, codes, 2, automaton, **weights)
    slopes = slopes_of(Likelihood(), scores, targets).edges
    step, found = 1e-5, np.zeros_like(slopes)
    for place in product(*map(range, found.shape)):
        for sign in (1, -1):
            edges = scores.edges.copy()
            edges[place] += sign * step
            loss = Likelihood().measure(replace(scores, edges=edges), targets, n_threads=1).loss
            found[place] += sign * loss / (2 * step)
    np.testing.assert_allclose(slopes, found, atol=1e-8)


@pytest.mark.parametrize("objective", [Likelihood(), MARGIN], ids=["likelihood", "margin"])
def test_edges_of_label_pairs_are_edges_of_arcs(objective):
    rng, offsets, automaton = np.random.default_rng(0), np.array([0, 5, 8]), pair_automaton(3)
    scores = random_scores(rng, automaton, offsets)
    by_pair = replace(scores, edges=scores.edges[:, 3:].reshape(8, 3, 3))
    targets = targets_of(offsets, rng.integers(0, 3, 8, np.int32), 3, automaton)
    one, other = (slopes_of(objective, form, targets) for form in (scores, by_pair))
    assert one.loss == pytest.approx(other.loss, rel=1e-12)
    np.testing.assert_allclose(one.nodes, other.nodes, atol=1e-12)
    np.testing.assert_allclose(one.edges[:, 3:], other.edges.reshape(8, 9), atol=1e-12)
    assert not one.edges[:, :3].any()


def test_edges_of_other_shapes_are_errors():
    scores = random_scores(np.random.default_rng(0), pair_automaton(2), np.array([0, 4]))
    for shape in [(4,), (4, 5), (3, 6), (4, 2, 3), (4, 6, 1), (1, 4, 2, 2)]:
        with pytest.raises(ValueError, match=r"labels, labels\) or \(positions, arcs\)"):
            forward_backward(replace(scores, edges=np.zeros(shape)))
