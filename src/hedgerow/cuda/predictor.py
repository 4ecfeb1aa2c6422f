"""Prediction on a GPU: marginals and the best labellings of many sequences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hedgerow.cuda import cupy_device
from hedgerow.cuda.bins import DeviceBins
from hedgerow.cuda.chain import DeviceChain
from hedgerow.cuda.device import Device
from hedgerow.cuda.layout import Layout
from hedgerow.cuda.scores import DeviceScores
from hedgerow.cuda.support import MAX_LABELS
from hedgerow.decoding import Decode, decode_marginals
from hedgerow.model import Inputs, Model
from hedgerow.potentials import NodeTrees
from hedgerow.potentials.scoring import add_up, prepare
from hedgerow.sequences import Sequences, cut_runs
from hedgerow.trellis import Chain

__all__ = ["DeviceModel"]

# Positions that are on the device at a time.
BATCH = 1 << 22


class DeviceModel:
    """A model that predicts on a device, and falls back to the CPU."""

    def __init__(self, device: Device, model: Model) -> None:
        self.device, self.model = device, model
        self.trees = model.potential(NodeTrees)

    @classmethod
    def find(cls, model: Model) -> DeviceModel | Model:
        """The model on the GPU, if there is one that supports it; otherwise the model itself."""
        if not suits(model):
            return model
        try:
            return cls(cupy_device.find_device(), model)
        except (ImportError, RuntimeError):  # a model may be used anywhere
            return model

    def predict(
        self, inputs: Inputs, decode: Decode | None = None, *, n_threads: int
    ) -> NDArray[np.int32]:
        """Codes of the labels, (N,)."""
        sequences, model = inputs.sequences, self.model
        if not _can_read(inputs):
            return model.predict(inputs, decode, n_threads=n_threads)
        if (decode or model.decode) == "marginal":
            marginals = self.marginals(inputs, n_threads=n_threads)
            return decode_marginals(marginals, sequences.offsets, None, n_threads=n_threads)
        codes = [
            self.device.download(chain.viterbi(scores.by_row, model.arcs))[chain.layout.rows]
            for chain, scores in self._score(sequences, n_threads)
        ]
        return np.concatenate(codes).astype(np.int32)

    def marginals(self, inputs: Inputs, *, n_threads: int) -> NDArray[np.float64]:
        """Probability of each label at each position, (N, K)."""
        if not _can_read(inputs):
            return self.model.marginals(inputs, n_threads=n_threads)
        found = []
        for chain, scores in self._score(inputs.sequences, n_threads):
            chain.measure(scores.by_row, self.model.arcs)
            found.append(self.device.download(chain.marginals)[chain.layout.rows])
        return np.concatenate(found)

    def _score(
        self, sequences: Sequences, n_threads: int
    ) -> Iterator[tuple[DeviceChain, DeviceScores]]:
        """Scores of all sequences on the device, in runs, with their chains."""
        model, n_labels = self.model, self.model.trellis.n_labels
        others = [each for each in model.potentials if each is not self.trees]
        for first, stop in cut_runs(sequences.offsets, BATCH):
            part = sequences.part(first, stop)
            layout = Layout.plan(part.offsets, n_labels, self.device.n_multiprocessors)
            bins = DeviceBins(self.device, layout, self.trees.columns, part, n_labels, n_threads)
            adders = prepare(others, part, model.trellis, None, n_threads)
            (start,) = add_up(
                adders,
                part.offsets,
                model.arcs,
                model.trellis,
                parents=None,
                edge_shape=None,
            )
            scores = DeviceScores.put(start, bins, are_zeros=not any(adders))
            scores.add(self.trees.forest, scores)
            yield DeviceChain(self.device, layout, n_labels), scores


def suits(model: Model) -> bool:
    """Whether a device supports the model."""
    trees = model.potential(NodeTrees)
    forest = trees.forest
    return (
        isinstance(model.trellis, Chain)
        and model.trellis.n_labels <= MAX_LABELS
        and model.grammar.constraints is None
        and not any(each.has_edges for each in model.potentials)
        and trees.columns.n_lags == 0
        and not len(forest.fractions)
        and not len(forest.surrogate_columns)
    )


def _can_read(inputs: Inputs) -> bool:
    """Whether these are chains without known labels."""
    return inputs.known is None and inputs.sequences.parents is None
