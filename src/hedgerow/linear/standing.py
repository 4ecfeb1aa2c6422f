"""Standing: where a training stands between two iterations, and its form in a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.lbfgs import Minimum, build_metric
from hedgerow.linear.bundle import Bundle
from hedgerow.objectives import TrainingObjective
from hedgerow.state import (
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
        tensors["scaled_weights"] = self.weights
        assert self.metric is not None
        names = ("metric.steps", "metric.changes", "metric.products")
        return State(tensors | dict(zip(names, self.metric.to_arrays(), strict=True)), metadata)

    @classmethod
    def unpack(
        cls,
        state: State,
        n_weights: int,
        plan: Sequence[TrainingObjective],
        penalty: float | Vector,
    ) -> Standing:
        """Read what `pack` wrote in a training of these stages; raises ModelFileError.

        `penalty` is that of the bundle method, see `hedgerow.linear.bundle.Bundle`.
        """
        history, done = unpack_history(state), state.metadata.get("done")
        losses = read_array(state, "losses", np.float64).tolist()
        require("loss" in history, "its history")
        require(
            isinstance(done, list)
            and all(isinstance(n_iter, int) and n_iter >= 0 for n_iter in done)
            and len(done) < len(plan)
            and sum(done) + len(losses) == len(history["loss"]),
            "its stages",
        )
        assert isinstance(done, list)
        if Bundle.is_in(state):
            require(not plan[len(done)].is_smooth, "its stages")
            bundle = Bundle.unpack(state, n_weights, penalty)
            return cls(bundle.best, None, bundle, done, losses, history)
        weights = read_weights(state, "scaled_weights", (n_weights,))
        return cls(weights, _unpack_metric(state, n_weights), None, done, losses, history)


def _unpack_metric(state: State, n_weights: int) -> _core.InverseHessian:
    metric = build_metric(n_weights)
    steps = read_array(state, "metric.steps", np.float32)
    changes = read_array(state, "metric.changes", np.float32)
    products = read_array(state, "metric.products", np.float64)
    require(all(np.isfinite(part).all() for part in (steps, changes, products)), "its steps")
    with expecting("its steps"):
        metric.restore(steps, changes, products)
    return metric
