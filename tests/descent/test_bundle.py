"""The bundle method: minima of convex losses that are not smooth."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from hedgerow.descent import bundle
from hedgerow.descent.bundle import Bundle, minimize_bundle
from hedgerow.lbfgs import Iterations
from reference.descents import follow


def run(risk, start, **options):
    settings = {"reg_lambda": 1.0, "max_iter": 500, "tol": 1e-6, **options}
    begin = {name: settings.pop(name) for name in ("reg_lambda", "floor") if name in settings}
    bundle = Bundle.begin(risk, np.array(start, float), **begin)
    return follow(minimize_bundle(risk, bundle, Iterations(**settings)))


def absolute(w):
    """|w - 3|, whose minimum with w^2 / 2 is at 1, not at 3."""
    return float(np.abs(w - 3).sum()), np.sign(w - 3)


def hinge(n_rows=60, n_weights=4, seed=0):
    """Hinge losses of random rows, as of a support vector machine."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_weights))
    signs = np.where(rows[:, 0] + rng.normal(size=n_rows) > 0, 1.0, -1.0)

    def risk(w):
        margins = signs * (rows @ w)
        violated = margins < 1
        return float((1 - margins)[violated].sum()), -(signs * violated) @ rows

    return risk, rows, signs


def solve_exactly(rows, signs, reg_lambda):
    """The same by its dual, with another solver."""
    kernel = (signs[:, None] * rows) @ (signs[:, None] * rows).T / reg_lambda
    found = minimize(
        lambda a: (0.5 * a @ kernel @ a - a.sum(), kernel @ a - 1),
        np.full(len(rows), 0.5),
        jac=True,
        bounds=[(0, 1)] * len(rows),
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10000},
    )
    return -found.fun


def test_a_minimum_worked_by_hand():
    found, _ = run(absolute, [0.0, 10.0])
    np.testing.assert_allclose(found.weights, [1.0, 1.0], atol=1e-2)
    assert found.loss == pytest.approx(5.0, rel=2e-6)
    assert found.converged


@pytest.mark.parametrize("reg_lambda", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("floor", [-np.inf, 0.0])
def test_a_support_vector_machine(reg_lambda, floor):
    risk, rows, signs = hinge()
    found, _ = run(risk, np.zeros(4), reg_lambda=reg_lambda, floor=floor)
    assert found.converged
    assert found.loss == pytest.approx(solve_exactly(rows, signs, reg_lambda), rel=1e-5)


def test_a_piecewise_linear_risk_with_almost_no_penalty():
    rng = np.random.default_rng(1)
    slopes, offsets = rng.normal(size=(40, 3)), rng.normal(size=40)
    slopes = np.vstack([slopes, -slopes])  # bounded below
    offsets = np.append(offsets, offsets)

    def risk(w):
        values = slopes @ w + offsets
        return float(values.max()), slopes[values.argmax()]

    found, _ = run(risk, np.ones(3), reg_lambda=1e-6, tol=1e-5)
    exact = linprog(
        [0, 0, 0, 1], np.column_stack([slopes, -np.ones(80)]), -offsets, bounds=[(None, None)] * 4
    )
    assert found.loss == pytest.approx(exact.fun, rel=1e-3)


def test_reports_never_rise_and_end_with_the_result():
    risk, _, _ = hinge(seed=2)
    found, reports = run(risk, np.full(4, 5.0))
    losses = [loss for _, loss in reports]
    assert (np.diff(losses) <= 0).all()
    assert losses[-1] == found.loss
    np.testing.assert_array_equal(reports[-1][0], found.weights)
    assert len(reports) == found.n_iter
    for weights, loss in reports:
        assert loss == pytest.approx(risk(weights)[0] + 0.5 * weights @ weights)


def test_a_start_at_the_minimum_is_found_out_soon():
    risk, _, _ = hinge(seed=3)
    cold, _ = run(risk, np.zeros(4))
    warm, _ = run(risk, cold.weights)
    assert warm.loss <= cold.loss
    assert warm.n_iter < cold.n_iter


@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_the_tolerance_is_kept(tol):
    risk, rows, signs = hinge(seed=4)
    found, _ = run(risk, np.zeros(4), tol=tol)
    exact = solve_exactly(rows, signs, 1.0)
    assert found.loss - exact <= tol * found.loss + 1e-9


def test_few_planes_are_enough(monkeypatch):
    risk, rows, signs = hinge(n_weights=8, seed=5)
    monkeypatch.setattr(bundle, "MEMORY", 5)
    found, _ = run(risk, np.zeros(8), max_iter=3000, tol=1e-4)
    assert found.converged
    assert found.loss == pytest.approx(solve_exactly(rows, signs, 1.0), rel=1e-3)


def test_max_iter():
    risk, _, _ = hinge(seed=6)
    found, reports = run(risk, np.zeros(4), max_iter=3)
    assert (found.n_iter, len(reports), found.converged) == (3, 3, False)


def test_without_a_penalty():
    with pytest.raises(ValueError, match=r"^reg_lambda is 0; without a penalty there is no stop"):
        run(absolute, [0.0], reg_lambda=0)
