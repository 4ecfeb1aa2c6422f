"""LinearCRF: a conditional random field whose potentials are linear in the attributes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from hedgerow import _core
from hedgerow.checkpoint import Checkpoint, Record, check_checkpoint
from hedgerow.decoding import Decode
from hedgerow.encode import encode
from hedgerow.estimator import Estimator, check_fitted
from hedgerow.labels import Labels
from hedgerow.lbfgs import Minimum
from hedgerow.linear.attributes import attribute_rows, begin_with, drop_rare
from hedgerow.linear.loss import LinearLoss
from hedgerow.linear.scaling import Scaling
from hedgerow.linear.standing import Standing
from hedgerow.linear.state import pack_weights, unpack_weights
from hedgerow.linear.tables import attribute_table, describe_weight, transition_table
from hedgerow.linear.train import plan_stages, train
from hedgerow.linear.warm_start import copy_weights
from hedgerow.linear.watch import Evaluate, watch
from hedgerow.linear.weights import LinearLayout, LinearWeights, WeightLayout
from hedgerow.model import Model
from hedgerow.objectives import Objective, TrainingObjective, read_objective
from hedgerow.parameters import check_choice, check_number, check_prefix
from hedgerow.potentials import AttributeWeights, PatternWeights, Potential
from hedgerow.progress import Progress
from hedgerow.sequences import Schema, Sequences, SparseRows, check_finite
from hedgerow.state import State, read_count, read_loss
from hedgerow.tables import Table
from hedgerow.threads import count_threads
from hedgerow.training import TrainingSet, check_label_parameters, read_training_set


class LinearCRF(Estimator):
    """Conditional random field with linear potentials, trained by L-BFGS.

    Minimises a loss, unless told otherwise the negative log-likelihood, summed over sequences, plus
    ``reg_lambda / 2 * |w|^2 + reg_alpha * |w|_1``. (CRFsuite's ``c2=1`` is ``reg_lambda=2``, its
    ``c1`` is ``reg_alpha``.) Columns may have any scale: training finds units of its own. But
    penalties are of the weights as they are, so it pays to subtract the mean of a column that lies
    far from 0, such as a year.

    Parameters
    ----------
    reg_lambda : float, default 1.0
        Strength of the L2 penalty.
    reg_alpha : float, default 0.0
        Strength of the L1 penalty, which sets weights to exactly zero.
    objective : str or object, default "likelihood"
        What the model is trained for: "likelihood", the probability of whole labellings;
        "pointwise", the product of the probabilities of all labels; "accuracy", the number of
        positions whose own label is the most probable one (Gross et al. 2006), which pays where
        labels are noisy; "expected_accuracy", the sum of the probabilities of all labels;
        "max_margin", that the score of a labelling exceeds those of all others by the number of
        labels they get wrong; or an object with the methods value and gradient, see
        `hedgerow.objectives.Objective`. Positions whose label is not known count only for the
        likelihood of the others; for "max_margin" all labels must be known.
    sharpness : float, default 15.0
        How close "accuracy" comes to counting: a label that is ahead of its rival by 1 / sharpness
        counts as 0.73. Training begins with an eighth of it.
    warm_iter : int or None, default None
        Most iterations for the likelihood, to start from, before those for the objective. None:
        `max_iter`, or none at all with `init`.
    max_iter : int, default 1000
        Most iterations of L-BFGS for the objective; of the bundle method for "max_margin".
    tol : float or None, default None
        Stop when ten iterations have lowered the loss by less than this share of it; for
        "max_margin", when the loss is known to be within this share of the lowest, which takes many
        iterations where there are many weights and `reg_lambda` is small. 0: never. None: 1e-5, and
        0.01 for "max_margin".
    min_count : int, default 0
        Leave out attributes that occur at fewer than this many training positions.
    all_pairs : bool, default False
        Give every attribute a weight for every label; else only for labels it occurs with in
        training.
    order : int, default 1
        How many labels before it a label depends on directly. 1: every pair of neighbouring labels
        has a weight. m > 1: every label pattern of 2 to m + 1 labels that occurs in training has
        one; time grows with the number of patterns, not with a power of the number of labels. 0:
        labels do not depend on each other.
    min_pattern_count : int, default 0
        Leave out label patterns that occur less often than this in training. With 0 order 1 has all
        pairs, with 1 only those that occur.
    label_patterns : list of tuples of labels or None, default None
        The label patterns that have weights, in place of those that `order` finds. Here and in the
        constraints below every label must occur in y, and any collection will do that can be read
        again, such as a set, which is sorted, an array or a Series.
    constraints : "BIO", "IOB1", "BILOU", "BIOES" or None, default None
        Allow only labellings that keep to this scheme of chunk labels. Constraints hold in training
        too, where only labellings that are allowed compete.
    allowed, forbidden : list of (label before, label) or None, default None
        Pairs of neighbouring labels that may occur, all others being forbidden; pairs that may not.
    start_labels, end_labels : list of labels or None, default None
        Labels that may begin a sequence, and that may end one.
    missing_label : str, int or None, default None
        A label that says, as None and NaN always do, that the label of a position is not known; -1
        is common. Training then maximises the probability of the labels that are known.
    transition_attributes : bool or str, default False
        Give attributes weights for pairs of neighbouring labels too, so that what follows a label
        can depend on the input. A string is a prefix: attributes whose names begin with it have
        weights for pairs of labels only, all others for labels only ("B" and "U" lines of CRF++
        templates).
    group_column : str, int or None, default None
        Name or number of a column of X that says which sequence each row of a flat X belongs to. It
        is no feature. A table then carries its groups to wherever scikit-learn hands it on without
        them, and needs none beside it; see `groups` of `fit`.
    class_weight : dict, "balanced" or None, default None
        How much a position counts in training, by its label: a weight for each label (1 for those
        left out), or "balanced" for weights inversely proportional to how often a label occurs. The
        term log P(y_t | labels before) of the likelihood is multiplied by the weight. All labels
        must be known.
    n_jobs : int or None, default None
        Number of threads; None or -1 is all cores. The result does not depend on it.
    random_state : int or None, default None
        Accepted for uniformity; training draws no random numbers.
    verbose : int, default 0
        1 shows progress: a bar on a terminal or in a notebook, else a few lines. 2: always lines.

    Attributes
    ----------
    classes_ : (K,) array
        The labels, sorted.
    attributes_ : list of str
        Names of the attributes that can have weights.
    decode_ : {"viterbi", "marginal"}
        How `predict` decodes by default.
    loss_ : float
        Loss at the end of training, penalties included: the negative log-likelihood, or the value
        of the objective with the sign changed.
    n_iter_ : int
        Number of iterations done.
    n_weights_ : int
        Number of weights.
    label_patterns_ : list of tuples of labels
        The label patterns that have weights.
    model_ : hedgerow.model.Model
        The trained model: labels, columns of X, potentials and a trellis.
    history_ : dict of lists
        ``loss`` after each iteration, of what it was for; with an ``eval_set`` also ``eval_loss``
        (of the objective, without penalties, a position) and ``eval_accuracy`` (of `predict`).

    Examples
    --------
    >>> from hedgerow import LinearCRF
    >>> X = [[{"word": "the"}, {"word": "old"}, {"word": "man"}], [{"word": "man"}]]
    >>> y = [["D", "A", "N"], ["N"]]
    >>> crf = LinearCRF().fit(X, y)
    >>> [labels.tolist() for labels in crf.predict(X)]
    [['D', 'A', 'N'], ['N']]
    """

    def __init__(
        self,
        *,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        objective: str | Objective = "likelihood",
        sharpness: float = 15.0,
        warm_iter: int | None = None,
        max_iter: int = 1000,
        tol: float | None = None,
        min_count: int = 0,
        all_pairs: bool = False,
        order: int = 1,
        min_pattern_count: int = 0,
        label_patterns: Any = None,
        constraints: str | None = None,
        allowed: Any = None,
        forbidden: Any = None,
        start_labels: Any = None,
        end_labels: Any = None,
        missing_label: Any = None,
        transition_attributes: bool | str = False,
        group_column: str | int | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.objective = objective
        self.sharpness = sharpness
        self.warm_iter = warm_iter
        self.max_iter = max_iter
        self.tol = tol
        self.min_count = min_count
        self.all_pairs = all_pairs
        self.order = order
        self.min_pattern_count = min_pattern_count
        self.label_patterns = label_patterns
        self.constraints = constraints
        self.allowed = allowed
        self.forbidden = forbidden
        self.start_labels = start_labels
        self.end_labels = end_labels
        self.missing_label = missing_label
        self.transition_attributes = transition_attributes
        self.group_column = group_column
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
        eval_set: tuple[Any, ...] | None = None,
        init: LinearCRF | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> LinearCRF:
        """Learn the weights.

        Parameters
        ----------
        X
            Sequences: a list of 2-D arrays, DataFrames, sparse matrices, or lists of dicts; or one
            flat array, DataFrame or sparse matrix, cut into sequences by `groups`.
        y
            A list of label lists, or flat labels for a flat X. None or NaN stands for a label that
            is not known.
        sample_weight : (S,), or (N,) for a flat X, optional
            How much each sequence counts, or each row: the term log P(y_t | labels before) of its
            label is multiplied by the weight. All labels must be known if rows differ.
        groups : (N,), optional
            For a flat X, the sequence of each row; without it a flat X is one sequence.
        eval_set : (X, y) or (X, y, groups), optional
            Data to report on after each iteration, see ``history_``.
        init : fitted LinearCRF, optional
            Start from its weights; those of attributes or labels it does not know start at zero.
        checkpoint : hedgerow.Checkpoint, optional
            A file to write the state of the training to, and to go on from if it exists. For the
            likelihood `max_iter` may be another then.
        """
        self._check_parameters()
        check_checkpoint(checkpoint)
        objective = read_objective(self.objective, self.sharpness, margin=True)
        if not objective.is_smooth:
            self._check_margin_parameters()
        self._check_init(init)
        data, rows = self._read_training(X, y, sample_weight, groups, objective)
        layout = self._layout(data, rows)
        watched = self._read_watched(eval_set, data, objective)
        free = () if objective.needs_warm_start else ("max_iter",)
        learnt_from = (data.schema, data.targets.offsets, rows)
        warm_iter, tol = self._count_warm_iterations(objective, init), self._tolerance(objective)
        plan = plan_stages(objective, warm_iter)
        scaling = Scaling.of(rows, data.targets.weights, layout, float(self.reg_lambda))
        with self._record(checkpoint, learnt_from, data, watched, init, free) as record:
            del learnt_from
            standing = self._stand(record, plan, layout, scaling, data, init)
            n_threads = count_threads(self.n_jobs)
            evaluate = watch(watched, data.index, n_threads)
            del watched
            loss = LinearLoss(
                rows,
                data.targets,
                layout,
                reg_lambda=float(self.reg_lambda),
                scaling=scaling,
                n_threads=n_threads,
            )
            del rows  # the loss has its own copy, made for its purpose
            minimum = self._train(loss, standing, plan, warm_iter, tol, evaluate, record)
        history = standing.history
        del loss, standing
        _core.release_memory()
        self._warn_unless_converged(minimum, tol, layout, data, objective)
        weights = LinearWeights.from_vector(minimum.weights, layout)
        fitted = self._fitted(data, _potentials(weights, data.index), objective)
        fitted.loss_ = minimum.loss
        fitted.n_iter_ = minimum.n_iter
        fitted.history_ = history
        self.__dict__ = fitted.__dict__  # one step: Ctrl-C leaves the old model or the new one
        return self

    @property
    def attributes_(self) -> list[str]:
        """Names of the attributes, in order."""
        check_fitted(self)
        return self.model_.index.names()

    @property
    def n_weights_(self) -> int:
        """Number of weights."""
        check_fitted(self)
        return self._weights.n_weights

    def weights(self) -> Table:
        """Weights of attributes, as the columns of a table: attribute, label, weight.

        The attribute ``(bias)`` stands for the label's own weight. ``pandas.DataFrame(...)`` and
        ``polars.DataFrame(...)`` take what is returned.
        """
        check_fitted(self)
        return attribute_table(self._weights, self.model_.index, self.classes_)

    def transitions(self) -> Table:
        """Weights of label pairs, as the columns of a table: from, to, weight.

        With ``transition_attributes`` a column ``attribute`` comes first; it is empty for the pairs
        themselves.
        """
        check_fitted(self)
        return transition_table(self._weights, self.model_.index, self.classes_)

    def _check_parameters(self) -> None:
        check_number("reg_lambda", self.reg_lambda, minimum=0)
        check_number("reg_alpha", self.reg_alpha, minimum=0)
        check_number("max_iter", self.max_iter, minimum=1, integer=True)
        if self.warm_iter is not None:
            check_number("warm_iter", self.warm_iter, minimum=0, integer=True)
        if self.tol is not None:
            check_number("tol", self.tol, minimum=0)
        check_number("min_count", self.min_count, minimum=0, integer=True)
        check_choice("all_pairs", self.all_pairs, (True, False))
        check_prefix("transition_attributes", self.transition_attributes)
        check_label_parameters(self)

    def _check_margin_parameters(self) -> None:
        if self.reg_alpha > 0:
            raise ValueError(
                f"reg_alpha is {self.reg_alpha} and objective is 'max_margin', whose training "
                "knows no L1 penalty; leave one of them out"
            )
        if self.reg_lambda == 0:
            raise ValueError(
                f"reg_lambda is {self.reg_lambda} and objective is 'max_margin', which needs a "
                "penalty; pass a reg_lambda above 0"
            )

    def _check_init(self, init: Any) -> None:
        if init is None:
            return
        if not isinstance(init, LinearCRF):
            raise TypeError(f"init is of type {type(init).__name__}; expected a fitted LinearCRF")
        check_fitted(init)

    def _tolerance(self, objective: TrainingObjective) -> float:
        if self.tol is not None:
            return float(self.tol)
        return 1e-5 if objective.is_smooth else 0.01

    def _count_warm_iterations(self, objective: TrainingObjective, init: LinearCRF | None) -> int:
        if not objective.needs_warm_start:
            return 0
        if self.warm_iter is not None:
            return int(self.warm_iter)
        return self.max_iter if init is None else 0

    def _copy_weights(self, data: TrainingSet, start: LinearWeights) -> None:
        """Lend this model's weights to one that is to be trained on `data`."""
        copy_weights(self._weights, self.model_.index, self.model_.labels, data, start)

    def _read_training(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        groups: Any,
        objective: TrainingObjective,
    ) -> tuple[TrainingSet, SparseRows]:
        index = _core.StringIndex()
        sequences = encode(X, groups, index, group_column=self.group_column)
        self._check_values(sequences)
        data = read_training_set(
            self,
            sequences,
            index,
            y,
            sample_weight,
            objective=objective,
            has_edges=bool(self.transition_attributes),
        )
        rows, index = drop_rare(attribute_rows(sequences, index, grow=True), index, self.min_count)
        return replace(data, index=index), rows

    def _stand(
        self,
        record: Record | None,
        plan: Sequence[TrainingObjective],
        layout: LinearLayout,
        scaling: Scaling,
        data: TrainingSet,
        init: LinearCRF | None,
    ) -> Standing:
        """Where to go on: from a checkpoint, from another model, or at the beginning."""
        weights = np.zeros(sum(layout.sizes))
        if record is not None:
            penalty = scaling.divide_penalty(float(self.reg_lambda))
            found = record.read(lambda state: Standing.unpack(state, len(weights), plan, penalty))
            if found is not None:
                if not plan[-1].needs_warm_start:
                    record.check_limit("max_iter", self.max_iter, found.n_iter)
                return found
        if init is not None:
            init._copy_weights(data, LinearWeights.from_vector(weights, layout))
        return Standing.begin(scaling.scale(weights))

    def _train(
        self,
        loss: LinearLoss,
        standing: Standing,
        plan: Sequence[TrainingObjective],
        warm_iter: int,
        tol: float,
        evaluate: Evaluate,
        record: Record | None,
    ) -> Minimum:
        """Go on until the loss has settled; every iteration is noted in the history."""
        with Progress(warm_iter + self.max_iter, self.verbose, standing.n_iter) as progress:

            def report(vector: NDArray[np.float64], value: float) -> None:
                weights = LinearWeights.from_vector(vector, loss.layout)
                figures = {"loss": value} | evaluate(weights)
                for name, figure in figures.items():
                    standing.history.setdefault(name, []).append(figure)
                progress.update(figures)
                if record is not None:
                    record.note(standing.n_iter, standing.pack)

            minimum = train(
                loss,
                standing,
                plan,
                reg_alpha=float(self.reg_alpha),
                max_iter=self.max_iter,
                warm_iter=warm_iter,
                tol=tol,
                report=report,
            )
        if record is not None:
            record.note(standing.n_iter, standing.pack, last=True)
        return minimum

    def _layout(self, data: TrainingSet, rows: SparseRows) -> LinearLayout:
        """Which weights there are, for labels, label pairs and label patterns."""
        n_labels = data.targets.n_labels

        def layout_of(outputs: NDArray[np.int32], n_outputs: int) -> WeightLayout:
            if self.all_pairs:
                return WeightLayout.full(len(data.index), n_outputs)
            return WeightLayout.seen(rows, outputs, n_outputs)

        labels, pairs = layout_of(data.targets.codes, n_labels), None
        if self.transition_attributes:
            pairs = layout_of(data.targets.pair_codes, n_labels * n_labels)
        if isinstance(self.transition_attributes, str):
            assert pairs is not None
            of_pairs = begin_with(self.transition_attributes, data.index)
            labels, pairs = labels.of_attributes(~of_pairs), pairs.of_attributes(of_pairs)
        return LinearLayout(labels, pairs, data.grammar, data.trellis)

    def _warn_unless_converged(
        self,
        minimum: Minimum,
        tol: float,
        layout: LinearLayout,
        data: TrainingSet,
        objective: TrainingObjective,
    ) -> None:
        if minimum.steepest is not None:
            owner, columns = describe_weight(
                minimum.steepest, layout, data.index, data.labels.classes
            )
            message = (
                f"training stopped after {minimum.n_iter} iterations: no step lowers the loss, "
                f"although its gradient is not zero. It is largest for the weights of {owner}; "
                f"check {columns} for extreme values"
            )
            if objective.has_kinks:
                message = (
                    "no weight is learnt: training for the likelihood did not move them, and the "
                    "objective has a kink where it began; check the penalties, reg_lambda and "
                    f"reg_alpha, and {columns} for extreme values"
                )
            elif not isinstance(self.objective, str):
                message += ", and check the gradient of the objective"
        elif tol > 0 and not minimum.converged:
            message = (
                f"training stopped after max_iter={self.max_iter} iterations before the loss "
                f"settled to tol={tol}; raise max_iter, or set tol=0 if this is what you want"
            )
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=3)

    def _check_values(self, sequences: Sequences) -> None:
        check_finite(sequences, type(self).__name__)

    @property
    def _weights(self) -> LinearWeights:
        return self.model_.potential(AttributeWeights).weights

    def _pack(self) -> State:
        figures = {"loss": self.loss_, "n_iter": self.n_iter_}
        return State(pack_weights(self._weights), figures)

    def _unpack(
        self,
        state: State,
        labels: Labels,
        schema: Schema,
        index: _core.StringIndex,
        decode: Decode,
    ) -> Model:
        weights = unpack_weights(state, len(index), len(labels.classes))
        self.loss_ = read_loss(state.metadata)
        self.n_iter_ = read_count(state.metadata, "n_iter")
        grammar, trellis = weights.layout.grammar, weights.layout.trellis
        potentials = _potentials(weights, index)
        return Model(labels, schema, index, grammar, trellis, potentials, decode)


def _potentials(weights: LinearWeights, index: _core.StringIndex) -> tuple[Potential, ...]:
    return AttributeWeights(weights, index), PatternWeights(weights.patterns)
