"""Steps of the weights of label patterns in a round."""

from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from hedgerow.boosting.settings import EXACT_ROUNDS
from hedgerow.boosting.transitions import EXACT_ITERATIONS, PatternBound, exact_step
from hedgerow.comm import ALONE
from hedgerow.labels import Patterns

PAIRS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def step_by_bound(slopes, curvatures, *, patterns=PAIRS, resistance=1.0, max_step=np.inf):
    blank = SimpleNamespace(
        trellis=None,
        weights=None,
        mean_weights=None,
        offsets=np.array([0, 9]),
        parents=None,
        comm=ALONE,
    )
    slopes = np.array(slopes)
    bound = PatternBound(Patterns.of(patterns[: len(slopes)]), blank, learning_rate=1.0)
    resistances = np.full(len(slopes), resistance)
    return bound.step(slopes, np.array(curvatures), resistances, max_step)


def test_a_bound_step_worked_by_hand():
    step = step_by_bound([2.0, -1.0, 0.0, 30.0], [3.0, 0.0, 5.0, 1.0])
    assert step.tolist() == [-0.5, 1.0, 0.0, -15.0]


def test_large_moves_grow_with_their_logarithm():
    patterns = [(0, 1), (1, 1), (0, 0, 1)]
    step = step_by_bound([-3.0, 0.002, -1.0], [1.0, 0.0, 0.0], patterns=patterns, max_step=0.5)
    # The longest pattern's own step is 1: it moves by as much more than the pair that it ends with.
    pair = 0.5 * np.log1p((3.0 / 2) / 0.5)
    np.testing.assert_allclose(step[0], pair)
    np.testing.assert_allclose(step[1], -0.002, rtol=0.01)
    np.testing.assert_allclose(step[0] + step[2], np.log1p(3.0 / 2 + 1))


def test_where_nothing_curves_nothing_moves():
    assert step_by_bound([2.0, 1.0], [0.0, 4.0], resistance=0.0).tolist() == [0.0, -0.25]


def quadratic(matrix, goal):
    def measure(point):
        away = point - goal
        return float(away @ matrix @ away) / 2, matrix @ away

    return measure


def test_exact_steps_come_to_the_lowest_point():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    matrix, goal = root @ root.T + np.eye(4), rng.normal(size=4)
    point = np.zeros(4)
    for _ in range(20):
        point = point + exact_step(
            quadratic(matrix, goal), point, np.ones(4), reg_lambda=0.0, n_threads=1
        )
    np.testing.assert_allclose(point, goal, atol=1e-4)


def test_an_exact_step_is_held_back_by_lambda():
    # The loss is (w - 1)^2 / 2: with lambda the step from 0 is 1 / (1 + lambda).
    measure = quadratic(np.eye(1), np.ones(1))
    for reg_lambda in (0.0, 1.0, 4.0):
        step = exact_step(measure, np.zeros(1), np.ones(1), reg_lambda=reg_lambda, n_threads=1)
        assert step[0] == pytest.approx(1 / (1 + reg_lambda), rel=1e-4)
    # It holds back the step, not the weights: from the minimum nothing moves.
    step = exact_step(measure, np.ones(1), np.zeros(1), reg_lambda=4.0, n_threads=1)
    assert step[0] == pytest.approx(0, abs=1e-9)


def test_an_exact_step_never_makes_things_worse_and_is_short_of_work():
    rng = np.random.default_rng(1)
    for _ in range(20):
        root = rng.normal(size=(6, 6))
        measure = quadratic(root @ root.T, rng.normal(size=6))
        start = rng.normal(size=6)
        calls = []

        def counted(point, measure=measure, calls=calls):
            calls.append(point)
            return measure(point)

        step = exact_step(counted, start, rng.random(6), reg_lambda=0.1, n_threads=1)
        assert measure(start + step)[0] <= measure(start)[0]
        assert len(calls) <= 10 * EXACT_ITERATIONS


def test_rare_and_frequent_patterns_come_to_the_lowest_point_together():
    """In units of their curvature the loss is round, and one line search ends at its minimum."""
    rng = np.random.default_rng(4)
    counts, goal = 10.0 ** np.array([-2, 0, 1, 2]), rng.normal(size=4)
    measure = quadratic(np.diag(counts), goal)
    step = exact_step(measure, np.zeros(4), counts, reg_lambda=0.0, n_threads=1)
    np.testing.assert_allclose(step, goal, rtol=1e-3)
    # Where no pattern is expected to occur nothing curves, and nothing moves.
    step = exact_step(measure, np.zeros(4), np.zeros(4), reg_lambda=0.0, n_threads=1)
    assert step.tolist() == [0.0] * 4


def test_exact_steps_do_not_depend_on_the_threads_of_blas():
    """Vectors are long enough for BLAS to use several threads."""
    rng = np.random.default_rng(2)
    goal, curvatures = rng.normal(size=30_000), rng.uniform(0.1, 10, 30_000)

    def measure(point):
        away = point - goal
        return float(np.sum(curvatures * away**2)) / 2, curvatures * away

    steps = []
    for n_threads in (1, 4):
        with threadpool_limits(n_threads):
            start = np.zeros(30_000)
            steps.append(exact_step(measure, start, curvatures, reg_lambda=1.0, n_threads=1))
    np.testing.assert_array_equal(*steps)


def test_no_patterns_no_step():
    empty = np.zeros(0)
    assert exact_step(lambda point: 1 / 0, empty, empty, reg_lambda=1.0, n_threads=1).shape == (0,)
    assert step_by_bound([], []).shape == (0,)


@pytest.mark.parametrize(
    ("step", "longest", "expected"),
    [
        ("auto", 2, []),
        ("auto", 3, [32, 40, 48]),
        ("bound", 5, []),
        ("exact", 2, [8, 16, 24, 32, 40, 48]),
        ("exact", 1, []),
    ],
)
def test_weights_are_fitted_in_every_eighth_round_once_trees_have_learnt(step, longest, expected):
    rounds = [number for number in range(1, 50) if EXACT_ROUNDS[step].include(number, longest)]
    assert rounds == expected
