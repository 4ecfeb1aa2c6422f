"""McNemar's test: whether two models are right equally often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.counting import count_of

__all__ = ["McNemar", "mcnemar"]


@dataclass(frozen=True)
class McNemar:
    """Result of McNemar's test.

    Attributes
    ----------
    n_only_a, n_only_b : int
        Number of cases that only the first, or only the second model got right.
    p_value : float
        Probability of a split at least this uneven if both models are equally good.
    """

    n_only_a: int
    n_only_b: int
    p_value: float


def mcnemar(right_a: ArrayLike, right_b: ArrayLike) -> McNemar:
    """Test whether two models are right equally often: McNemar's test, two-sided and exact.

    Cases that both models get right, or both get wrong, do not show which one is better. If they
    are equally good, each is right in half of the other cases: a binomial distribution.

    The test assumes independent cases. Positions of a sequence are not independent, so their
    p-value is too small: compare whole sequences instead.

    Parameters
    ----------
    right_a, right_b : (N,) bool
        Whether each model is right, for the same cases.

    Examples
    --------
    >>> from hedgerow.stats import mcnemar
    >>> mcnemar([True] * 9 + [False], [False] * 8 + [True] * 2)
    McNemar(n_only_a=8, n_only_b=1, p_value=0.0390625)
    """
    from scipy.stats import binomtest

    a, b = _read("right_a", right_a), _read("right_b", right_b)
    if len(a) != len(b):
        raise ValueError(
            f"right_a has {count_of(len(a), 'entry')} but right_b has {len(b)}; compare the models "
            "on the same items"
        )
    n_only_a, n_only_b = int(np.sum(a & ~b)), int(np.sum(b & ~a))
    n_differ = n_only_a + n_only_b
    p_value = float(binomtest(n_only_a, n_differ).pvalue) if n_differ else 1.0
    return McNemar(n_only_a, n_only_b, p_value)


def _read(name: str, right: ArrayLike) -> NDArray[np.bool_]:
    expected = f"{name} must be a 1-D array of bools, True for each item that the model gets right"
    try:
        values = np.asarray(right)
    except ValueError:
        raise ValueError(f"{expected}; got lists of different lengths") from None
    if values.ndim != 1 or (values.dtype != np.bool_ and values.size):
        raise ValueError(f"{expected}; got shape {values.shape} and dtype {values.dtype}")
    return values.astype(np.bool_)
