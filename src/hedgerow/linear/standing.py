"""Standing: where a training stands between two iterations, and its form in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.linear.bundle import Bundle
from hedgerow.linear.lbfgs import Minimum, build_metric
from hedgerow.persist import (
    State,
    expecting,
    pack_history,
    read_array,
    read_weights,
    require,
    unpack_history,
)

__all__ = ["Standing"]

Vector = NDArray[np.float64]


@dataclass(eq=False)
class Standing:
    """The weights so far, and what the iterations have learnt of the loss.

    Training goes through stages, see `hedgerow.linear.train.train`.

    Attributes
    ----------
    weights : (W,)
        Where the last iteration led.
    metric : InverseHessian or None
        What L-BFGS knows of the curvature; None when it is not needed any more.
    bundle : Bundle or None
        What the bundle method knows, once it has begun.
    done : list of int
        How many iterations each of the stages had that are over.
    losses : list of float
        The loss after each iteration of the present stage.
    history : dict of lists
        Every figure after every iteration.
    """

    weights: Vector
    metric: _core.InverseHessian | None
    bundle: Bundle | None = None
    done: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    history: dict[str, list[float]] = field(default_factory=lambda: {"loss": []})

    @classmethod
    def begin(cls, weights: Vector) -> Standing:
        """Before the first iteration."""
        return cls(weights, build_metric(len(weights)))

    @property
    def n_iter(self) -> int:
        """Number of iterations so far."""
        return len(self.history["loss"])

    def turn(self, found: Minimum) -> None:
        """Go on to the next stage from where one ended."""
        self.weights = found.weights
        self.done.append(found.n_iter)
        self.losses.clear()

    def pack(self) -> State:
        """All of it, for a checkpoint."""
        history = pack_history(self.history)
        tensors = {"losses": np.array(self.losses, np.float64), **history.tensors}
        metadata = {"done": self.done, **history.metadata}
        if self.bundle is not None:
            return State(tensors | self.bundle.pack(), metadata)
        tensors["weights"] = self.weights
        assert self.metric is not None
        names = ("metric.steps", "metric.changes", "metric.products")
        return State(tensors | dict(zip(names, self.metric.to_arrays(), strict=True)), metadata)

    @classmethod
    def unpack(cls, state: State, n_weights: int) -> Standing:
        """Read what `pack` wrote; raises ModelFileError."""
        history, done = unpack_history(state), state.metadata.get("done")
        require("loss" in history, "its history")
        require(
            isinstance(done, list) and all(isinstance(n_iter, int) for n_iter in done),
            "its stages",
        )
        assert isinstance(done, list)
        losses = read_array(state, "losses", np.float64).tolist()
        if Bundle.is_in(state):
            bundle = Bundle.unpack(state, n_weights)
            return cls(bundle.best, None, bundle, done, losses, history)
        metric = build_metric(n_weights)
        with expecting("its steps"):
            metric.restore(
                read_array(state, "metric.steps", np.float32),
                read_array(state, "metric.changes", np.float32),
                read_array(state, "metric.products", np.float64),
            )
        return cls(
            read_weights(state, "weights", (n_weights,)), metric, None, done, losses, history
        )
