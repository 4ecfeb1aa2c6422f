"""Choice of the decoder with the higher accuracy on sequences not used for training.

If the probabilities of a model are correct, marginals maximise the expected number of correct
labels. They are not correct if the model is wrong about how labels depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from hedgerow.decoding import Decode, decode_scores
from hedgerow.objectives import Targets
from hedgerow.sequences import cut_runs
from hedgerow.trellis import Scores

__all__ = ["better_decoder", "count_right", "lead_of_marginals", "proven_decoder"]

# Number of positions whose marginals are in memory at a time.
BATCH = 1 << 16
# Standard errors by which Viterbi must be ahead: a one-sided test at the 5 % level.
CRITICAL = 1.645


def better_decoder(leads: NDArray[np.float64], otherwise: Decode) -> Decode:
    """The decoder with the higher accuracy, `otherwise` if they are equal.

    ``leads`` (S,) are those of `lead_of_marginals`.
    """
    total = leads.sum()
    if total == 0:
        return otherwise
    return "marginal" if total > 0 else "viterbi"


def proven_decoder(leads: NDArray[np.float64]) -> Decode:
    """Viterbi if its accuracy is significantly higher, otherwise marginals.

    ``leads`` (S,) are those of S sequences, at least two, which are independent of each other.
    """
    leads = np.sort(leads)  # so that their order does not matter
    error = np.sqrt(len(leads) * leads.var(ddof=1))  # of their sum
    return "viterbi" if leads.sum() < -CRITICAL * error else "marginal"


def lead_of_marginals(
    parts: Iterable[Scores], targets: Targets, *, n_threads: int
) -> NDArray[np.float64]:
    """Number of correct labels in each sequence by marginals, minus that by Viterbi, (S,).

    ``parts`` are the scores of all sequences, in runs of consecutive ones. Only known labels are
    used, with their weights.
    """
    leads = [np.empty(0)]
    for scores, part in targets.along(_cut(parts)):
        single, whole = (
            decode_scores(scores, decode, n_threads=n_threads) == part.codes
            for decode in ("marginal", "viterbi")
        )
        ahead = single.astype(np.float64) - whole
        if part.weights is not None:
            ahead *= part.weights
        sums = np.add.reduceat(np.append(ahead, 0.0), part.offsets[:-1])
        leads.append(np.where(np.diff(part.offsets) > 0, sums, 0.0))
    return np.concatenate(leads)


def count_right(
    parts: Iterable[Scores], targets: Targets, decode: Decode, *, n_threads: int
) -> int:
    """Number of known labels that a decoder predicts correctly."""
    return sum(
        int(np.sum(decode_scores(scores, decode, n_threads=n_threads) == part.codes))
        for scores, part in targets.along(_cut(parts))
    )


def _cut(parts: Iterable[Scores]) -> Iterator[Scores]:
    for scores in parts:
        for first, stop in cut_runs(scores.offsets, BATCH):
            yield scores.part(slice(first, stop))
