"""Validation: a share of the training sequences, held out for early stopping.

Whole sequences are held out. If there is only one, its last part is held out, as is usual for time
series. With several workers, the held-out sequences are an eval set that all of them have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data_warning import warn_user
from hedgerow.exact_sums import count_all
from hedgerow.identity import draw_uniforms
from hedgerow.objectives import TrainingObjective
from hedgerow.sequences import Sequences
from hedgerow.training.eval_sets import EvalSet
from hedgerow.training.gathered import gather_labelled
from hedgerow.training.labelled import Labelled
from hedgerow.training.training_set import TrainingSet

__all__ = ["fixed_seed", "hold_out", "take_sequences", "validation_set"]

INSTEAD = "pass an eval_set (--dev on the command line), or set early_stopping_rounds=None"


def hold_out(
    labelled: Labelled, share: float | None, random_state: Any
) -> tuple[Labelled, Labelled | None]:
    """Split training data into a part for training and a part that is held out.

    A sequence is never held out if none of its known labels has a positive weight, or if it has a
    label that no other sequence has, unless that is true of all sequences.

    Parameters
    ----------
    labelled
        All of the data.
    share
        Share of the sequences to hold out; None: none.
    random_state
        Parameter of the estimator, see `fixed_seed`.
    """
    if share is None:
        return labelled, None
    comm = labelled.comm
    counted, offsets = np.flatnonzero(labelled.counts()), labelled.sequences.offsets
    candidates = np.flatnonzero(np.diff(np.searchsorted(counted, offsets)))
    n_candidates = count_all(len(candidates), comm)
    if n_candidates <= 1 and comm.size == 1:
        return _cut(labelled, counted, share)
    if n_candidates <= 1:
        raise ValueError(
            f"validation_fraction is {share}, but the number of sequences with known labels and a "
            f"weight above 0 is {n_candidates} on all {comm.size} workers together, too few to "
            f"train on some and hold out others; {INSTEAD}"
        )
    identities = labelled.identify()
    uniforms = draw_uniforms(identities[candidates], fixed_seed(random_state))
    chosen = _draw(labelled, counted, candidates, uniforms, share)
    _warn_of_few(share, n_candidates)
    is_held = np.zeros(len(offsets) - 1, np.bool_)
    is_held[chosen] = True
    held = gather_labelled(take_sequences(labelled, is_held), identities[is_held])
    return take_sequences(labelled, ~is_held), held


def fixed_seed(random_state: Any) -> int:
    """A seed that is the same every time, 0 if `random_state` is not a number.

    Resumed training must not learn from sequences that were held out before.
    """
    return int(random_state) if isinstance(random_state, int | np.integer) else 0


def validation_set(
    held: Labelled, data: TrainingSet, objective: TrainingObjective
) -> EvalSet[Sequences]:
    """The held-out data as an eval set of a model that is trained on `data`."""
    sequences = held.renumber(data.index).sequences
    targets = held.targets(data.trellis)
    return EvalSet("validation", sequences, targets, objective, data.decode)


def take_sequences(labelled: Labelled, chosen: NDArray[np.bool_]) -> Labelled:
    """Only some sequences, (S,), whole."""
    offsets = labelled.sequences.offsets
    return labelled.select(np.flatnonzero(chosen), offsets[:-1][chosen], offsets[1:][chosen])


def _draw(
    labelled: Labelled,
    counted: NDArray[np.int64],
    candidates: NDArray[np.int64],
    uniforms: NDArray[np.float64],
    share: float,
) -> NDArray[np.int64]:
    """Numbers of the candidates of this worker that are drawn.

    They are chosen so that the others, of all workers together, still have all labels. ``uniforms``
    are random numbers of the candidates; those with the smallest are drawn.
    """
    comm, n_labels = labelled.comm, len(labelled.labels.classes)
    owners = np.searchsorted(candidates, _owners(labelled, counted))
    pairs = np.unique(owners * n_labels + labelled.codes[counted])  # a candidate and a label of it
    sizes = np.bincount(pairs // n_labels, minlength=len(candidates))
    parts = comm.gather((uniforms, sizes, pairs % n_labels))
    everywhere, all_sizes, labels = map(np.concatenate, zip(*parts, strict=True))
    bounds = np.concatenate([[0], np.cumsum(all_sizes)])
    n_wanted = min(max(1, round(share * len(everywhere))), len(everywhere) - 1)
    n_left = np.bincount(labels, minlength=n_labels)  # sequences with each label
    order = np.argsort(everywhere, kind="stable").tolist()
    chosen: list[int] = []
    for number in order:
        own = labels[bounds[number] : bounds[number + 1]]
        if (n_left[own] > 1).all():
            n_left[own] -= 1
            chosen.append(number)
            if len(chosen) == n_wanted:
                break
    first = sum(len(part[0]) for part in parts[: comm.rank])
    mine = np.array(chosen or order[:1]) - first
    drawn: NDArray[np.int64] = candidates[mine[(mine >= 0) & (mine < len(candidates))]]
    return drawn


def _owners(labelled: Labelled, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which sequences some positions belong to."""
    owners: NDArray[np.int64] = (
        np.searchsorted(labelled.sequences.offsets, positions, side="right") - 1
    )
    return owners


def _warn_of_few(share: float, n_candidates: int) -> None:
    if share * n_candidates < 0.5:
        warn_user(
            f"validation_fraction is {share} and there are {n_candidates} training sequences: one "
            f"of them, {1 / n_candidates:.0%} of all, is held out for early stopping and not "
            "trained on; pass an eval_set (--dev on the command line), divide long sequences, or "
            "set early_stopping_rounds=None"
        )


def _cut(labelled: Labelled, counted: NDArray[np.int64], share: float) -> tuple[Labelled, Labelled]:
    """Hold out the end of the only sequence with labels: `share` of its known labels.

    With constraints, the cut is where a sequence may end and another may begin.
    """
    if len(counted) < 2:
        raise ValueError(
            f"validation_fraction is {share}, but the number of known labels of y with a "
            f"weight above 0 is {len(counted)}, too few to train on some and hold out others; "
            f"{INSTEAD}"
        )
    wanted = counted[-min(max(1, round(share * len(counted))), len(counted) - 1)]
    cuts = np.arange(counted[0] + 1, counted[-1] + 1)
    cuts = cuts[labelled.can_cut(cuts)]
    if not len(cuts):
        raise ValueError(
            f"validation_fraction is {share} and there is one training sequence, whose last part "
            f"would be held out, but {_why_whole(labelled)}; {INSTEAD}"
        )
    cut = cuts[np.abs(cuts - wanted).argmin()]
    offsets = labelled.sequences.offsets
    number = np.searchsorted(offsets, cut, side="right")[None] - 1
    ends = offsets[1:].copy()
    ends[number] = cut
    learnt = labelled.select(np.arange(len(ends)), offsets[:-1], ends)
    return learnt, labelled.select(number, cut[None], offsets[number + 1])


def _why_whole(labelled: Labelled) -> str:
    """Why the only sequence cannot be cut anywhere."""
    if labelled.sequences.parents is not None:
        return "it cannot be cut anywhere: every cut would separate a position from its parent"
    return (
        "it cannot be cut anywhere: there is no place in it where the constraints let one sequence "
        "end and another begin"
    )
