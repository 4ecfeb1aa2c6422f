"""The line search against the conditions that it promises to meet."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.line_search import CURVATURE, DECREASE, Trial, search


class Counted:
    """A function of the step with its slope, which counts how often it is asked."""

    def __init__(self, value, slope):
        self.value, self.slope, self.n_calls = value, slope, 0

    def __call__(self, step):
        self.n_calls += 1
        return Trial(step, self.value(step), self.slope(step))


def check(function, first):
    start = Trial(0.0, function.value(0.0), function.slope(0.0))
    found = search(function, start, first)
    assert found is not None
    assert function.value(found) <= start.value + DECREASE * found * start.slope
    assert abs(function.slope(found)) <= -CURVATURE * start.slope
    return found


@given(st.floats(-6, 6), st.floats(-3, 3), st.floats(-3, 3))
def test_parabolas(curvature, slope, first):
    """f(s) = c/2 s^2 - g s, from first steps that are far too short or too long."""
    c, g = 10.0**curvature, 10.0**slope
    function = Counted(lambda s: c / 2 * s * s - g * s, lambda s: c * s - g)
    check(function, g / c * 10.0**first)
    assert function.n_calls < 30


@given(st.floats(0.01, 5), st.floats(0.01, 100))
def test_losses_like_those_of_training(scale, first):
    """log(1 + exp(-s)) falls for ever, more and more slowly; the penalty ends that."""

    def value(s):
        return math.log1p(math.exp(-s * scale)) + 0.01 * s * s

    def slope(s):
        return -scale / (1 + math.exp(s * scale)) + 0.02 * s

    check(Counted(value, slope), first)


def test_a_step_that_is_good_is_taken_at_once():
    function = Counted(lambda s: (s - 1) ** 2, lambda s: 2 * (s - 1))
    assert check(function, 1.0) == 1.0
    assert function.n_calls == 1


def test_worked_by_hand():
    """(s - 1)^2 from 4, where it rises: the cubic through both ends is the parabola itself."""
    function = Counted(lambda s: (s - 1) ** 2, lambda s: 2 * (s - 1))
    assert search(function, Trial(0.0, 1.0, -2.0), 4.0) == pytest.approx(1.0)
    assert function.n_calls == 2


@pytest.mark.parametrize("beyond", [math.inf, math.nan])
def test_where_there_is_no_loss(beyond):
    """From a step on the loss is no number: a shorter one is found."""
    function = Counted(
        lambda s: (s - 0.5) ** 2 if s < 0.7 else beyond,
        lambda s: 2 * (s - 0.5) if s < 0.7 else beyond,
    )
    assert check(function, 64.0) < 0.7


def test_no_step_lowers_the_loss():
    """A gradient that is wrong: the loss rises where it should fall."""
    assert search(Counted(lambda s: s, lambda s: -1.0), Trial(0.0, 0.0, -1.0), 1.0) is None


def test_the_loss_falls_for_ever():
    assert search(Counted(lambda s: -s, lambda s: -1.0), Trial(0.0, 0.0, -1.0), 1.0) is None


@given(st.floats(0.01, 0.5), st.floats(-3, 3))
def test_as_flat_as_is_asked_for(curvature, first):
    function = Counted(lambda s: s**4 / 4 - s, lambda s: s**3 - 1)
    start = Trial(0.0, 0.0, -1.0)
    found = search(function, start, 10.0**first, curvature=curvature)
    assert found is not None
    assert abs(function.slope(found)) <= curvature


def test_no_step_is_larger_than_is_allowed():
    function = Counted(lambda s: -s, lambda s: -1.0)
    assert search(function, Trial(0.0, 0.0, -1.0), 1.0, largest=5.0) == 5.0
    assert function.n_calls == 4  # 1, 2, 4 and 5


def test_no_more_trials_than_are_allowed():
    function = Counted(lambda s: -s, lambda s: -1.0)
    assert search(function, Trial(0.0, 0.0, -1.0), 1.0, max_trials=3) is None
    assert function.n_calls == 3
    wrong = Counted(lambda s: s, lambda s: -1.0)
    assert search(wrong, Trial(0.0, 0.0, -1.0), 1.0, max_trials=3) is None
    assert wrong.n_calls == 4
