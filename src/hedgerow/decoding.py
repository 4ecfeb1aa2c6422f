"""Decoding by marginals: the labelling that is expected to have the most labels right."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.labels import Constraints, pin_known
from hedgerow.trellis import Chain, Scores, viterbi

__all__ = ["Decode", "decode_marginals"]

Decode = Literal["viterbi", "marginal"]


def decode_marginals(
    marginals: NDArray[np.float64],
    offsets: NDArray[np.int64],
    constraints: Constraints | None,
    *,
    known: NDArray[np.int32] | None = None,
    n_threads: int,
) -> NDArray[np.int32]:
    """The most probable label of each position, (N,).

    Under constraints it is the labelling, of those that are allowed, whose labels have the largest
    sum of probabilities. ``marginals`` (N, K) may be changed; ``known`` (N,) has codes of labels
    that are known, and -1.
    """
    if constraints is None:
        codes: NDArray[np.int32] = marginals.argmax(axis=1).astype(np.int32)
        return codes
    constraints.restrict(marginals, offsets)
    if known is not None:
        pin_known(marginals, known)
    arcs = np.where(constraints.allowed, 0.0, -np.inf)
    chain = Chain(marginals.shape[1])
    return viterbi(Scores(marginals, arcs, offsets, chain), n_threads=n_threads)
