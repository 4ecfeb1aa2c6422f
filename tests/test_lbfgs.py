"""L-BFGS: minima of smooth losses, and warnings if there is none."""

import warnings

import numpy as np
import pytest

from hedgerow import _core, lbfgs
from hedgerow.lbfgs import Iterations, backtrack, build_metric, finish, minimize


def run(loss, start, *, max_iter=200, tol=0.0):
    start = np.array(start, float)
    iterations = Iterations(max_iter, tol)
    found = finish(minimize(loss, start, iterations, build_metric(len(start)), 1))
    assert found.n_iter == len(iterations.losses)
    assert (np.diff(iterations.losses) <= 0).all()
    return found


def quartic(weights):
    """Flat at the minimum, far away from it steep beyond all measure."""
    return float(np.sum((weights - 1) ** 4)), 4 * (weights - 1) ** 3


def test_a_minimum_worked_by_hand():
    found = run(quartic, [3.0, -2.0])
    np.testing.assert_allclose(found.weights, 1, atol=1e-2)
    assert (found.converged, found.steepest) == (True, None)


def test_steps_are_halved_where_no_step_meets_the_wolfe_conditions(monkeypatch):
    monkeypatch.setattr(lbfgs._Ray, "search", lambda *_: None)
    found = run(quartic, [3.0, -2.0])
    assert found.n_iter > 5
    assert found.loss < 1e-3
    assert found.steepest is None


def test_a_gradient_that_is_huge_asks_for_a_tiny_step():
    def loss(weights):
        away = 1e9 * weights - 1
        return float(np.sum(np.sqrt(1 + away**2))), 1e9 * away / np.sqrt(1 + away**2)

    found = run(loss, [0.0, 2e-9])
    assert found.loss == pytest.approx(2.0)


@pytest.mark.parametrize("tol", [0.0, 1e-5])
def test_a_slope_that_leads_nowhere_is_no_minimum(tol):
    def loss(weights):  # the second slope has the wrong sign
        return float(np.sum(weights**2)), weights * [0.1, -2.0]

    found = run(loss, [1.0, 1.0], tol=tol)
    assert not found.converged
    assert found.steepest == 1


def test_a_loss_that_is_nowhere_finite_is_no_minimum():
    def loss(weights):
        return (1.0, np.array([3.0, -4.0])) if not weights.any() else (np.nan, weights)

    found = run(loss, [0.0, 0.0])
    assert (found.n_iter, found.converged, found.steepest) == (0, False, 1)


@pytest.mark.parametrize("slope", [5e-324, 1e-310, 1e-200])
def test_slopes_whose_squares_are_zero(slope):
    def loss(weights):
        return float(np.sum(weights * slope)), np.full(2, slope)

    found = run(loss, [0.0, 1.0])
    assert np.isfinite(found.weights).all()
    assert found.steepest is None


def test_no_direction_is_no_step():
    def at(size):
        raise AssertionError("there is nowhere to go")

    iterations = Iterations(1, 0.0)
    nothing = np.zeros(2)
    found = backtrack(at, nothing, 1.0, np.ones(2), nothing, iterations, fresh=True)
    assert (found.point, found.steepest) == (None, None)


def test_rounding_errors_are_no_slope():
    """Where the loss cannot fall by more than they are, it is at its minimum."""

    def loss(weights):
        return 1e6 + float(np.sum(np.cosh(weights))), np.sinh(weights)

    found = run(loss, [1e-3, 2e-3, -1e-3])
    assert (found.converged, found.steepest) == (True, None)


def test_filters_of_warnings_are_left_alone():
    """They belong to all threads: to change them in one of several fits changes them for all."""
    before, seen = list(warnings.filters), []

    def loss(weights):
        seen.append(list(warnings.filters) == before)
        return float(np.abs(weights).sum()), np.sign(weights) * 1e3  # no step is good enough

    finish(minimize(loss, np.ones(2), Iterations(3, 0.0), build_metric(2), 1))
    assert all(seen)
    assert len(seen) > 2


def test_steps_that_were_not_remembered_are_refused():
    hessian = _core.InverseHessian(3, 2)
    steps, products = np.ones(3, np.float32), np.ones(2)
    with pytest.raises(
        ValueError, match=r"steps, changes and products must have the same number of pairs"
    ):
        hessian.restore(steps, np.ones(6, np.float32), products)
    with pytest.raises(ValueError, match=r"cannot come from L-BFGS"):
        hessian.restore(steps, steps, -products)
    hessian.restore(steps, 2 * steps, products)
    assert [array.tolist() for array in hessian.to_arrays()] == [[1] * 3, [2] * 3, [1, 1]]
