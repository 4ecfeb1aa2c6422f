"""Training of weights: from parameters and labelled sequences to a solver."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.comm import Comm
from hedgerow.counting import count_of
from hedgerow.descent.loss import LinearLoss
from hedgerow.descent.parameters import LinearParameters
from hedgerow.descent.scaling import Scaling
from hedgerow.descent.solver import Attributed, Plan, Solver
from hedgerow.descent.solver_state import SolverState
from hedgerow.descent.warm_start import start_from
from hedgerow.fingerprint import fingerprint, fingerprint_sequences
from hedgerow.linear.ancestor_attributes import AncestorAttributes
from hedgerow.linear.attributes import attribute_rows, begin_with, drop_rare, learn_attributes
from hedgerow.linear.tables import describe_weight
from hedgerow.linear.weights import LinearLayout, WeightLayout
from hedgerow.model import Model
from hedgerow.objectives import TrainingObjective
from hedgerow.potentials.scoring import edge_shape, prepare, score_at_once
from hedgerow.sequences import Sequences
from hedgerow.state import State
from hedgerow.threads import count_threads
from hedgerow.training.labelled import Labelled
from hedgerow.training.state import TrainingState
from hedgerow.training.trainer import Trainer
from hedgerow.training.training_set import TrainingSet
from hedgerow.trellis import PatternEdges

__all__ = ["DescentTrainer"]

# Without a penalty, the weight of a label pattern that never occurs would grow without bound.
LEAST_PENALTY = 0.01


class DescentTrainer(Trainer[Attributed, Solver]):
    """Makes a `Solver`, which starts from the weights of ``init``."""

    def __init__(
        self, crf: LinearParameters, objective: TrainingObjective, init: Model | None = None
    ) -> None:
        self.crf = crf
        self.objective = objective
        self.init = init
        self.plan = self._plan()
        self.n_steps = self.plan.warm_iter + self.plan.max_iter
        self.n_threads = count_threads(crf.n_jobs)
        self.history = {"loss": []}
        self.free = () if objective.needs_warm_start else ("max_iter",)

    def learn(self, labelled: Labelled) -> TrainingSet:
        """Learn label patterns and attributes, and which weights they have."""
        crf, sequences = self.crf, labelled.sequences
        self.objective = self.objective.for_labels(labelled.labels)
        self.plan = self._plan()
        data = TrainingSet.learn(
            crf, labelled, objective=self.objective, has_edges=bool(crf.transition_attributes)
        )
        self.given = data.given
        self.shape = edge_shape(self.given, data.trellis)
        if self.shape is not None and crf.pattern_attributes:
            self.shape = data.trellis.arc_shape
        self.scores = None
        if self.given:
            self.scores = score_at_once(
                self.given, sequences, data.trellis, self.shape, self.n_threads
            )
        index, n_ancestors = labelled.index, int(crf.ancestors)
        if n_ancestors:  # its attributes have an index of their own
            index = _core.StringIndex.from_arrays(*index.to_arrays())
        rows = learn_attributes(sequences, index, n_ancestors)
        self.rows, index = drop_rare(rows, index, crf.min_count, n_ancestors, labelled.comm)
        self.ancestors = AncestorAttributes.of(index, n_ancestors) if n_ancestors else None
        self.data = data = replace(data, index=index)
        self.layout = self._layout()
        self.penalties = self._penalties()
        n_patterns, reg_lambda = len(data.grammar.patterns), float(crf.reg_lambda)
        self.n_weights = self.layout.n_weights + n_patterns
        self.scaling = Scaling.of(
            self.rows,
            data.targets.weights,
            self.layout,
            n_patterns,
            reg_lambda,
            comm=labelled.comm,
        )
        return data

    def learnt_from(self, comm: Comm) -> str:
        """A digest of columns, lengths of sequences, parents, and attributes."""
        targets, rows = self.data.targets, self.rows
        parents = () if targets.parents is None else (targets.parents,)
        values = () if rows.values is None else (rows.values,)
        entries = rows.indptr, (rows.indices, *values)
        digest = fingerprint_sequences(targets.offsets, parents, entries, comm)
        return fingerprint(self.data.schema, digest)

    def prepare(self, sequences: Sequences) -> Attributed:
        """Sequences as rows of attributes."""
        rows = attribute_rows(sequences, self.data.index, ancestors=self.ancestors)
        adders = prepare(self.given, sequences, self.data.trellis, self.shape, self.n_threads)
        return Attributed(rows, sequences.offsets, sequences.parents, adders)

    def begin(self) -> Solver:
        """A solver that starts at zero, or at the weights of ``init``."""
        weights = np.zeros(self.n_weights)
        if self.init is not None:
            weights = start_from(self.init, self.data, self.layout)
        return self._solve(SolverState.begin(self.scaling.scale(weights)))

    def resume(self, state: State) -> Solver:
        """A solver after the iterations of a checkpoint."""
        penalty = self.scaling.divide_penalty(self.penalties)
        return self._solve(SolverState.unpack(state, self.n_weights, self.plan.stages, penalty))

    def renew(self, seed: int, share: float) -> DescentTrainer:
        """A trainer without ``init``, for a share of the sequences.

        All attributes are kept, so that those named by parameters exist; nothing is random.
        """
        crf = copy(self.crf)
        crf.min_count, crf.min_pattern_count = 0, round(share * crf.min_pattern_count)
        return DescentTrainer(crf, self.objective)

    def attributes(self, update: Solver, state: TrainingState) -> dict[str, Any]:
        """Number of iterations, and the best one."""
        return {"n_iter_": update.n_done, "best_iter_": state.best_step}

    def explain_end(self, update: Solver) -> str | None:
        """A message if the loss has not converged."""
        minimum, plan, data = update.minimum, self.plan, self.data
        if minimum is None:  # it was stopped from outside
            return None
        if minimum.steepest is not None:
            owner, columns = describe_weight(
                minimum.steepest,
                self.layout,
                data.index,
                data.grammar.patterns,
                data.labels.classes,
            )
            if plan.stages[-1].has_kinks:
                return (
                    "no weights were learned: training stopped where it began, since the objective "
                    "is not differentiable there. The slope is steepest for the weights of "
                    f"{owner}; check the penalties, reg_lambda and reg_alpha, and {columns} for "
                    "extreme values"
                )
            gradient = ", and check the gradient of the objective"
            return (
                f"training stopped after {count_of(update.n_done, 'iteration')}: no step decreases "
                "the loss, although its gradient is not zero. It is largest for the weights of "
                f"{owner}; check {columns} for extreme values"
                f"{'' if isinstance(self.crf.objective, str) else gradient}"
            )
        if plan.tol > 0 and not minimum.converged:
            return (
                f"training stopped after max_iter={self.crf.max_iter} iterations before it "
                f"converged to tol={plan.tol}; increase max_iter, or set tol=0 if this is intended"
            )
        return None

    def _solve(self, state: SolverState) -> Solver:
        loss = LinearLoss(
            self.rows,
            self.data.targets,
            self.layout,
            reg_lambda=self.penalties,
            scaling=self.scaling,
            given=self.scores,
            n_threads=self.n_threads,
        )
        del self.rows  # the loss has its own copy, in a suitable layout
        _core.release_memory()
        return Solver(loss, self.data.index, state, self.plan, self.given, int(self.crf.ancestors))

    def _plan(self) -> Plan:
        crf, objective = self.crf, self.objective
        tol, warm_iter = crf.tol, crf.warm_iter
        if tol is None:
            tol = 1e-5 if objective.is_smooth else 0.01
        if warm_iter is None:
            warm_iter = crf.max_iter if self.init is None else 0
        return Plan.of(
            objective,
            int(warm_iter) if objective.needs_warm_start else 0,
            max_iter=int(crf.max_iter),
            tol=float(tol),
            reg_alpha=float(crf.reg_alpha),
        )

    def _layout(self) -> LinearLayout:
        """Which weights there are, for labels, and for label pairs or label patterns."""
        crf, targets = self.crf, self.data.targets
        labels = self._layout_of([targets.codes], targets.n_labels)
        if crf.pattern_attributes:
            ending = PatternEdges(targets.trellis).ending(
                targets.codes, targets.offsets, targets.parents
            )
            patterns = self._layout_of(ending, targets.trellis.n_patterns)
            labels, patterns = self._share_out("pattern_attributes", labels, patterns)
            return LinearLayout(labels, None, patterns)
        if crf.transition_attributes:
            pairs = self._layout_of([targets.pair_codes], targets.n_labels**2)
            return LinearLayout(*self._share_out("transition_attributes", labels, pairs))
        return LinearLayout(labels, None)

    def _layout_of(self, outputs: Iterable[NDArray[np.int32]], n_outputs: int) -> WeightLayout:
        """All weights, or those of attributes and outputs that occur together."""
        if self.crf.all_pairs:
            return WeightLayout.full(len(self.data.index), n_outputs)
        layout = WeightLayout.seen_with_any(self.rows, outputs, n_outputs)
        return layout.union(self.data.targets.comm)

    def _share_out(
        self, parameter: str, labels: WeightLayout, edges: WeightLayout
    ) -> tuple[WeightLayout, WeightLayout]:
        """Weights for labels or for edges, depending on the prefix of each attribute.

        ``parameter`` is the name of the parameter that selects attributes for edges.
        """
        prefix = getattr(self.crf, parameter)
        if not isinstance(prefix, str):
            return labels, edges
        of_edges = begin_with(prefix, self.data.index, parameter)
        return labels.of_attributes(~of_edges), edges.of_attributes(of_edges)

    def _penalties(self) -> float | NDArray[np.float64]:
        """Strength of the L2 penalty, of all weights or of each, (W,)."""
        penalties, reg_lambda = self.data.pattern_penalties, float(self.crf.reg_lambda)
        if penalties is None:
            return reg_lambda
        if isinstance(self.crf.pattern_lambda, str):
            penalties = np.maximum(penalties, LEAST_PENALTY)
        return np.concatenate([np.full(self.layout.n_weights, reg_lambda), penalties])
