"""Layout: the rows of positions on a device, so that neighbouring threads read adjacent memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FEW_LABELS", "Layout"]

# With up to this many labels a thread processes a sequence, with more a warp.
FEW_LABELS = 8
WARP = 32
# With few labels, if any sequence is longer than this, all are cut into pieces; minimum and
# maximum length of the pieces.
LONGEST = 512
PIECES = 64, 128
# A multiprocessor runs two to four blocks of 128 threads at a time, depending on the kernel, and a
# piece takes one thread: with a multiple of this many pieces, few threads are idle at the end.
PIECES_AT_A_TIME = 768


@dataclass(frozen=True, eq=False)
class Layout:
    """Pieces, which are sequences or parts of long ones, and the rows of their positions.

    Position t of piece c has row ``first[c] + step t``. With few labels, 32 pieces are interleaved,
    as the kernels expect; the rows after the shorter ones are padding.

    Attributes
    ----------
    offsets : (S + 1,) int64
        Where the sequences begin and end.
    rows : (N,) int32
        Row of each position.
    n_rows : int
        Number of rows, padding included.
    step : int
        Distance between the rows of neighbouring positions of a piece.
    first, length : (n,) int32
        Row of the first position of each piece, and number of its positions.
    sequence : (n,) int32
        The sequence that a piece belongs to; empty sequences have no pieces.
    begin : (n,) int64
        The first position of a piece.
    starts : (number of sequences that are not empty + 1,) int32, or None
        The first piece of each such sequence, and the end; None if no sequence is cut.
    """

    offsets: NDArray[np.int64]
    rows: NDArray[np.int32]
    n_rows: int
    step: int
    first: NDArray[np.int32]
    length: NDArray[np.int32]
    sequence: NDArray[np.int32]
    begin: NDArray[np.int64]
    starts: NDArray[np.int32] | None

    @classmethod
    def plan(cls, offsets: NDArray[np.int64], n_labels: int, n_multiprocessors: int) -> Layout:
        """The layout of sequences with these bounds, on a device with this many multiprocessors."""
        lengths = np.diff(offsets)
        if n_labels > FEW_LABELS:
            sequence = np.flatnonzero(lengths)
            sequence = sequence[np.argsort(-lengths[sequence], kind="stable")]
            rows, n_rows = np.arange(offsets[-1], dtype=np.int32), int(offsets[-1])
            begin = offsets[:-1][sequence]
            first, length = begin, lengths[sequence]
            return cls(
                offsets,
                rows,
                n_rows,
                1,
                first.astype(np.int32),
                length.astype(np.int32),
                sequence.astype(np.int32),
                begin,
                None,
            )
        starts = None
        if lengths.max(initial=0) > LONGEST:
            piece = _choose_length(int(offsets[-1]), n_multiprocessors)
            sequence, begin, length, starts = _cut(offsets, lengths, piece)
        else:
            sequence = np.flatnonzero(lengths)
            sequence = sequence[np.argsort(-lengths[sequence], kind="stable")]
            begin, length = offsets[:-1][sequence], lengths[sequence]
        first, n_rows = _interleave(length)
        order = np.argsort(begin)
        # int32 may overflow here and below; the sum is right again.
        shifts = (first - WARP * begin)[order].astype(np.int32)
        rows = np.arange(offsets[-1], dtype=np.int32)
        rows *= WARP
        rows += np.repeat(shifts, length[order])
        return cls(
            offsets,
            rows,
            n_rows,
            WARP,
            first.astype(np.int32),
            length.astype(np.int32),
            sequence.astype(np.int32),
            begin,
            starts,
        )

    @property
    def n_pieces(self) -> int:
        """Number of pieces."""
        return len(self.first)

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    def positions_of(self, sequences: NDArray[np.int64]) -> NDArray[np.int64]:
        """All positions of some sequences, one after the other."""
        lengths = np.diff(self.offsets)[sequences]
        inner = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        found: NDArray[np.int64] = np.repeat(self.offsets[:-1][sequences], lengths) + inner
        return found


def _choose_length(n_positions: int, n_multiprocessors: int) -> int:
    """Length of the pieces of long sequences."""
    shortest, longest = PIECES
    together = PIECES_AT_A_TIME * n_multiprocessors
    n_times = -(-n_positions // (longest * together))
    return max(shortest, -(-n_positions // (n_times * together)))


def _cut(
    offsets: NDArray[np.int64], lengths: NDArray[np.int64], piece: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Sequence, first position and length of each piece; where the pieces of a sequence begin."""
    counts = -(-lengths // piece)
    sequence = np.repeat(np.arange(len(lengths)), counts)
    inner = np.arange(len(sequence)) - np.repeat(np.cumsum(counts) - counts, counts)
    begin = offsets[:-1][sequence] + inner * piece
    length = np.minimum(piece, offsets[1:][sequence] - begin)
    starts = np.concatenate([[0], np.cumsum(counts[counts > 0])]).astype(np.int32)
    return sequence, begin, length, starts


def _interleave(length: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """First row of each piece, and the number of all rows."""
    n_groups = -(-len(length) // WARP)
    padded = np.zeros(n_groups * WARP, np.int64)
    padded[: len(length)] = length
    sizes = WARP * padded.reshape(n_groups, WARP).max(axis=1)
    bases = np.repeat(np.cumsum(sizes) - sizes, WARP)
    first = bases + np.arange(n_groups * WARP) % WARP
    return first[: len(length)], int(sizes.sum())
