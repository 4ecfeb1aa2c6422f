"""The decoder of a model: the one that is asked for, or the one that suits the model better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.decoding import Decode, DecodeParameter, decode_marginals, decode_scores
from hedgerow.objectives import Targets, TrainingObjective
from hedgerow.sequences import cut_runs
from hedgerow.training.eval_sets import EvalSet
from hedgerow.training.update import Update
from hedgerow.trellis import Scores, forward_backward, viterbi

__all__ = ["choose_decoder", "count_right"]

Form = TypeVar("Form")

# Positions whose marginals are held at once, and about how many of a training set are decoded.
BATCH = 1 << 16
SAMPLE = 1 << 18
# Without an eval set, marginals decode where this share of the labels repeat the one before, or
# where the model expects them to get at least this share of the labels more right; but not where
# they get this share of the training labels fewer right. benchmarks/decoding.py compares the choice
# with both decoders.
PERSISTENT, LEAST_GAIN, MOST_LOSS = 0.5, 0.0005, 0.01


def choose_decoder(
    asked: DecodeParameter,
    objective: TrainingObjective,
    update: Update[Form],
    eval_sets: Sequence[EvalSet[Form]],
    targets: Targets,
) -> Decode:
    """The decoder of a model after its training.

    Unless one is asked for, it is the one that labels more positions of the last eval set right.
    Without an eval set it is the one that the objective trains for, or else `suit_training` says.
    """
    if asked != "auto":
        return asked
    if eval_sets:
        labelled, n_threads = eval_sets[-1].targets, update.n_threads
        both = Decoded.of(update.score_kept(eval_sets[-1].sequences), labelled, n_threads)
        if both.lead != 0:
            return "marginal" if both.lead > 0 else "viterbi"
        return objective.decode or "viterbi"
    if objective.decode is not None:
        return objective.decode
    every = max(1, len(targets.codes) // SAMPLE)
    both = Decoded.of(update.score_training(), targets, update.n_threads, every)
    return suit_training(both, targets)


def suit_training(both: Decoded, targets: Targets) -> Decode:
    """The decoder that suits a model of the training sequences, whose labels it has seen."""
    if both.lead < -MOST_LOSS:
        return "viterbi"
    is_persistent = share_repeated(targets) >= PERSISTENT
    return "marginal" if is_persistent or both.gain >= LEAST_GAIN else "viterbi"


def share_repeated(targets: Targets) -> float:
    """How often a known label repeats the known label before it."""
    codes, offsets = targets.codes, targets.offsets
    inner = (codes[1:] >= 0) & (codes[:-1] >= 0)
    inner[offsets[(offsets > 0) & (offsets < len(codes))] - 1] = False
    n_inner = int(np.count_nonzero(inner))
    n_repeated = int(np.count_nonzero(inner & (codes[1:] == codes[:-1])))
    return n_repeated / max(n_inner, 1)


@dataclass(frozen=True)
class Decoded:
    """Labels by marginals beside those by Viterbi.

    Attributes
    ----------
    lead : float
        The share of the known labels, as much as each of them counts, that marginals get right
        beyond those that Viterbi does.
    gain : float
        The share of all labels that the model expects them to get right beyond those.
    """

    lead: float
    gain: float

    @classmethod
    def of(
        cls, parts: Iterable[Scores], targets: Targets, n_threads: int, every: int = 1
    ) -> Decoded:
        """Decode sequences, whose scores come in runs of consecutive ones, by both.

        Of many, one run out of `every` few.
        """
        lead, gain, weight, n_positions = 0.0, 0.0, 0.0, 0
        for scores, part in islice(targets.along(_cut(parts)), 0, None, every):
            marginals = forward_backward(scores, pairs=None, n_threads=n_threads).marginals
            whole = viterbi(scores, n_threads=n_threads)
            gain -= _pick(marginals, whole)
            constraints = scores.trellis.constraints
            single = decode_marginals(marginals, scores.offsets, constraints, n_threads=n_threads)
            gain += _pick(marginals, single)
            lead += _count(single == part.codes, part) - _count(whole == part.codes, part)
            weight += part.total_weight
            n_positions += len(part.codes)
        return cls(lead / weight if weight > 0 else 0.0, gain / max(n_positions, 1))


def count_right(
    parts: Iterable[Scores], targets: Targets, decode: Decode, *, n_threads: int
) -> int:
    """How many of the known labels a decoder gets right."""
    return sum(
        int(np.sum(decode_scores(scores, decode, n_threads=n_threads) == part.codes))
        for scores, part in targets.along(_cut(parts))
    )


def _cut(parts: Iterable[Scores]) -> Iterator[Scores]:
    for scores in parts:
        for first, stop in cut_runs(scores.offsets, BATCH):
            yield scores.part(slice(first, stop))


def _count(right: NDArray[np.bool_], targets: Targets) -> float:
    return float(right.sum() if targets.weights is None else targets.weights[right].sum())


def _pick(marginals: NDArray[np.float64], codes: NDArray[np.int32]) -> float:
    return float(marginals[np.arange(len(codes)), codes].sum())
