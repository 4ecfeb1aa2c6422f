"""Solver state: the state of a solver between two iterations, as in a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.descent.bundle import Bundle
from hedgerow.lbfgs import Minimum, build_metric
from hedgerow.objectives import TrainingObjective
from hedgerow.state import State, expecting, read_array, read_weights, require, unpack_history

__all__ = ["SolverState"]

Vector = NDArray[np.float64]


@dataclass(eq=False)
class SolverState:
    """The weights so far, and what the iterations have learned about the loss.

    Training goes through stages, see `hedgerow.descent.solver.Solver`.

    Attributes
    ----------
    weights, kept_weights : (W,)
        The weights of the last iteration, and those that are kept.
    metric : InverseHessian or None
        What L-BFGS knows about the curvature; None when it is no longer needed.
    bundle : Bundle or None
        State of the bundle method, once it has begun.
    done : list of int
        Number of iterations of each finished stage.
    losses : list of float
        The loss after each iteration of the current stage.
    kept_loss : float
        The loss of the kept weights; NaN if it is not known yet.
    """

    weights: Vector
    kept_weights: Vector
    metric: _core.InverseHessian | None
    bundle: Bundle | None = None
    done: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    kept_loss: float = np.nan

    @classmethod
    def begin(cls, weights: Vector) -> SolverState:
        """The state before the first iteration."""
        return cls(weights, weights, build_metric(len(weights)))

    @property
    def n_iter(self) -> int:
        """Number of iterations so far."""
        return sum(self.done) + len(self.losses)

    def turn(self, found: Minimum) -> None:
        """Begin the next stage, from the weights at the end of the last one."""
        self.weights = found.weights
        self.done.append(found.n_iter)
        self.losses.clear()

    def pack(self) -> State:
        """The state, for a checkpoint."""
        tensors = {
            "losses": np.array(self.losses, np.float64),
            "kept_loss": np.array([self.kept_loss]),
        }
        if self.kept_weights is not self.weights:
            tensors["kept_weights"] = self.kept_weights
        if self.bundle is not None:
            tensors |= self.bundle.pack()
        else:
            assert self.metric is not None
            names = ("metric.steps", "metric.changes", "metric.products")
            tensors |= dict(zip(names, self.metric.to_arrays(), strict=True))
            tensors["scaled_weights"] = self.weights
        return State(tensors, {"done": self.done})

    @classmethod
    def unpack(
        cls,
        state: State,
        n_weights: int,
        plan: Sequence[TrainingObjective],
        penalty: float | Vector,
    ) -> SolverState:
        """Read the output of `pack` in a training run of these stages; raises ModelFileError.

        `penalty` is that of the bundle method, see `hedgerow.descent.bundle.Bundle`.
        """
        history, done = unpack_history(state), state.metadata.get("done")
        losses = read_array(state, "losses", np.float64).tolist()
        require("loss" in history, "its history has no loss")
        require(
            isinstance(done, list)
            and all(isinstance(n_iter, int) and n_iter >= 0 for n_iter in done)
            and len(done) < len(plan)
            and sum(done) + len(losses) == len(history["loss"]),
            "its stages do not fit the training run",
        )
        assert isinstance(done, list)
        bundle, metric = None, None
        if Bundle.is_in(state):
            require(not plan[len(done)].is_smooth, "its stages do not fit the training run")
            bundle = Bundle.unpack(state, n_weights, penalty)
            weights = bundle.best
        else:
            metric = _unpack_metric(state, n_weights)
            weights = read_weights(state, "scaled_weights", (n_weights,))
        kept, kept_loss = weights, read_array(state, "kept_loss", np.float64)
        if "kept_weights" in state.tensors:
            kept = read_weights(state, "kept_weights", (n_weights,))
        require(len(kept_loss) == 1 and not np.isinf(kept_loss[0]), "its loss is not valid")
        return cls(weights, kept, metric, bundle, done, losses, float(kept_loss[0]))


def _unpack_metric(state: State, n_weights: int) -> _core.InverseHessian:
    metric = build_metric(n_weights)
    steps = read_array(state, "metric.steps", np.float32)
    changes = read_array(state, "metric.changes", np.float32)
    products = read_array(state, "metric.products", np.float64)
    require(
        all(np.isfinite(part).all() for part in (steps, changes, products)),
        "its steps are not valid",
    )
    with expecting("its steps are not valid"):
        metric.restore(steps, changes, products)
    return metric
