"""The hinge loss of whole sequences, against the enumeration of all labellings."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from hedgerow.labels import Labels
from hedgerow.objectives import LabelCosts, MaxMargin
from reference.problems import FORMS, KNOWN, OFFSETS, central_differences, make_problem
from reference.scores import scores_of, slopes_of, targets_of

TWO, THREE = (MaxMargin(LabelCosts()).for_labels(Labels(np.arange(n))) for n in (2, 3))
COSTS = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 0.0], [2.0, 1.5, 0.0]])
COSTLY = MaxMargin(LabelCosts.read(COSTS)).for_labels(Labels(np.arange(3)))
SEQUENCES, POSITIONS = np.array([2.0, 0.0, 0.5]), np.random.default_rng(0).uniform(0, 3, 8)
WEIGHTS = {
    "equal": {},
    "sequences": {"sequence_weights": SEQUENCES},
    "positions": {"position_weights": POSITIONS},
    "both": {
        "sequence_weights": SEQUENCES,
        "position_weights": POSITIONS * np.repeat(SEQUENCES, np.diff(OFFSETS)),
    },
}
weightings = pytest.mark.parametrize("weighting", WEIGHTS.values(), ids=WEIGHTS)
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def hinge_by_enumeration(targets, chains, matrix):
    """Eq. 5 of Gross et al. (2006), one labelling after the other."""
    total = 0.0
    for s, (chain, (begin, end)) in enumerate(zip(chains, pairwise(OFFSETS), strict=True)):
        weight = 1.0 if targets.sequence_weights is None else targets.sequence_weights[s]
        if weight == 0:
            continue
        costs = np.ones(end - begin)
        if targets.position_weights is not None:
            costs = targets.position_weights[begin:end] / weight
        differs = chain.labellings != targets.codes[begin:end]
        scores = chain.scores()
        given = scores[~differs.any(axis=1)].item()
        worst = (scores + matrix[targets.codes[begin:end], chain.labellings] @ costs).max()
        total += weight * max(0.0, worst - given)
    return total


@weightings
@forms
def test_the_loss_is_that_of_the_worst_labelling(weighting, form):
    forbidden = np.arange(8), (KNOWN + 1) % 3
    for scale, nodes in ((0.1, None), (1.0, forbidden), (10.0, None), (10.0, forbidden)):
        potentials, targets, chains = make_problem(form, (KNOWN, weighting), scale, nodes)
        for margin, matrix in ((THREE, 1 - np.eye(3)), (COSTLY, COSTS)):
            found = slopes_of(margin, potentials, targets, n_threads=2)
            expected = hinge_by_enumeration(targets, chains, matrix)
            assert found.loss == pytest.approx(expected, rel=1e-9, abs=1e-9)


@weightings
@forms
def test_slopes_equal_central_differences_where_they_exist(weighting, form):
    potentials, targets, _ = make_problem(form, (KNOWN, weighting))
    out = np.empty((8, 3))
    found = slopes_of(COSTLY, potentials, targets, n_threads=1, out=out)
    assert found.nodes is out
    tables = [(potentials.nodes, found.nodes), (potentials.arcs, found.arcs)]
    if potentials.edges is not None:
        tables.append((potentials.edges[1:4], found.edges[1:4]))
        assert not found.edges[OFFSETS[:-1]].any()
    for scores, slopes in tables:
        expected = central_differences(
            lambda: slopes_of(COSTLY, potentials, targets).loss, scores, 1e-6
        )
        np.testing.assert_allclose(slopes, expected, rtol=0, atol=1e-6)


@forms
def test_slopes_lie_below_the_loss_everywhere(form):
    potentials, targets, _ = make_problem(form, (KNOWN, WEIGHTS["both"]))
    here = slopes_of(THREE, potentials, targets, n_threads=1)
    rng = np.random.default_rng(4)
    for _ in range(20):
        nodes, arcs = rng.normal(size=(8, 3)), rng.normal(size=potentials.arcs.shape)
        there = replace(potentials, nodes=potentials.nodes + nodes, arcs=potentials.arcs + arcs)
        bound = here.loss + np.sum(nodes * here.nodes) + np.sum(arcs * here.arcs)
        assert slopes_of(THREE, there, targets, n_threads=1).loss >= bound - 1e-9


def test_sequences_without_positions_and_ties():
    offsets = np.array([0, 0, 2, 2, 3])
    targets = targets_of(offsets, np.array([1, 0, 1], np.int32), 2)
    found = slopes_of(
        TWO, scores_of(np.zeros((3, 2)), np.zeros((2, 2)), offsets), targets, n_threads=1
    )
    assert found.loss == 3  # every label could as well be the other
    np.testing.assert_array_equal(found.nodes, [[1, -1], [-1, 1], [1, -1]])
    np.testing.assert_array_equal(found.arcs, [[0, 1], [-1, 0]])


def test_labels_that_may_not_follow_each_other_are_no_rivals():
    offsets = np.array([0, 2])
    targets = targets_of(offsets, np.array([0, 1], np.int32), 2)
    arcs = np.array([[-np.inf, 0.0], [-np.inf, -np.inf]])
    found = slopes_of(TWO, scores_of(np.zeros((2, 2)), arcs, offsets), targets, n_threads=1)
    assert found.loss == 0


def test_labels_with_a_wide_margin_have_no_loss():
    nodes = np.where(np.arange(3) == KNOWN[:, None], 1e5, -1e5)
    targets = targets_of(OFFSETS, KNOWN, 3)
    found = slopes_of(THREE, scores_of(nodes, np.zeros((3, 3)), OFFSETS), targets, n_threads=1)
    assert found.loss == 0
    assert not found.nodes.any()
    assert not found.arcs.any()


def test_large_scores_of_long_sequences_cancel():
    n = 100_000
    codes = (np.arange(n) % 2).astype(np.int32)
    nodes = np.full((n, 2), 1e5)
    nodes[np.arange(n), codes] += 0.25
    offsets = np.array([0, n])
    potentials = scores_of(nodes, np.zeros((2, 2)), offsets)
    found = slopes_of(TWO, potentials, targets_of(offsets, codes, 2), n_threads=1)
    assert found.loss == pytest.approx(0.75 * n, rel=1e-10)
