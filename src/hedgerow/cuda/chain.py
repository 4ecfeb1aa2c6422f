"""Forward-backward of first-order chains on a device: marginals, and bounds of the curvature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hedgerow.cuda.device import Device, DeviceArray
from hedgerow.cuda.layout import FEW_LABELS, Layout
from hedgerow.cuda.weighted import WeightedLikelihood
from hedgerow.decoding import Decode
from hedgerow.trellis import (
    Chain,
    Scores,
    forward_backward,
    tangent,
    weighted_forward_backward,
)

__all__ = ["DeviceChain", "Expected"]

THREADS = 128
# Kernels for many labels: warps per block if there are up to 32 labels; blocks per multiprocessor
# if there are more.
GROUPS = 4
BLOCKS = 3
REGISTERS = 65536  # per multiprocessor
WARPS = 32  # maximum number of blocks per multiprocessor
# Number of consecutive pieces whose matrices one thread multiplies, and threads per block for this.
RUN, RUN_THREADS = 16, 64


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected counts of labels, over all sequences."""

    loss: float
    """Negative log-likelihood of the labels, summed with their weights; log Z without labels."""
    arc_sums: NDArray[np.float64]
    """(K, K) expected number of times each label pair occurs."""
    arc_curvatures: NDArray[np.float64]
    """(K, K) sum over all positions of gamma p (1 - p), p the probability of the pair."""
    n_right: int
    """Number of predicted labels that are correct, if there are any labels."""
    repaired: bool = False
    """Whether marginals and gammas on the device were corrected after the measurement."""


