"""L-BFGS with an L1 penalty, against another solver of the same problem."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from hedgerow.descent.owlqn import minimize_l1
from hedgerow.lbfgs import Iterations, build_metric
from reference.descents import follow
from reference.split import minimize_split


def logistic(rng, n_rows, n_weights, correlation):
    """The loss of a logistic regression on random rows."""
    rows = rng.normal(size=(n_rows, n_weights)) + correlation * rng.normal(size=(n_rows, 1))
    signs = np.where(rows[:, 0] + rng.normal(size=n_rows) > 0, 1.0, -1.0)

    def loss(weights):
        margins = signs * (rows @ weights)
        slopes = -signs * expit(-margins)
        return float(np.logaddexp(0, -margins).sum()), slopes @ rows

    return loss


def run(loss, start, reg_alpha, max_iter=2000, n_threads=1):
    iterations, metric = Iterations(max_iter, 0.0), build_metric(len(start))
    return follow(minimize_l1(loss, start, reg_alpha, iterations, metric, n_threads))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_the_minimum_of_another_solver(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    n_weights = data.draw(st.integers(1, 12))
    correlation = data.draw(st.sampled_from([0.0, 1.0, 3.0]))
    reg_alpha = data.draw(st.sampled_from([0.3, 1.0, 6.0]))
    loss = logistic(rng, 40, n_weights, correlation)
    start = data.draw(st.sampled_from([0.0, 1.0])) * rng.normal(size=n_weights)
    expected, value = minimize_split(loss, start, reg_alpha)
    found, reports = run(loss, start, reg_alpha)
    assert found.loss == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(found.weights, expected, atol=1e-3)
    assert found.n_iter == len(reports)
    values = [value for _, value in reports]
    assert all(np.diff(values) < 0)


def test_a_minimum_worked_by_hand():
    """(w - 3)^2 / 2 with |w| has its minimum at 2; with 4 |w| at zero, exactly."""

    def loss(weights):
        return float(((weights - 3) ** 2).sum() / 2), weights - 3

    found, _ = run(loss, np.array([-5.0]), 1.0)
    np.testing.assert_allclose(found.weights, [2.0], rtol=1e-6)
    assert found.loss == pytest.approx(2.5)
    assert found.converged
    found, _ = run(loss, np.array([-5.0]), 4.0)
    assert found.weights.tolist() == [0.0]
    assert run(loss, np.zeros(1), 4.0)[1] == []  # it is there already


def test_enough_is_enough():
    loss = logistic(np.random.default_rng(0), 40, 10, 1.0)
    found, reports = run(loss, np.zeros(10), 0.5, max_iter=3)
    assert (found.n_iter, len(reports), found.converged) == (3, 3, False)
    np.testing.assert_array_equal(found.weights, reports[-1][0])


def test_the_same_bits_for_any_number_of_threads():
    loss = logistic(np.random.default_rng(1), 8, 100_000, 0.0)
    one, _ = run(loss, np.zeros(100_000), 2.0, max_iter=4)
    three, _ = run(loss, np.zeros(100_000), 2.0, max_iter=4, n_threads=3)
    np.testing.assert_array_equal(one.weights, three.weights)


def test_a_gradient_that_exceeds_the_penalty_by_rounding_moves_nothing():
    def loss(weights):
        return float((weights[0] - 2) ** 2) / 2, np.array([weights[0] - 2, 1 + 2**-50])

    found, _ = run(loss, np.zeros(2), 1.0)
    assert found.weights.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("slope", [5e-324, 1e-310, 1e-200])
def test_slopes_whose_squares_are_zero(slope):
    def loss(weights):
        return float((weights[0] - 1) ** 2) / 2, np.array([weights[0] - 1, slope])

    found, _ = run(loss, np.array([0.0, 0.0]), 0.0, max_iter=1)
    assert found.weights.tolist() == [1.0, -slope]
    found, _ = run(loss, np.array([1.0, 0.0]), 0.0)
    assert (found.n_iter, found.converged, found.steepest) == (0, True, None)
