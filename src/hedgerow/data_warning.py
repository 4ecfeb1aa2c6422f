"""Warnings about data that can be used, but probably contain a mistake."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["DataWarning", "collect_warnings", "warn_user"]

# Messages of warnings, and their categories.
Collected = list[tuple[str, type[Warning]]]

_collected: ContextVar[Collected | None] = ContextVar("collected", default=None)


class DataWarning(UserWarning):
    """The data can be used, but probably contain a mistake.

    There are warnings about

    - a flat table without groups that looks like many sequences, and a file that is read as one
      sequence because its group column is missing;
    - group ids that are passed as ``sample_weight``;
    - a ``y``, ``groups`` or ``sample_weight`` with the pandas index of X in another order;
    - numbers that are stored as text;
    - test data with groups of the training data;
    - labels that the model does not know, and training data with a single label;
    - an ``eval_metric`` or ``early_stopping_metric`` without evaluation data;
    - a training set so small that the one sequence held out is a large share of it;
    - trees that no longer extend queries, since there are ``max_queries`` of them, see
      `hedgerow.relational.RelationalFeatures`.

    ``warnings.filterwarnings("ignore", category=hedgerow.DataWarning)`` silences them; ``"error"``
    instead of ``"ignore"`` turns them into errors.
    """


def warn_user(message: str, category: type[Warning] = DataWarning) -> None:
    """Warn at the line of the user's code that called the library, or collect the warning."""
    collected = _collected.get()
    if collected is not None:
        collected.append((message, category))
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(str(frame.f_globals.get("__name__", ""))):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def collect_warnings() -> Iterator[Collected]:
    """Collect the warnings of this thread within a ``with`` block, without showing them."""
    found: Collected = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "hedgerow"
