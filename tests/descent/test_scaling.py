"""Training does not depend on the units of the columns."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from hedgerow import LinearCRF
from hedgerow.descent.bundle import Bundle, minimize_bundle
from hedgerow.descent.owlqn import minimize_l1
from hedgerow.descent.scaling import UNSCALED
from hedgerow.labels import Labels
from hedgerow.lbfgs import Iterations, build_metric, finish, minimize
from hedgerow.objectives import LabelCosts, Likelihood, MaxMargin, OfMarginals, Pointwise
from hedgerow.potentials.scoring import add_up
from hedgerow.trellis import forward_backward
from reference.descents import build_loss
from reference.trainings import Brier

RNG = np.random.default_rng(0)
N = 200
GOOD = RNG.normal(size=N)
Y = np.where(GOOD > 0, "p", "q")
GROUPS = np.repeat(np.arange(N // 10), 10)
COLUMNS = {
    "year": 2020.0 + RNG.integers(0, 5, N),
    "pressure": 1013 + 5 * RNG.normal(size=N),
    "uniform": 1000 * RNG.random(N),
    "seconds": 1.7e9 + np.arange(N),
    "nanoseconds": 1.7e18 + 1e9 * np.arange(N),
    "huge": 1e99 * RNG.normal(size=N),
    "small": 1e-6 * RNG.normal(size=N),
    "tiny": 1e-320 * RNG.random(N),
}


def beside(column):
    return np.stack([GOOD, COLUMNS[column]], axis=1)


def fit(X, **parameters):
    return LinearCRF(**parameters).fit(X, Y, groups=GROUPS)


@cache
def fit_alone(**parameters):
    """A model of the good column alone."""
    return fit(GOOD[:, None], **parameters)


def make_loss(X, y, *, scaled, **parameters):
    """The loss that `fit` minimises, and rows."""
    loss, _, rows, _ = build_loss(LinearCRF(**parameters), X, y, scaled=scaled)
    return loss, rows


@pytest.mark.parametrize(
    ("column", "parameters"),
    [
        *((column, {}) for column in COLUMNS),
        ("nanoseconds", {"reg_alpha": 0.1}),
        ("pressure", {"reg_lambda": 0.01}),
        ("seconds", {"objective": "pointwise"}),
        ("tiny", {"objective": "accuracy"}),
        ("year", {"objective": "max_margin"}),
        ("huge", {"objective": "max_margin", "warm_iter": 0, "tol": 1e-4}),
        ("uniform", {"transition_attributes": True}),
        ("uniform", {"order": 2, "pattern_attributes": True}),
    ],
    ids=str,
)
def test_a_column_of_any_size_does_not_hide_the_others(column, parameters):
    crf = fit(beside(column), **parameters)
    alone = fit_alone(**parameters)
    assert crf.score(beside(column), Y, groups=GROUPS) > 0.97
    worse = crf.loss_ - alone.loss_  # its weights could be zero, but for the tolerance
    assert worse <= (0.01 if crf.objective == "max_margin" else 1e-4) * abs(alone.loss_)
    assert 5 < crf.n_iter_ < 3 * alone.n_iter_ + 30


def test_weights_are_those_of_the_columns_as_they_are():
    crf = fit(beside("seconds"), transition_attributes=True)
    penalty = np.sum(crf.weights()["weight"] ** 2) + np.sum(crf.transition_weights()["weight"] ** 2)
    loss = penalty / 2 - crf.log_likelihood(beside("seconds"), Y, groups=GROUPS).sum()
    assert crf.loss_ == pytest.approx(loss, rel=1e-9)


class Backwards(Brier):
    """An objective whose gradient has the wrong sign."""

    def gradient(self, marginals, labels, weights):
        return -super().gradient(marginals, labels, weights)


@pytest.mark.parametrize("reg_alpha", [0.0, 0.1])
@pytest.mark.parametrize("attribute", ["B", False])
def test_a_training_that_ends_at_a_slope_warns_with_the_attribute(reg_alpha, attribute):
    items = [[{"B": 50.0 * (i % 3), "c": 0.1 * i} for i in range(9)]] * 3
    y = [list("abcabcabc")] * 3
    parameters = {"objective": Backwards(), "warm_iter": 0, "reg_alpha": reg_alpha}
    message = (
        r"training stopped after \d+ iterations: no step decreases the loss, although its gradient "
        r"is not zero\. It is largest for the weights of attribute 'B'; check that column for "
        r"extreme values, and check the gradient of the objective$"
    )
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        LinearCRF(transition_attributes=attribute, **parameters).fit(items, y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("labels", "owner"), [("aabaabaac", "label 'a'"), ("abcabcabc", "the label pattern c, a")]
)
def test_weights_that_have_no_attribute_are_named(labels, owner):
    crf = LinearCRF(objective=Backwards(), warm_iter=0)
    with pytest.warns(ConvergenceWarning, match=f"the weights of {owner}; check all columns"):
        crf.fit([[{}] * 9], [list(labels)])


def test_the_gradient_of_a_named_objective_is_not_for_the_user_to_check(monkeypatch):
    gradient = Pointwise.gradient
    monkeypatch.setattr(Pointwise, "gradient", lambda *arguments: -gradient(*arguments))
    crf = LinearCRF(objective="pointwise", warm_iter=0)
    with pytest.warns(ConvergenceWarning, match="check all columns for extreme values$"):
        crf.fit([[{}] * 9], [list("aabaabaac")])


def test_scales_worked_by_hand():
    """Without a penalty the root mean square; with one no less than a binary attribute asks for."""
    items = [[{"one": 1.0, "year": 2000.0, "small": 1e-3, "both": 3.0}, {"both": -5.0}, {}]]
    for reg_lambda, expected in ((0.0, [4, 1, 2.0**-10, 2048]), (0.75, [2, 1, 1, 1024])):
        loss, _ = make_loss(items, [list("aba")], scaled=True, reg_lambda=reg_lambda)
        assert loss.scaling.attributes.tolist() == expected
        n_others = 2 + 4  # biases and label pairs
        assert loss.scaling.weights.tolist() == [expected[0], *expected, *[1] * n_others]


def test_the_order_of_positions_does_not_decide_a_scale():
    # hypot(sqrt(12), 2) / hypot(sqrt(4), 2) is the square root of 2, half-way between 1 and 2.
    for values in itertools.permutations([3.0, 1.0, 1.0, 1.0]):
        loss, _ = make_loss([[[value] for value in values]], [list("abab")], scaled=True)
        assert loss.scaling.attributes.tolist() == [2.0]


@pytest.mark.parametrize("items", [[["u", "v"], ["u"]], [{"u": 1.0}, {"v": -1.0}]])
def test_binary_attributes_are_not_scaled(items):
    loss, _ = make_loss([items], [list("ab")], scaled=True)
    assert loss.scaling is UNSCALED


@pytest.mark.parametrize(
    "objective", [Likelihood(), MaxMargin(LabelCosts()), OfMarginals(Pointwise())]
)
@pytest.mark.parametrize("edges", [False, True])
def test_a_loss_in_other_units_is_the_same_loss(objective, edges):
    X, y = [beside("year")[:20], beside("uniform")[:9]], [Y[:20], Y[:9]]
    loss, _ = make_loss(X, y, scaled=True, transition_attributes=edges)
    plain, _ = make_loss(X, y, scaled=False, transition_attributes=edges)
    objective = objective.for_labels(Labels(np.arange(loss.targets.n_labels)))
    weights = np.random.default_rng(1).normal(size=loss.n_weights) / 1000
    value, gradient = loss.of(objective)(loss.scaling.scale(weights))
    expected, slopes = plain.of(objective)(weights)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient * loss.scaling.weights, slopes, rtol=1e-9)


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e12])
def test_weights_of_any_size_give_scales(weight):
    crf = LinearCRF(max_iter=2, tol=0).fit([[[3.0], [5.0]]], [["a", "b"]], sample_weight=[weight])
    assert np.isfinite(crf.loss_)


# Columns of usual size, and what each is multiplied by.
PROBLEMS = st.tuples(
    st.integers(0, 10**6),
    st.lists(st.floats(-6, 6).map(lambda power: 10.0**power), min_size=3, max_size=3),
)


def make_problem(seed):
    """Sequences that no weights explain perfectly."""
    rng = np.random.default_rng(seed)
    X = [rng.normal([0, 1, 3], size=(12, 3)) for _ in range(6)]
    y = [np.where(x[:, 0] + 2 * rng.normal(size=12) > 0, "p", "q") for x in X]
    return X, y


@settings(max_examples=4, deadline=None)
@given(PROBLEMS)
def test_without_a_penalty_units_do_not_matter(problem):
    seed, units = problem
    X, y = make_problem(seed)
    crf = LinearCRF(reg_lambda=0, tol=0, max_iter=300)
    expected = crf.fit(X, y).predict_proba(X)
    scaled = [x * units for x in X]
    found = crf.fit(scaled, y).predict_proba(scaled)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def solve_lbfgs(loss, penalties, start, iterations):
    function = loss.of(Likelihood())

    def penalised(point):
        value, gradient = function(point)
        return value + np.sum(penalties * point**2) / 2, gradient + penalties * point

    return minimize(penalised, start, iterations, build_metric(len(start)), 1)


def solve_l1(loss, penalties, start, iterations):
    metric, alphas = build_metric(len(start)), np.sqrt(penalties)
    return minimize_l1(loss.of(Likelihood()), start, alphas, iterations, metric, 1)


def solve_bundle(loss, penalties, start, iterations):
    labels = Labels(np.arange(loss.targets.n_labels))
    risk = loss.of(MaxMargin(LabelCosts()).for_labels(labels))
    return minimize_bundle(risk, Bundle.begin(risk, start, penalties, floor=0.0), iterations)


@pytest.mark.parametrize("solve", [solve_lbfgs, solve_l1, solve_bundle])
@settings(max_examples=4, deadline=None)
@given(PROBLEMS)
def test_with_penalties_in_the_same_units_they_do_not_matter(solve, problem):
    """u_j = unit_j w_j has the penalty of w_j if that is divided by the square of the unit."""
    seed, units = problem
    X, y = make_problem(seed)
    marginals = []
    for factors in ([1.0, 1.0, 1.0], units):
        loss, rows = make_loss([x * factors for x in X], y, scaled=True, reg_lambda=0)
        # A loss within a gap of the least one has weights within sqrt(2 gap / penalty) of the best.
        # A gap of 1e-13 of a loss of about 70 is as little as sums can show; 1e3 makes that 1e-7.
        penalty = 1e3 if solve is solve_bundle else 30.0
        penalties = np.full(loss.n_weights, penalty)
        penalties[: len(penalties) - 6] *= np.repeat(factors, 2) ** 2
        weights_of = loss.scaling.unscale
        penalties = weights_of(weights_of(penalties))
        tol = 1e-13 if solve is solve_bundle else 0.0
        iterations = Iterations(1000, tol)
        found = finish(solve(loss, penalties, np.zeros(len(penalties)), iterations))
        attributes, patterns = loss.split(weights_of(found.weights))
        offsets, trellis = loss.targets.offsets, loss.targets.trellis
        adders, arcs = [attributes.adder(rows, offsets, 1)], trellis.arc_scores(patterns)
        (scores,) = add_up(adders, offsets, arcs, trellis, parents=None, edge_shape=None)
        marginals.append(forward_backward(scores, pairs=None).marginals)
    np.testing.assert_allclose(*marginals, atol=1e-6)
