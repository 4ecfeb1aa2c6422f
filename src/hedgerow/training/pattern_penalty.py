"""Pattern penalty: how strongly the weight of each label pattern is held back.

A long pattern occurs seldom, and what its weight learns from a few sequences may not hold for
others; models of language back off from long runs of words for the same reason. How much is at
stake can be read off the training labels: the more of the runs of some length occur just once, the
more of those in new data were never seen (Good and Turing), and the more the weights of that length
are held back. Handwritten words of a small vocabulary, all of them seen many times, need no penalty
at any length; of runs of four phonemes five in six occur once in a thousand words, and
without a penalty they do more harm than good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.labels import Patterns, rare_shares
from hedgerow.objectives import Targets
from hedgerow.parameters import check_number, plain_value

__all__ = ["PatternLambda", "check_pattern_lambda", "pattern_penalties"]

PatternLambda = float | Sequence[float] | Literal["auto"] | None

# Penalty of a length all of whose runs occur just once. That it goes with the square of their share
# lies between what suits phonemes, stress marks and chunk labels best.
STRENGTH = 5.0


def check_pattern_lambda(value: Any) -> None:
    """Raise ValueError for a `pattern_lambda` that is wrong."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return
    plain = None if isinstance(value, str) else plain_value("pattern_lambda", value)
    if isinstance(plain, int | float):
        check_number("pattern_lambda", value, minimum=0)
    elif isinstance(plain, list) and plain:
        for place, strength in enumerate(plain):
            check_number(f"pattern_lambda[{place}]", strength, minimum=0)
    else:
        raise ValueError(
            f"pattern_lambda is {value!r}; expected a number, a list of numbers for patterns of 2, "
            "3 and more labels, 'auto' or None"
        )


def pattern_penalties(
    value: PatternLambda, patterns: Patterns, targets: Targets
) -> NDArray[np.float64] | None:
    """Strength of the L2 penalty of each pattern, (P,); None if none is asked for.

    Parameters
    ----------
    value
        ``pattern_lambda``, which has been checked: of all patterns; of those with 2, 3, ... labels,
        the last one for all that are longer; or "auto".
    patterns, targets
        The label patterns, and the training labels.
    """
    if value is None:
        return None
    if isinstance(value, str):
        shares = rare_shares(
            targets.codes,
            targets.offsets,
            targets.weights,
            patterns.longest,
            parents=targets.parents,
            n_labels=targets.n_labels,
            comm=targets.comm,
        )
        by_length: NDArray[np.float64] = STRENGTH * np.array([0.0, *shares]) ** 2
        return by_length[patterns.lengths - 1]
    strengths = np.atleast_1d(np.array(plain_value("pattern_lambda", value), np.float64))
    return strengths[np.minimum(patterns.lengths - 2, len(strengths) - 1)]
