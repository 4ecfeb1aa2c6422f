"""LinearCRF: a conditional random field whose potentials are linear in the attributes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from hedgerow import _core, persist, trellis
from hedgerow.encode import check_schema, encode
from hedgerow.labels import Grammar, Labels, read_constraints, read_labels
from hedgerow.linear.attributes import attribute_rows, column_names, drop_rare
from hedgerow.linear.evaluation import Evaluation
from hedgerow.linear.lbfgs import Minimum, minimize
from hedgerow.linear.loss import LinearLoss
from hedgerow.linear.state import pack_weights, unpack_weights
from hedgerow.linear.tables import (
    attribute_table,
    name_patterns,
    pattern_table,
    transition_table,
)
from hedgerow.linear.training_set import TrainingSet
from hedgerow.linear.warm_start import copy_weights
from hedgerow.linear.weights import LinearLayout, LinearWeights, WeightLayout
from hedgerow.model import SequenceModel
from hedgerow.objectives import Targets
from hedgerow.parameters import check_choice, check_number
from hedgerow.progress import Progress
from hedgerow.sequences import Schema, Sequences, SparseRows, check_finite
from hedgerow.trellis import Potentials
from hedgerow.weighting import class_weights, read_sample_weight


class LinearCRF(SequenceModel):
    """Conditional random field with linear potentials, trained by L-BFGS.

    Minimises the negative log-likelihood, summed over sequences, plus
    ``reg_lambda / 2 * |w|^2 + reg_alpha * |w|_1``. (CRFsuite's ``c2=1`` is ``reg_lambda=2``, its
    ``c1`` is ``reg_alpha``.)

    Parameters
    ----------
    reg_lambda : float, default 1.0
        Strength of the L2 penalty.
    reg_alpha : float, default 0.0
        Strength of the L1 penalty, which sets weights to exactly zero.
    max_iter : int, default 1000
        Most iterations of L-BFGS.
    tol : float, default 1e-5
        Stop when ten iterations have lowered the loss by less than this share of it. 0: never.
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
        constraints below every label must occur in y.
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
    transition_attributes : bool, default False
        Give attributes weights for pairs of neighbouring labels too, so that what follows a label
        can depend on the input ("B" templates of CRF++).
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
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : (K,) array
        The labels, sorted.
    attributes_ : list of str
        Names of the attributes that can have weights.
    loss_ : float
        Loss at the end of training, penalties included.
    n_iter_ : int
        Number of iterations done.
    n_weights_ : int
        Number of weights.
    label_patterns_ : list of tuples of labels
        The label patterns that have weights.
    history_ : dict of lists
        ``loss`` after each iteration; with an ``eval_set`` also ``eval_loss`` (its negative
        log-likelihood without penalties, a position) and ``eval_accuracy``.

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
        max_iter: int = 1000,
        tol: float = 1e-5,
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
        transition_attributes: bool = False,
        class_weight: Mapping[Any, float] | str | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
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
        sample_weight : (S,), optional
            How much each sequence counts.
        groups : (N,), optional
            For a flat X, the sequence of each row; without it a flat X is one sequence.
        eval_set : (X, y) or (X, y, groups), optional
            Data to report on after each iteration, see ``history_``.
        init : fitted LinearCRF, optional
            Start from its weights; those of attributes or labels it does not know start at zero.
        """
        self._check_parameters()
        self._check_init(init)
        data, rows = self._read_training(X, y, sample_weight, groups)
        layout = self._layout(data, rows)
        start = np.zeros(sum(layout.sizes))
        if init is not None:
            init._copy_weights(data, LinearWeights.from_vector(start, layout))
        n_threads = trellis.count_threads(self.n_jobs)
        evaluation = None
        if eval_set is not None:
            evaluation = Evaluation(
                eval_set,
                data,
                model=type(self).__name__,
                missing_label=self.missing_label,
                n_threads=n_threads,
            )
        loss = LinearLoss(
            rows,
            data.targets,
            layout,
            reg_lambda=float(self.reg_lambda),
            n_threads=n_threads,
        )
        del rows  # the loss has its own copy, made for its purpose
        history: dict[str, list[float]] = {"loss": []}
        with Progress(self.max_iter, self.verbose) as progress:

            def report(vector: NDArray[np.float64], value: float) -> None:
                figures = {"loss": value}
                if evaluation is not None:
                    weights = LinearWeights.from_vector(vector, layout)
                    figures |= evaluation.measure(weights)
                for name, figure in figures.items():
                    history.setdefault(name, []).append(figure)
                progress.update(figures)

            minimum = minimize(
                loss,
                start,
                reg_alpha=float(self.reg_alpha),
                max_iter=self.max_iter,
                tol=float(self.tol),
                n_threads=n_threads,
                report=report,
            )
        del loss
        _core.release_memory()
        self._warn_unless_converged(minimum)
        weights = LinearWeights.from_vector(minimum.weights, layout)
        self._set_fitted(data.labels.classes, data.schema, data.index, weights)
        self.loss_ = minimum.loss
        self.n_iter_ = minimum.n_iter
        self.history_ = history
        return self

    @property
    def attributes_(self) -> list[str]:
        """Names of the attributes, in order."""
        self._check_fitted()
        return self._index.names()

    @property
    def n_weights_(self) -> int:
        """Number of weights."""
        self._check_fitted()
        return self._weights.n_weights

    def weights(self) -> dict[str, NDArray[Any]]:
        """Weights of attributes, as the columns of a table: attribute, label, weight.

        The attribute ``(bias)`` stands for the label's own weight. ``pandas.DataFrame(...)`` and
        ``polars.DataFrame(...)`` take what is returned.
        """
        self._check_fitted()
        return attribute_table(self._weights, self._index, self.classes_)

    @property
    def label_patterns_(self) -> list[tuple[Any, ...]]:
        """The label patterns that have weights."""
        self._check_fitted()
        return name_patterns(self._grammar.patterns, self.classes_)

    def patterns(self) -> dict[str, NDArray[Any]]:
        """Weights of label patterns, as the columns of a table: pattern, weight."""
        self._check_fitted()
        return pattern_table(self._weights, self.classes_)

    def transitions(self) -> dict[str, NDArray[Any]]:
        """Weights of label pairs, as the columns of a table: from, to, weight.

        With ``transition_attributes`` a column ``attribute`` comes first; it is empty for the pairs
        themselves.
        """
        self._check_fitted()
        return transition_table(self._weights, self._index, self.classes_)

    def _check_parameters(self) -> None:
        check_number("reg_lambda", self.reg_lambda, minimum=0)
        check_number("reg_alpha", self.reg_alpha, minimum=0)
        check_number("max_iter", self.max_iter, minimum=1, integer=True)
        check_number("tol", self.tol, minimum=0)
        check_number("min_count", self.min_count, minimum=0, integer=True)
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose, minimum=0, integer=True)
        check_number("order", self.order, minimum=0, integer=True)
        check_number("min_pattern_count", self.min_pattern_count, minimum=0, integer=True)
        for name, default in (("order", 1), ("min_pattern_count", 0)):
            value = getattr(self, name)
            if self.label_patterns is not None and value != default:
                raise ValueError(
                    f"{name} is {value} and label_patterns are given; these take the place of the "
                    "patterns that order and min_pattern_count find: leave one of them out"
                )
        check_choice("all_pairs", self.all_pairs, (True, False))
        check_choice("transition_attributes", self.transition_attributes, (True, False))
        if isinstance(self.class_weight, str):
            check_choice("class_weight", self.class_weight, ("balanced", None))

    def _check_init(self, init: Any) -> None:
        if init is None:
            return
        if not isinstance(init, LinearCRF):
            raise TypeError(f"init is of type {type(init).__name__}; expected a fitted LinearCRF")
        init._check_fitted()

    def _copy_weights(self, data: TrainingSet, start: LinearWeights) -> None:
        """Lend this model's weights to one that is to be trained on `data`."""
        copy_weights(self._weights, self._index, self._labels(), data, start)

    def _read_training(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, groups: Any
    ) -> tuple[TrainingSet, SparseRows]:
        index = _core.StringIndex()
        sequences = encode(X, groups, index)
        check_finite(sequences, type(self).__name__)
        column = read_labels(y, sequences, missing_label=self.missing_label)
        labels, codes = Labels.learn(column)
        grammar = self._learn_grammar(labels, codes, sequences)
        sequence_weights = read_sample_weight(sample_weight, sequences)
        position_weights = None
        if self.class_weight is not None:
            column.require_all(sequences, "class_weight weighs the label of every position")
            position_weights = class_weights(self.class_weight, labels, codes)[codes]
            if sequence_weights is not None:
                position_weights *= np.repeat(sequence_weights, sequences.lengths)
        rows, index = drop_rare(attribute_rows(sequences, index, grow=True), index, self.min_count)
        targets = Targets(
            sequences.offsets,
            codes,
            len(labels.classes),
            grammar.automaton,
            sequence_weights,
            position_weights,
        )
        return TrainingSet(sequences.schema, index, labels, grammar, targets), rows

    def _learn_grammar(
        self, labels: Labels, codes: NDArray[np.int32], sequences: Sequences
    ) -> Grammar:
        constraints = read_constraints(
            labels,
            constraints=self.constraints,
            allowed=self.allowed,
            forbidden=self.forbidden,
            start_labels=self.start_labels,
            end_labels=self.end_labels,
        )
        if constraints is not None:
            constraints.check(codes, sequences, labels)
        return Grammar.learn(
            labels,
            codes,
            sequences.offsets,
            order=int(self.order),
            min_pattern_count=int(self.min_pattern_count),
            label_patterns=self.label_patterns,
            constraints=constraints,
            has_edges=self.transition_attributes,
        )

    def _layout(self, data: TrainingSet, rows: SparseRows) -> LinearLayout:
        """Which weights there are, for labels, label pairs and label patterns."""
        n_labels = data.targets.n_labels

        def layout_of(outputs: NDArray[np.int32], n_outputs: int) -> WeightLayout:
            if self.all_pairs:
                return WeightLayout.full(len(data.index), n_outputs)
            return WeightLayout.seen(rows, outputs, n_outputs)

        pairs = None
        if self.transition_attributes:
            pairs = layout_of(data.targets.pair_codes, n_labels * n_labels)
        return LinearLayout(layout_of(data.targets.codes, n_labels), pairs, data.grammar)

    def _warn_unless_converged(self, minimum: Minimum) -> None:
        if self.tol > 0 and not minimum.converged:
            warnings.warn(
                f"L-BFGS stopped after max_iter={self.max_iter} iterations before the loss settled "
                f"to tol={self.tol}; raise max_iter, or set tol=0 if this is what you want",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _set_fitted(
        self,
        classes: NDArray[Any],
        schema: Schema,
        index: _core.StringIndex,
        weights: LinearWeights,
    ) -> None:
        self.classes_ = classes
        self._schema = schema
        self._index = index
        self._weights = weights
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)
        if schema.kind == "columns":
            self.n_features_in_ = schema.n_features
            if schema.names is not None:
                self.feature_names_in_ = np.array(column_names(schema), dtype=np.object_)

    def _read(self, X: Any, groups: Any) -> Sequences:
        sequences = encode(X, groups, self._index, grow=False)
        check_schema(self._schema, sequences.schema, type(self).__name__)
        check_finite(sequences, type(self).__name__)
        # Attributes have the names of the columns used to fit, also if X has none or others.
        return replace(sequences, schema=self._schema)

    @property
    def _grammar(self) -> Grammar:
        return self._weights.layout.grammar

    def _potentials(self, sequences: Sequences) -> Iterator[Potentials]:
        rows = attribute_rows(sequences, self._index)
        return self._weights.potentials(rows, sequences.offsets, trellis.count_threads(self.n_jobs))

    def _to_state(self) -> persist.State:
        metadata = {
            "parameters": persist.pack_parameters(self.get_params(deep=False)),
            "classes": persist.pack_classes(self.classes_),
            "schema": self._schema.to_json(),
            "loss": self.loss_,
            "n_iter": self.n_iter_,
            "history": self.history_,
        }
        return persist.State(pack_weights(self._weights, self._index), metadata)

    @classmethod
    def _from_state(cls, state: persist.State) -> LinearCRF:
        metadata = state.metadata
        known = cls().get_params(deep=False)
        crf = cls(**persist.unpack_parameters(metadata, known))
        classes = persist.unpack_classes(metadata)
        weights, index = unpack_weights(state, len(classes))
        try:
            schema = Schema.from_json(metadata["schema"])
            crf.loss_ = float(metadata["loss"])
            crf.n_iter_ = int(metadata["n_iter"])
            crf.history_ = dict(metadata["history"])
        except (KeyError, TypeError, ValueError) as error:
            raise persist.ModelFileError(
                f"the file does not hold a valid model: {error!r}"
            ) from error
        named = schema.names is None or len(schema.names) == schema.n_features
        persist.require(named and schema.to_json() == metadata["schema"], "its columns")
        crf._set_fitted(classes, schema, index, weights)
        return crf
