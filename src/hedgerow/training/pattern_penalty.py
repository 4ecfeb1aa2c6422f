"""Pattern penalty: the strength of the L2 penalty of each label pattern.

A long pattern is rare, and what its weight learns from a few sequences may not hold for others;
language models back off from long n-grams for the same reason. The training labels show how severe
this is: the larger the share of the distinct label n-grams that occur only once, the more n-grams
of new data are unseen in training (Good and Turing), and the larger the penalty for patterns of n
labels. Handwritten words from a small vocabulary, each seen many times, need no penalty at any
length; of the distinct 4-grams of phonemes in a thousand words, five in six occur once, and without
a penalty their weights do more harm than good.
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

# Penalty of a pattern length if all of its n-grams occur only once; otherwise it is multiplied by
# the square of the share that do. The square is a compromise between the best choices for phonemes,
# stress marks and chunk labels.
STRENGTH = 5.0


def check_pattern_lambda(value: Any) -> None:
    """Raise ValueError for an invalid `pattern_lambda`."""
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
    """Strength of the L2 penalty of each pattern, (P,); None if `pattern_lambda` is None.

    Parameters
    ----------
    value
        ``pattern_lambda``, already checked: for all patterns; for those with 2, 3, ... labels, the
        last one also for longer patterns; or "auto".
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