class DeviceChain:
    """Repeated forward-backward of the same sequences.

    Parameters
    ----------
    device
        Where the sequences are stored.
    layout
        The rows of their positions on the device.
    n_labels
        Number of labels, K.
    codes : (N,) int32, optional
        The labels.
    weights : (S,), optional
        Weight of each sequence in sums over sequences.
    position_weights : (N,), optional
        Weight of each position in the likelihood, including the weight of its sequence.
    decode
        The decoder for counting correct labels.

    Attributes
    ----------
    marginals : (n_rows, K) float64
        Those of the last measurement.
    gammas : (n_rows,) float32
        How strongly labels depend on each other, see `hedgerow.boosting.curvature`.
    labels : (n_rows,) int8
        The labels, -1 where there are none.
    weighted
        The likelihood with a weight for each position, if there are any.
    """

    def __init__(
        self,
        device: Device,
        layout: Layout,
        n_labels: int,
        codes: NDArray[np.int32] | None = None,
        weights: NDArray[np.float64] | None = None,
        position_weights: NDArray[np.float64] | None = None,
        *,
        decode: Decode = "marginal",
    ) -> None:
        self.device, self.layout, self.n_labels = device, layout, n_labels
        self.codes, self.weights = codes, weights
        self.kernels = device.kernels("trellis", n_labels)
        n_rows, n_pieces = layout.n_rows, layout.n_pieces
        self.labels, self.decode = None, decode
        before = np.zeros(n_pieces, np.int32)
        if codes is not None:
            by_row = np.full(n_rows, -1, np.int8)
            by_row[layout.rows] = codes
            self.labels = device.upload(by_row)
            before = codes[np.maximum(layout.begin - 1, 0)]
        is_first = layout.begin == layout.offsets[:-1][layout.sequence]
        before = np.where(is_first, np.int32(-1), before)
        arrays = (layout.first, layout.length, layout.sequence, before)
        self.pieces = (*map(device.upload, arrays), n_pieces)
        lengths = np.diff(layout.offsets)[layout.sequence]
        self._most = device.upload((2.0 * (lengths - 1)).astype(np.float32))
        self._weights = None if weights is None else device.upload(weights)
        self.marginals = device.zeros((n_rows, n_labels), np.float64)
        self.gammas = device.zeros(n_rows, np.float32)
        self._messages = device.empty((n_rows, 2), np.float32)
        self._losses = device.empty(n_pieces, np.float64)
        self._lost = device.zeros(layout.n_sequences, np.int32)
        n_arcs = n_labels**2
        self._arcs = device.empty(n_arcs, np.float64)
        self._factors = device.empty(n_arcs + 1, np.float64)
        self._n_blocks, self._n_threads, self._n_sums = self._grid()
        self._partial = device.empty((3 + 2 * n_arcs, self._n_sums), np.float64)
        self._found = device.empty(3 + 2 * n_arcs, np.float64)
        self._fetched: Callable[[], NDArray[np.float64]]
        # Arrays of decoders and tangents, allocated when first used.
        self._best = self._decoded = self._offsets = None
        self._moves: list[DeviceArray] = []
        self._recordings: dict[tuple[int, bool, bool], tuple[DeviceArray, Callable[[], None]]] = {}
        self._prepare_pieces()
        self.weighted = None
        if position_weights is not None:
            self.weighted = WeightedLikelihood(
                device, layout, self.kernels, position_weights, n_labels, self._n_sequence_blocks
            )

    def _grid(self) -> tuple[int, int, int]:
        """Number of blocks, of threads per block, and of partial sums of each kind."""
        n_pieces, n_labels = self.layout.n_pieces, self.n_labels
        if n_labels <= FEW_LABELS:
            n_blocks = max(1, -(-n_pieces // THREADS))
            return n_blocks, THREADS, n_blocks * (THREADS // 32)
        n_groups = GROUPS if n_labels <= 32 else 1
        n_lanes, per_block = 32 * -(-n_labels // 32), BLOCKS
        if n_labels <= 32:
            # As many as can be resident at a time: a thread holds rows of matrices in registers.
            per_block = REGISTERS // (32 * GROUPS * (50 + 6 * n_labels))
        n_blocks = max(1, min(-(-n_pieces // n_groups), per_block * self.device.n_multiprocessors))
        return n_blocks, n_lanes * n_groups, n_blocks * n_groups

    def _prepare_pieces(self) -> None:
        """Arrays for the messages at both ends of the pieces of long sequences."""
        self._entering = self._leaving = self._before = self._after = None
        if self.layout.starts is None:
            return
        device, n_pieces, n_labels = self.device, self.layout.n_pieces, self.n_labels
        runs, starts = cut_runs_of_pieces(self.layout.starts)
        self._starts, self._runs = device.upload(self.layout.starts), device.upload(runs)
        self._run_starts, self._n_runs = device.upload(starts), len(runs) - 1
        self._products = device.empty((n_pieces, n_labels**2), np.float64)
        self._run_products = device.empty((self._n_runs, n_labels**2), np.float64)
        self._run_entering, self._run_leaving = (
            device.empty((self._n_runs, n_labels), np.float64) for _ in range(2)
        )
        self._entering, self._leaving = (
            device.empty((n_pieces, n_labels), np.float64) for _ in range(2)
        )
        self._ahead, self._back = (device.empty((n_pieces, 2), np.float32) for _ in range(2))
        self._before, self._after = (device.empty(n_pieces, np.float32) for _ in range(2))

    def measure(
        self, scores: DeviceArray, arcs: NDArray[np.float64], *, by_position: bool = False
    ) -> Expected:
        """Forward-backward with scores of the labels, (n_rows, K), and of label pairs, (K, K).

        ``by_position``: the loss and the expected label pairs are those of the likelihood with a
        weight for each position.
        """
        self.launch(scores, arcs, by_position=by_position)
        return self.collect(scores, arcs, by_position=by_position)

    def launch(
        self,
        scores: DeviceArray,
        arcs: NDArray[np.float64],
        *,
        by_position: bool = False,
        fill: Callable[[], None] | None = None,
    ) -> None:
        """Launch a measurement.

        ``fill``, if given, launches kernels that fill the scores first. As launches are recorded
        once and then repeated, it must launch the same kernels in every call with the same array.
        """
        self.device.write(np.ascontiguousarray(arcs, np.float64).ravel(), self._arcs)
        self._recorded(scores, self.weighted if by_position else None, fill)()
        self._fetched = self.device.fetch(self._found)

    def collect(
        self, scores: DeviceArray, arcs: NDArray[np.float64], *, by_position: bool = False
    ) -> Expected:
        """Results of the previous launch, with the same scores."""
        weighted = self.weighted if by_position else None
        found = self._fetched()
        loss, n_lost, n_right = found[:3].tolist()
        factors = np.exp(arcs - arcs.max())
        sums, curvatures = found[3:].reshape(2, *arcs.shape)
        expected = Expected(loss, factors * sums, curvatures.clip(min=0), int(n_right))
        return expected if n_lost == 0 else self._repair(expected, scores, arcs, weighted)

    def _recorded(
        self,
        scores: DeviceArray,
        weighted: WeightedLikelihood | None,
        fill: Callable[[], None] | None,
    ) -> Callable[[], None]:
        """The launches of a measurement, recorded once for each array."""
        key = id(scores), weighted is not None, fill is not None
        if key not in self._recordings:
            steps = self.device.record(partial(self._launch, scores, weighted, fill))
            self._recordings[key] = scores, steps
        return self._recordings[key][1]

    def _launch(
        self,
        scores: DeviceArray,
        weighted: WeightedLikelihood | None,
        fill: Callable[[], None] | None,
    ) -> None:
        """All kernels of a measurement."""
        if fill is not None:
            fill()
        launch, n_sequences = self.kernels.launch, self.layout.n_sequences
        factors, lost, messages = self._factors, self._lost, self._messages
        launch("exponentiate_arcs", 1, 256, self._arcs, factors, lost, n_sequences)
        grid = self._n_blocks, self._n_threads
        if self.layout.starts is not None:
            n_cut, n_scanners = len(self.layout.starts) - 1, 128 if self.n_labels <= 6 else 64
            launch("multiply_pieces", *grid, scores, factors, *self.pieces, self._products)
            of_runs = -(-self._n_runs // RUN_THREADS), RUN_THREADS, self._products, self._runs
            launch("join_pieces", *of_runs, self._n_runs, self._run_products)
            launch(
                "scan_products", n_cut, n_scanners, self._run_products, self._run_starts,
                self._run_entering, self._run_leaving,
            )  # fmt: skip
            launch(
                "enter_pieces", *of_runs, self._n_runs, self._run_entering, self._run_leaving,
                self._entering, self._leaving,
            )  # fmt: skip
        n_groups = self._n_sums // self._n_blocks
        n_forward = self._n_blocks
        if self.n_labels > FEW_LABELS:  # this kernel computes no sums, so it may have more blocks
            most = WARPS * self.device.n_multiprocessors
            n_forward = max(1, min(-(-self.layout.n_pieces // n_groups), most))
        launch(
            "forward", n_forward, self._n_threads, scores, self._arcs, factors, *self.pieces,
            self.labels, self._entering, self.marginals, messages, self._losses, lost,
        )  # fmt: skip
        if weighted is not None:
            weighted.launch(scores, factors, self._whole_sequences(), self.labels, lost)
        if self.layout.starts is not None:
            launch(
                "pass_messages", *grid, scores, factors, *self.pieces, self._leaving, messages,
                self._ahead, self._back,
            )  # fmt: skip
            launch(
                "scan_messages", n_cut, n_scanners, self._ahead, self._back, self._starts,
                self._before, self._after,
            )  # fmt: skip
        counted = None if self.decode == "viterbi" else self.labels
        launch(
            "backward", *grid, scores, factors, *self.pieces, self._most, self._weights,
            self._entering, self._leaving, self._before, self._after, self._losses, lost,
            messages, counted, self.marginals, self.gammas, self._partial,
        )  # fmt: skip
        n_rows, n_columns = self._partial.shape
        launch("sum_rows", n_rows, 256, self._partial, n_columns, self._found)
        if weighted is not None:
            weighted.sum_up(lost, self._found)
        if self.decode == "viterbi" and self.labels is not None:
            decoded = self._launch_viterbi(scores)
            launch(
                "count_right", self._n_row_blocks, THREADS, decoded, self.labels,
                np.int64(self.layout.n_rows), self._found[2:],
            )  # fmt: skip

    def viterbi(self, scores: DeviceArray, arcs: NDArray[np.float64]) -> DeviceArray:
        """The most probable labellings, (n_rows,) int8.

        The next call or measurement overwrites them.
        """
        self.device.write(np.ascontiguousarray(arcs, np.float64).ravel(), self._arcs)
        return self._launch_viterbi(scores)

    def _launch_viterbi(self, scores: DeviceArray) -> DeviceArray:
        """Like `viterbi`, with scores of label pairs that are already on the device."""
        device, n_rows = self.device, self.layout.n_rows
        if self._decoded is None:
            self._best = device.empty((n_rows, self.n_labels), np.uint8)
            self._decoded = device.empty(n_rows, np.int8)
        self.kernels.launch(
            "viterbi", self._n_sequence_blocks, 32, scores, self._arcs, *self._whole_sequences(),
            self._best, self._decoded,
        )  # fmt: skip
        return self._decoded

    def _whole_sequences(self) -> tuple[DeviceArray, DeviceArray, int]:
        """Where sequences begin and end, rows of their positions, and the number of sequences."""
        if self._offsets is None:
            layout, upload = self.layout, self.device.upload
            self._offsets, self._rows = upload(layout.offsets), upload(layout.rows)
        return self._offsets, self._rows, self.layout.n_sequences

    def tangent(
        self, scores: DeviceArray, arcs: NDArray[np.float64], direction: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Derivatives of marginals, (N, K), and of expected label pairs, (K, K), along a direction.

        The scores are those that were measured last; the direction is a change of them, (N, K).
        """
        device, rows, shape = self.device, self.layout.rows, self.marginals.shape
        n_blocks, n_arcs = self._n_sequence_blocks, self.n_labels**2
        if not self._moves:
            self._moves = [device.empty(shape, np.float64) for _ in range(4)]
            self._pair_moves = device.empty((n_blocks, n_arcs), np.float64)
        along, alphas, moves, tangents = self._moves
        by_row = np.zeros(shape)
        by_row[rows] = direction
        device.write(by_row, along)
        device.clear(self._pair_moves)
        self.kernels.launch(
            "find_tangents", n_blocks, 32, scores, self._factors, *self._whole_sequences(), along,
            self._lost, alphas, moves, tangents, self._pair_moves,
        )  # fmt: skip
        found = device.download(tangents)[rows]
        of_pairs = self._found[:n_arcs]
        self.kernels.launch(
            "sum_columns", -(-n_arcs // 32), 256, self._pair_moves, n_blocks, n_arcs, of_pairs
        )
        sums: NDArray[np.float64] = device.download(of_pairs).reshape(arcs.shape)
        lost = np.flatnonzero(device.download(self._lost))
        if len(lost):
            part, positions = self._part(lost, scores, arcs)
            marginals = device.download(self.marginals)[rows[positions]]
            of_part = tangent(part, marginals, direction[positions])
            assert of_part.arc_sums is not None
            found[positions] = of_part.marginals
            sums += of_part.arc_sums
        return found, sums

    @property
    def _n_sequence_blocks(self) -> int:
        """Number of blocks of kernels in which each warp processes a whole sequence."""
        return max(1, min(self.layout.n_sequences, WARPS * self.device.n_multiprocessors))

    @property
    def _n_row_blocks(self) -> int:
        n_rows, most = self.layout.n_rows, WARPS * self.device.n_multiprocessors
        return max(1, min(-(-n_rows // THREADS), most))

    def _repair(
        self,
        expected: Expected,
        scores: DeviceArray,
        arcs: NDArray[np.float64],
        weighted: WeightedLikelihood | None,
    ) -> Expected:
        """Recompute sequences whose numbers are out of range, on the CPU, in log space."""
        lost = np.flatnonzero(self.device.download(self._lost))
        part, positions = self._part(lost, scores, arcs)
        rows = self.device.upload(self.layout.rows[positions])
        weights = None if self.weights is None else self.weights[lost]
        codes = None if self.codes is None else self.codes[positions]
        found = forward_backward(part, labels=codes, weights=weights)
        assert found.arc_sums is not None
        mixing = part.trellis.mixing(part, found.arc_sums, weights, 1)
        assert mixing.arc_curvatures is not None
        for array, values in ((self.marginals, found.marginals), (self.gammas, mixing.nodes)):
            self.device.put(array, rows, self.device.upload(values))
        losses = found.log_z if found.log_likelihoods is None else -found.log_likelihoods
        losses, arc_sums = losses if weights is None else losses * weights, found.arc_sums
        if weighted is not None:
            losses, arc_sums = self._repair_weighted(weighted, part, positions, rows)
        n_right = 0
        if codes is not None and self.decode != "viterbi":
            n_right = int(np.sum(found.marginals.argmax(axis=1) == codes))
        return Expected(
            expected.loss + float(losses.sum()),
            expected.arc_sums + arc_sums,
            expected.arc_curvatures + mixing.arc_curvatures,
            expected.n_right + n_right,
            repaired=True,
        )

    def _repair_weighted(
        self,
        weighted: WeightedLikelihood,
        part: Scores,
        positions: NDArray[np.int64],
        rows: DeviceArray,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Like `_repair`; returns the losses of these sequences, and the sums of label pairs."""
        assert self.codes is not None
        codes, weights = self.codes[positions], weighted.weights[positions]
        found = weighted_forward_backward(part, codes, weights)
        assert found.log_likelihoods is not None
        assert found.arc_sums is not None
        slopes = found.marginals
        slopes[np.arange(len(codes)), codes] -= weights
        self.device.put(weighted.slopes, rows, self.device.upload(slopes))
        return -found.log_likelihoods, found.arc_sums

    def _part(
        self, sequences: NDArray[np.int64], scores: DeviceArray, arcs: NDArray[np.float64]
    ) -> tuple[Scores, NDArray[np.int64]]:
        """Scores of some sequences, on the CPU, and their positions."""
        positions = self.layout.positions_of(sequences)
        rows = self.device.upload(self.layout.rows[positions])
        lengths = np.diff(self.layout.offsets)[sequences]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        nodes = self.device.download(self.device.take(scores, rows))
        return Scores(nodes, arcs, offsets, Chain(self.n_labels)), positions


def cut_runs_of_pieces(starts: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """First piece of each run, and the end; first run of each sequence, and the end."""
    counts = -(-np.diff(starts) // RUN)
    run_starts = np.concatenate([[0], np.cumsum(counts)])
    inner = np.arange(run_starts[-1]) - np.repeat(run_starts[:-1], counts)
    runs = np.append(np.repeat(starts[:-1], counts) + RUN * inner, starts[-1])
    return runs.astype(np.int32), run_starts.astype(np.int32)
