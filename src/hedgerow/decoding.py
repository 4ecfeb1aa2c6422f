"""Decoding: from scores or marginals to labels, with one of two decoders.

Viterbi finds the most probable labelling of a sequence as a whole; decoding by marginals finds the
labelling with the largest expected number of correct labels.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels import Constraints, pin_known
from hedgerow.trellis import Chain, Scores, forward_backward, viterbi

__all__ = [
    "DECODERS",
    "Decode",
    "DecodeParameter",
    "check_decode",
    "decode_marginals",
    "decode_scores",
]

Decode = Literal["viterbi", "marginal"]
DecodeParameter = Literal["auto", "viterbi", "marginal"]
DECODERS: tuple[Decode, ...] = ("viterbi", "marginal")


def check_decode(decode: Any) -> None:
    """Raise ValueError unless it is a decoder, or None for the model's own."""
    if not (decode is None or (isinstance(decode, str) and decode in DECODERS)):
        raise ValueError(f"decode is {decode!r}; expected 'viterbi', 'marginal' or None")


def decode_scores(scores: Scores, decode: Decode, *, n_threads: int) -> NDArray[np.int32]:
    """Labels of all positions, (N,)."""
    if decode == "viterbi":
        return viterbi(scores, n_threads=n_threads)
    marginals = forward_backward(scores, pairs=None, n_threads=n_threads).marginals
    constraints = scores.trellis.constraints
    return decode_marginals(
        marginals, scores.offsets, constraints, parents=scores.parents, n_threads=n_threads
    )


def decode_marginals(
    marginals: NDArray[np.float64],
    offsets: NDArray[np.int64],
    constraints: Constraints | None,
    *,
    known: NDArray[np.int32] | None = None,
    parents: NDArray[np.int32] | None = None,
    n_threads: int,
) -> NDArray[np.int32]:
    """The most probable label of each position, (N,).

    With constraints it is the allowed labelling whose labels have the largest sum of probabilities.
    ``marginals`` (N, K) may be overwritten; ``known`` (N,) are codes of known labels, or -1;
    ``parents`` as in `Scores`.
    """
    if constraints is None:
        return _core.find_most_probable(marginals, n_threads)
    constraints.restrict(marginals, offsets, parents)
    if known is not None:
        pin_known(marginals, known)
    arcs = np.where(constraints.allowed, 0.0, -np.inf)
    chain = Chain(marginals.shape[1])
    scores = Scores(marginals, arcs, offsets, chain, parents=parents)
    return viterbi(scores, n_threads=n_threads)
