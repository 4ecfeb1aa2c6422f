"""The softmax margin, against the enumeration of all labellings."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from hedgerow.boosting.curvature import exact
from hedgerow.labels import Labels
from hedgerow.objectives import LabelCosts, Likelihood, MaxMargin, SoftmaxMargin
from reference.automata import weighted_log_likelihood
from reference.problems import FORMS, KNOWN, OFFSETS, TARGETS, central_differences, make_problem
from reference.scores import scores_of, slopes_of, targets_of

forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
COSTS = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 0.0], [2.0, 1.5, 0.0]])


def margin_of(costs):
    return SoftmaxMargin(LabelCosts.read(costs)).for_labels(Labels(np.arange(3)))


MARGIN = margin_of(COSTS)


def margin_by_enumeration(chains, codes, weighting):
    """log sum_y' exp(score(y') + cost(y', y)) - score(y), one labelling after the other."""
    total = 0.0
    for s, (chain, (begin, end)) in enumerate(zip(chains, pairwise(OFFSETS), strict=True)):
        given = codes[begin:end]
        known = np.where(given >= 0, 1.0, 0.0)
        if "position_weights" in weighting:
            costly = replace(chain, nodes=chain.nodes + COSTS[given])
            total -= weighted_log_likelihood(
                costly, given, weighting["position_weights"][begin:end]
            )
            continue
        agrees = ((chain.labellings == given) | (given < 0)).all(axis=1)
        costs = COSTS[given, chain.labellings] @ known
        loss = np.logaddexp.reduce(chain.scores() + costs)
        loss -= np.logaddexp.reduce(chain.scores()[agrees])
        total += loss * (weighting["sequence_weights"][s] if weighting else 1.0)
    return total


@forms
def test_the_loss_equals_enumeration(form):
    for name, case in TARGETS.items():
        for forbidden in (None, (np.arange(8), (KNOWN + 1) % 3)):
            if forbidden is not None and case[0] is not KNOWN:
                continue
            potentials, targets, chains = make_problem(form, case, forbidden=forbidden)
            found = slopes_of(MARGIN, potentials, targets, n_threads=2).loss
            assert found == pytest.approx(margin_by_enumeration(chains, *case), rel=1e-10), name


@forms
@pytest.mark.parametrize("case", TARGETS.values(), ids=TARGETS)
def test_slopes_are_those_of_the_loss(case, form):
    potentials, targets, _ = make_problem(form, case)
    before = potentials.nodes.copy()
    slopes = slopes_of(MARGIN, potentials, targets, n_threads=1)
    np.testing.assert_array_equal(potentials.nodes, before)
    for name in ("nodes", "arcs") if potentials.edges is None else ("nodes", "arcs", "edges"):
        expected = central_differences(
            lambda: slopes_of(MARGIN, potentials, targets).loss, getattr(potentials, name), 1e-5
        )
        np.testing.assert_allclose(getattr(slopes, name), expected, rtol=0, atol=1e-7)


@forms
def test_without_costs_it_is_the_likelihood(form):
    for case in TARGETS.values():
        potentials, targets, _ = make_problem(form, case)
        found, expected = (
            slopes_of(objective, potentials, targets)
            for objective in (margin_of(0.0), Likelihood())
        )
        assert found.loss == expected.loss
        np.testing.assert_array_equal(found.nodes, expected.nodes)
        np.testing.assert_array_equal(found.arcs, expected.arcs)


@forms
def test_it_lies_above_the_hinge_and_nears_it_at_a_large_scale(form):
    hinge = MaxMargin(LabelCosts.read(COSTS)).for_labels(Labels(np.arange(3)))
    potentials, targets, _ = make_problem(form)
    assert slopes_of(MARGIN, potentials, targets).loss > slopes_of(hinge, potentials, targets).loss
    # log sum exp(n a) / n -> max a
    scaled, scale = make_problem(form, scale=1e4)[0], 1e4
    soft = slopes_of(margin_of(scale * COSTS), scaled, targets).loss / scale
    assert soft == pytest.approx(slopes_of(hinge, potentials, targets).loss, abs=1e-3)


def test_labels_in_another_order_have_the_same_loss():
    potentials, targets, _ = make_problem(FORMS["edges"])
    order = np.array([2, 0, 1])
    again = scores_of(
        potentials.nodes[:, order],
        potentials.arcs[order][:, order],
        OFFSETS,
        potentials.edges[:, order][:, :, order],
    )
    codes = np.argsort(order)[targets.codes].astype(np.int32)
    found = slopes_of(margin_of(COSTS[order][:, order]), again, targets_of(OFFSETS, codes, 3))
    expected = slopes_of(MARGIN, potentials, targets)
    assert found.loss == pytest.approx(expected.loss, rel=1e-12)
    np.testing.assert_allclose(found.nodes, expected.nodes[:, order], rtol=0, atol=1e-12)


def test_mixing_rates_of_scores_with_costs_bound_the_curvature():
    """gamma is no smaller than the exact one, of the same scores; that of others may be."""
    potentials, targets, _ = make_problem(FORMS["arcs"], scale=2.0)
    found = MARGIN.measure(potentials, targets, n_threads=1)
    assert found.scores is not potentials
    np.testing.assert_allclose(found.scores.nodes - potentials.nodes, COSTS[KNOWN], atol=1e-12)
    counts = found.arc_sums
    gammas = found.scores.trellis.mixing(found.scores, counts, None, 1).nodes
    needed = exact(found.scores, n_threads=1)
    assert (gammas[:, None] >= needed - 1e-5).all()


def test_it_has_to_know_the_labels_first():
    potentials, targets, _ = make_problem(FORMS["arcs"])
    with pytest.raises(AssertionError, match="the labels are not known yet"):
        SoftmaxMargin(LabelCosts()).measure(potentials, targets, n_threads=1)
    with pytest.raises(AssertionError, match="the labels are not known yet"):
        MaxMargin(LabelCosts()).measure(potentials, targets, n_threads=1)
