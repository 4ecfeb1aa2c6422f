"""Line search: the step size along a direction in which a smooth loss decreases.

Strong Wolfe conditions: with the loss f(s) after a step of size s, a step is good enough if

    f(s) <= f(0) + DECREASE s f'(0)    and    |f'(s)| <= CURVATURE |f'(0)|.

Steps are doubled until some interval must contain a good one, which is then narrowed down (Nocedal
& Wright 2006, Algorithms 3.5 and 3.6). Value and slope are always known together here, so intervals
are cut at the minimum of the cubic interpolant (Eq. 3.59). scipy has a line search too; but if it
finds no step it warns, and warnings cannot be turned off for a single thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Trial", "search"]

DECREASE = 1e-4
CURVATURE = 0.9

MAX_TRIALS = 20
# If a cut is closer to an end of its interval than this share, the interval is halved instead.
MARGIN = 0.1


@dataclass(frozen=True)
class Trial:
    """A step, the loss there, and its slope along the direction."""

    step: float
    value: float
    slope: float


def search(
    try_step: Callable[[float], Trial],
    start: Trial,
    step: float,
    *,
    curvature: float = CURVATURE,
    largest: float = math.inf,
    max_trials: int = MAX_TRIALS,
) -> float | None:
    """A step that satisfies the strong Wolfe conditions, or None if none is found.

    It is the last one that was tried.

    Parameters
    ----------
    try_step
        Measures the loss after a step.
    start
        Step 0, where the slope is below 0.
    step
        The first one to try.
    curvature
        Replaces `CURVATURE`.
    largest
        Maximum step; it is accepted if the loss still decreases there.
    max_trials
        Maximum number of steps in each of the two parts of the search.
    """
    low = start
    for _ in range(max_trials):
        trial = try_step(step)
        if not _falls_enough(trial, start) or (low is not start and trial.value >= low.value):
            return _narrow_down(try_step, start, low, trial, curvature, max_trials)
        if _is_flat_enough(trial, start, curvature):
            return trial.step
        if trial.slope >= 0:
            return _narrow_down(try_step, start, trial, low, curvature, max_trials)
        if trial.step >= largest:
            return trial.step
        low, step = trial, min(2 * step, largest)
    return None


def _narrow_down(
    try_step: Callable[[float], Trial],
    start: Trial,
    low: Trial,
    high: Trial,
    curvature: float,
    max_trials: int,
) -> float | None:
    """A good step between two: at `low` the loss is lowest so far, and decreases towards `high`."""
    for _ in range(max_trials):
        trial = try_step(_cut(low, high))
        if not _falls_enough(trial, start) or trial.value >= low.value:
            high = trial
            continue
        if _is_flat_enough(trial, start, curvature):
            return trial.step
        if trial.slope * (high.step - low.step) >= 0:
            high = low
        low = trial
    return None


def _falls_enough(trial: Trial, start: Trial) -> bool:
    return trial.value <= start.value + DECREASE * trial.step * start.slope  # false for NaN


def _is_flat_enough(trial: Trial, start: Trial, curvature: float) -> bool:
    return abs(trial.slope) <= -curvature * start.slope


def _cut(low: Trial, high: Trial) -> float:
    """The minimum of the cubic with the values and slopes of both ends, or the middle."""
    width = high.step - low.step
    share = math.nan  # as a share of the way from low to high
    if all(map(math.isfinite, (low.value, high.value, low.slope, high.slope))):
        first = low.slope + high.slope - 3 * (high.value - low.value) / width
        square = first * first - low.slope * high.slope
        if square >= 0:
            second = math.copysign(math.sqrt(square), width)
            divisor = high.slope - low.slope + 2 * second
            if divisor != 0:
                share = 1 - (high.slope + second - first) / divisor
    if not MARGIN <= share <= 1 - MARGIN:
        share = 0.5
    return low.step + share * width
