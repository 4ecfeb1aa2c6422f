"""A trial of both decoders: a short training run on some training sequences, tested on others.

Training sequences do not show which decoder is more accurate: after enough steps all their labels
are correct. The trial uses the same parameters, but a small sample of the sequences and few steps.
With several workers, the first one runs it for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.exact_sums import count_all
from hedgerow.identity import draw_uniforms, identify_positions
from hedgerow.training.decoder import lead_of_marginals
from hedgerow.training.gathered import gather_labelled
from hedgerow.training.labelled import Labelled
from hedgerow.training.trainer import Trainer
from hedgerow.training.update import Update
from hedgerow.training.validation import fixed_seed, validation_set

__all__ = ["try_decoders"]

Form = TypeVar("Form")
AnyUpdate = TypeVar("AnyUpdate", bound=Update[Any])

# There is no trial if fewer labels than this are known.
LEAST_LABELS = 1 << 10
# Longer sequences are cut into pieces.
PIECE = 1 << 11
# Minimum number of pieces for training and for testing, if there are that many; with fewer than
# half of this number on one side there is no trial. With few pieces in total, a second trial swaps
# the two sides.
PIECES = 16
FEW_PIECES = 4 * PIECES
# Number of positions for training, a share of all within bounds; number of positions for testing.
SHARE, LEAST, MOST = 1 / 16, 1 << 11, 1 << 13
TESTED = 1 << 14
# Number of training steps.
STEPS = 32


def try_decoders(
    trainer: Trainer[Form, AnyUpdate], labelled: Labelled, random_state: Any, n_threads: int
) -> NDArray[np.float64] | None:
    """Number of correct labels in each test piece by marginals, minus that by Viterbi.

    None if there are too few labels or pieces. ``trainer`` is not modified.
    """
    comm = labelled.comm
    if count_all(labelled.counts().sum(), comm) < LEAST_LABELS:
        return None
    seed = fixed_seed(random_state)
    own = Share.of(labelled)
    identities = np.concatenate(comm.gather(labelled.identify(n_threads)))
    sides = divide(own.gather(cut_pieces(labelled)), identities, seed)
    n_pieces = [len(side.owners) for side in sides]
    if 2 * min(n_pieces) < PIECES:
        return None
    n_positions = count_all(labelled.sequences.n_positions, comm)
    n_learnt = np.clip(n_positions * SHARE, LEAST, MOST)
    trials = [sides] if sum(n_pieces) >= FEW_PIECES else [sides, sides[::-1]]
    leads = []
    for learn_from, test_on in trials:
        learnt = own.take(learn_from.first(n_learnt))
        tested = own.take(test_on.first(TESTED))
        if comm.rank == 0:
            share = learnt.sequences.n_positions / n_positions
            leads.append(hold_trial(trainer.renew(seed, share), learnt, tested))
    return comm.broadcast(np.concatenate(leads) if leads else None)


def hold_trial(
    trainer: Trainer[Form, AnyUpdate], learnt: Labelled, tested: Labelled
) -> NDArray[np.float64]:
    """Train on some sequences, and compare the decoders on each of the others, (S,)."""
    data = trainer.learn(learnt)
    aside = validation_set(tested, data, trainer.objective).prepare(trainer.prepare)
    update = trainer.begin()
    for _ in range(min(STEPS, trainer.n_steps)):
        if not update.advance():
            break
    parts = update.score(aside.sequences)
    return lead_of_marginals(parts, aside.targets, n_threads=update.n_threads)


class Pieces(NamedTuple):
    """Sequences, or parts of long ones, in order unless they were shuffled."""

    owners: NDArray[np.int64]
    """Number of the sequence of each piece, (P,)."""
    begins: NDArray[np.int64]
    """First position of each piece, (P,)."""
    ends: NDArray[np.int64]
    """Position after the last one of each piece, (P,)."""

    def take(self, numbers: NDArray[Any]) -> Pieces:
        """Select some of them."""
        return Pieces(*(part[numbers] for part in self))

    def first(self, n_positions: float) -> Pieces:
        """The first pieces: at least `PIECES`, and enough for this many positions; sorted."""
        sums = np.cumsum(self.ends - self.begins)
        n_taken = max(int(np.searchsorted(sums, n_positions)) + 1, PIECES)
        taken = self.take(np.arange(min(n_taken, len(sums))))
        return taken.take(np.argsort(taken.begins))


@dataclass(frozen=True, eq=False)
class Share:
    """The sequences of one worker; those of all workers are numbered together, in order of rank.

    Attributes
    ----------
    labelled : Labelled
        The sequences of this worker.
    first_sequence, first_position : int
        Numbers of its first sequence and position.
    """

    labelled: Labelled
    first_sequence: int
    first_position: int

    @classmethod
    def of(cls, labelled: Labelled) -> Share:
        """The share of the worker which has these sequences."""
        comm, sequences = labelled.comm, labelled.sequences
        sizes = comm.gather((sequences.n_sequences, sequences.n_positions))[: comm.rank]
        return cls(labelled, sum(n for n, _ in sizes), sum(n for _, n in sizes))

    def gather(self, own: Pieces) -> Pieces:
        """The pieces of all workers, numbered together."""
        shifted = Pieces(
            own.owners + self.first_sequence,
            own.begins + self.first_position,
            own.ends + self.first_position,
        )
        parts = self.labelled.comm.gather(tuple(shifted))
        return Pieces(*map(np.concatenate, zip(*parts, strict=True)))

    def take(self, pieces: Pieces) -> Labelled:
        """Some pieces, from whichever worker has them, on all workers."""
        owners = pieces.owners - self.first_sequence
        own = pieces.take((owners >= 0) & (owners < self.labelled.sequences.n_sequences))
        begins, ends = own.begins - self.first_position, own.ends - self.first_position
        chosen = self.labelled.select(own.owners - self.first_sequence, begins, ends)
        return gather_labelled(chosen)


def cut_pieces(labelled: Labelled) -> Pieces:
    """The sequences, in parts if they are long, that have labels with a positive weight."""
    offsets = labelled.sequences.offsets
    cuts = [offsets]
    for number in np.flatnonzero(np.diff(offsets) > PIECE):
        begin, end = offsets[number : number + 2]
        n_pieces = -(-(end - begin) // PIECE)
        wanted = begin + np.arange(1, n_pieces) * (end - begin) // n_pieces
        places = np.arange(begin + 1, end)
        places = np.append(places[labelled.can_cut(places)], end)
        cuts.append(places[np.searchsorted(places, wanted)])
    bounds = np.sort(np.concatenate(cuts))
    sums = np.concatenate([[0], np.cumsum(labelled.counts())])
    begins, ends = bounds[:-1], bounds[1:]  # some of them empty
    owners = np.searchsorted(offsets, begins, side="right") - 1
    return Pieces(owners, begins, ends).take(sums[ends] > sums[begins])


def divide(pieces: Pieces, identities: NDArray[np.uint64], seed: int) -> tuple[Pieces, Pieces]:
    """Pieces for training and pieces for testing, in random order.

    They come from different sequences, or from the two halves of a single one. ``identities`` (S,)
    are those of the sequences.
    """
    is_new = np.diff(pieces.owners, prepend=-1) > 0
    owners = pieces.owners[is_new]
    owners = owners[np.argsort(draw_uniforms(identities[owners], 2 * seed), kind="stable")]
    n_pieces = len(pieces.owners)
    is_learnt = np.isin(pieces.owners, owners[: len(owners) // 2])
    if len(owners) == 1:
        is_learnt = np.arange(n_pieces) < n_pieces // 2
    bounds = np.append(np.flatnonzero(is_new), n_pieces)
    of_pieces = identify_positions(identities[pieces.owners[is_new]], bounds)
    order = np.argsort(draw_uniforms(of_pieces, 2 * seed + 1), kind="stable")
    return pieces.take(order[is_learnt[order]]), pieces.take(order[~is_learnt[order]])
