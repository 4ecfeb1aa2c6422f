"""Objectives of the marginals: their values, and their gradients by marginals and by potentials."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax

from hedgerow.objectives import Accuracy, ExpectedAccuracy, Objective, OfMarginals, Pointwise
from hedgerow.objectives.labelwise import find_direction, measure_loss
from hedgerow.trellis import forward_backward, tangent
from reference.automata import enumerate_patterns
from reference.problems import FORMS, TARGETS, central_differences, make_problem
from reference.scores import scores_of, targets_of

OBJECTIVES = [Pointwise(), ExpectedAccuracy(), Accuracy(1.0), Accuracy(15.0)]
objectives = pytest.mark.parametrize("objective", OBJECTIVES, ids=str)

cases = pytest.mark.parametrize("case", TARGETS.values(), ids=TARGETS)
NARROW = {name: FORMS[name] for name in ("arcs", "automaton")}  # without edges
forms = pytest.mark.parametrize("form", NARROW.values(), ids=NARROW)


def value_by_hand(objective, marginals, codes, weights):
    """One position after the other, as the papers define it."""
    total = 0.0
    for p, label, weight in zip(marginals, codes, weights, strict=True):
        if label < 0:
            continue
        if isinstance(objective, Pointwise):
            term = np.log(p[label])
        elif isinstance(objective, ExpectedAccuracy):
            term = p[label]
        else:
            rival = max(prob for other, prob in enumerate(p) if other != label)
            term = 1 / (1 + np.exp(-objective.sharpness * (p[label] - rival)))
        total += weight * term
    return total


@cases
@forms
def test_values_are_those_of_all_labellings(case, form):
    potentials, targets, chains = make_problem(form, case)
    marginals = np.concatenate([enumerate_patterns(chain).marginals for chain in chains])
    weights = np.ones(8) if targets.weights is None else targets.weights
    for objective in OBJECTIVES:
        expected = value_by_hand(objective, marginals, targets.codes, weights)
        found = OfMarginals(objective).measure(potentials, targets, n_threads=2)
        assert found.loss == pytest.approx(-expected, rel=1e-10), objective
        np.testing.assert_allclose(found.posteriors.marginals, marginals, rtol=1e-9)


def slopes_of(objective, potentials, targets):
    """How the value changes with the nodes and the arcs."""
    marginals = forward_backward(potentials).marginals
    return tangent(potentials, marginals, find_direction(objective, marginals, targets))


def loss_of(objective, potentials, targets):
    return OfMarginals(objective).measure(potentials, targets, n_threads=1).loss


@cases
@forms
def test_slopes_equal_central_differences(case, form):
    for objective, nodes in zip(OBJECTIVES, [None, (case[0] == 0, 2)] * 2, strict=True):
        potentials, targets, _ = make_problem(form, case, forbidden=nodes)
        found = slopes_of(objective, potentials, targets)
        loss = partial(loss_of, objective, potentials, targets)
        for array, slopes in (
            (potentials.nodes, found.marginals),
            (potentials.arcs, found.arc_sums),
        ):
            expected = central_differences(loss, array, 1e-5)
            assert slopes == pytest.approx(-expected, rel=1e-5, abs=1e-7), objective


@given(st.sampled_from(OBJECTIVES), st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_gradients_by_marginals_equal_central_differences(objective, seed, n_labels):
    rng = np.random.default_rng(seed)
    marginals = rng.dirichlet(np.full(n_labels, 2.0), size=6) + 0.01 * np.arange(n_labels)
    labels = rng.integers(-1, n_labels, 6).astype(np.int32)
    weights = rng.uniform(0, 3, 6) * (labels >= 0)
    gradient = objective.gradient(marginals, labels, weights)
    expected = central_differences(
        lambda: objective.value(marginals, labels, weights), marginals, 1e-7
    )
    assert gradient == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("objective", [ExpectedAccuracy(), Pointwise()], ids=str)
def test_sequences_of_one_position_have_a_softmax(objective):
    nodes = np.random.default_rng(0).normal(size=(5, 4))
    codes = np.array([0, 3, 1, 1, 2], np.int32)
    potentials = scores_of(nodes, np.zeros((4, 4)), np.arange(6))
    targets = targets_of(potentials.offsets, codes, 4)
    p = softmax(nodes, axis=1)
    own = p[np.arange(5), codes]
    value, factor = (own, own) if objective == ExpectedAccuracy() else (np.log(own), np.ones(5))
    assert loss_of(objective, potentials, targets) == pytest.approx(-value.sum())
    slopes = factor[:, None] * ((np.arange(4) == codes[:, None]) - p)
    found = slopes_of(objective, potentials, targets)
    np.testing.assert_allclose(found.marginals, slopes, rtol=1e-9, atol=1e-15)


@forms
def test_the_sharper_the_closer_to_the_number_of_labels_that_are_right(form):
    potentials, targets, _ = make_problem(form, TARGETS["all known"])
    marginals = forward_backward(potentials).marginals
    n_right = int(np.sum(marginals.argmax(axis=1) == targets.codes))
    assert 0 < n_right < 8
    gaps = [
        abs(measure_loss(Accuracy(sharpness), marginals, targets).value + n_right)
        for sharpness in (10.0, 100.0, 1e4, 1e8)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-12


def test_equal_rivals_share_the_slope_of_accuracy():
    marginals = np.array([[0.25, 0.25, 0.25, 0.25], [0.4, 0.1, 0.4, 0.1]])
    labels, weights = np.array([1, 3], np.int32), np.array([1.0, 2.0])
    found = Accuracy(3.0).gradient(marginals, labels, weights)
    first, second = 3 * 0.25, 2 * 3 * expit(-0.9) * expit(0.9)
    third = first / 3
    expected = [[-third, first, -third, -third], [-second / 2, 0, -second / 2, second]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@objectives
def test_labels_of_probability_zero_do_no_harm(objective):
    marginals = np.array([[1.0, 0.0], [0.5, 0.5]])
    targets = targets_of(np.array([0, 2]), np.array([1, 1], np.int32), 2)
    assert np.isfinite(measure_loss(objective, marginals, targets).value)
    assert np.isfinite(find_direction(objective, marginals, targets)).all()


@objectives
def test_a_single_label_is_always_right(objective):
    marginals, targets = np.ones((3, 1)), targets_of(np.array([0, 3]), np.zeros(3, np.int32), 1)
    ahead = expit(objective.sharpness) if isinstance(objective, Accuracy) else 1.0
    expected = 0.0 if isinstance(objective, Pointwise) else 3 * ahead
    assert measure_loss(objective, marginals, targets).value == pytest.approx(-expected)


class Broken:
    """An objective that returns given values."""

    def __init__(self, value=0.0, gradient=None):
        self.answers = value, gradient

    def value(self, marginals, labels, weights):
        return self.answers[0]

    def gradient(self, marginals, labels, weights):
        return self.answers[1]


TWO = targets_of(np.array([0, 2]), np.array([1, -1], np.int32), 2)
HALVES = np.full((2, 2), 0.5)


@pytest.mark.parametrize("value", [np.nan, -np.inf, np.zeros(2), None, "1", 1j, [[1], 2]], ids=str)
def test_a_value_that_is_no_number(value):
    with pytest.raises(ValueError, match=r"^Broken\.value returned .*; expected a finite number$"):
        measure_loss(Broken(value=value), HALVES, TWO)


SHAPE = r"expected the shape of the marginals, \(2, 2\)$"
NUMBERS = r".*; expected an array of numbers, of the shape of the marginals, \(2, 2\)$"


@pytest.mark.parametrize(
    ("gradient", "error", "message"),
    [
        (np.zeros((2, 3)), ValueError, rf"an array of shape \(2, 3\); {SHAPE}"),
        (np.zeros(2), ValueError, rf"an array of shape \(2,\); {SHAPE}"),
        ([[0, 0], [np.inf, 0]], ValueError, "inf at position 1, label 0; expected finite numbers$"),
        *((wrong, TypeError, NUMBERS) for wrong in (None, "nonsense", HALVES * 1j, [[0, 0], [0]])),
    ],
    ids=str,
)
def test_a_gradient_that_makes_no_sense(gradient, error, message):
    with pytest.raises(error, match=rf"(?s)^Broken\.gradient returned {message}"):
        find_direction(Broken(gradient=gradient), HALVES, TWO)


def test_an_objective_is_told_how_much_each_position_counts_and_can_change_nothing():
    class Curious:
        def value(self, marginals, labels, weights):
            assert labels.tolist() == [1, -1]
            assert weights.tolist() == [1.0, 0.0]
            with pytest.raises(ValueError, match="read-only"):
                marginals[0, 0] = 1.0
            return 3

        def gradient(self, marginals, labels, weights):
            raise NotImplementedError

    assert isinstance(Curious(), Objective)
    assert measure_loss(Curious(), HALVES, TWO).value == -3.0
