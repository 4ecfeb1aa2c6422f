"""LinearCRF: a conditional random field whose potentials are linear in the attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hedgerow.decoding import DecodeParameter
from hedgerow.descent.parameters import check_linear_parameters
from hedgerow.descent.trainer import DescentTrainer
from hedgerow.encode.parents import ParentsFormat
from hedgerow.estimator import Estimator
from hedgerow.fitted import check_fitted
from hedgerow.linear.tables import attribute_table, pattern_attribute_table, transition_table
from hedgerow.linear.weights import LinearWeights
from hedgerow.objectives import F1Average, LabelCostsParameter, Objective, read_objective
from hedgerow.potentials import AttributeWeights, PatternWeights
from hedgerow.relational import RelationalFeatures
from hedgerow.shared_parameters import explain_shared
from hedgerow.state import read_count, read_optional_count
from hedgerow.tables import Table
from hedgerow.training.eval_metrics import MetricOrName
from hedgerow.training.pattern_penalty import PatternLambda
from hedgerow.training.stopping import Callback


@explain_shared
class LinearCRF(Estimator):
    """Conditional random field with linear potentials, trained by L-BFGS.

    Minimises a loss, by default the negative log-likelihood, summed over sequences, plus
    ``reg_lambda / 2 * |w|^2 + reg_alpha * |w|_1``. (CRFsuite's ``c2=1`` is ``reg_lambda=2``, its
    ``c1`` is ``reg_alpha``.) Columns may have any scale: the optimiser rescales them. But the
    penalties apply to the weights of the columns as they are, and to the bias weights too, so
    subtract the mean of a column that is far from 0, such as a year.

    Parameters
    ----------
    reg_lambda : float, default 1.0
        Strength of the L2 penalty.
    reg_alpha : float, default 0.0
        Strength of the L1 penalty, which sets weights to exactly zero.
    pattern_lambda : float, list of float, "auto" or None, default None
        Strength of the L2 penalty on the weights of label patterns, instead of `reg_lambda`. A
        number applies to all of them. A list has one number for patterns of 2, 3, ... labels; the
        last number also applies to all longer patterns. "auto": strong for a pattern length
        if most patterns of that length occur only once in training, otherwise weak; it often helps
        for an `order` above 1. None: `reg_lambda`.
    objective : str or object, default "likelihood"
        What training maximises: "likelihood", the probability of whole labellings;
        "pointwise", the product of the probabilities of all true labels; "accuracy", the number
        of positions whose true label is the most probable one (Gross et al. 2006), which helps if
        labels are noisy; "expected_accuracy", the sum of the probabilities of all true labels;
        "f1", the F1 of labels (`f1_labels`, `f1_average`), with expected counts; "softmax_margin",
        the likelihood with the costs of errors (`label_costs`) added to the scores of wrong labels,
        so that costly errors become less probable (Gimpel and Smith 2010); "max_margin", a margin
        between the score of the true labelling and that of every other one, as large as the cost of
        its errors; or an object with the methods value and gradient, see
        `hedgerow.objectives.Objective`. The likelihood and the softmax margin sum over all values
        of a label that is not known; other objectives leave its position out, except for
        "max_margin", for which all labels must be known.
    sharpness : float, default 15.0
        Steepness of the sigmoid that replaces the 0-1 loss in "accuracy": a true label whose
        probability exceeds that of the most probable other label by 1 / sharpness counts as 0.73.
        Training starts with an eighth of this value.
    warm_iter : int or None, default None
        Maximum number of iterations for the likelihood, before those for the objective. None:
        `max_iter`, or none at all with `init`. "softmax_margin" needs none.
    max_iter : int, default 1000
        Maximum number of iterations for the objective: of L-BFGS, or of the bundle method for
        "max_margin".
    tol : float or None, default None
        Tolerance: stop if ten iterations have decreased the loss by less than this share of it; for
        "max_margin", if the loss is known to be within this share of the minimum, which takes many
        iterations with many weights and a small `reg_lambda`. 0: continue up to `max_iter`, as
        long as the loss can be decreased. None: 1e-5, and 0.01 for "max_margin".
    min_count : int, default 0
        Leave out attributes that occur at fewer than this many training positions. With
        `ancestors`, a rarer attribute such as ``word=the`` is kept if ``word=the[parent]``, or that
        of another ancestor, is frequent enough.
    ancestors : int, default 0
        Number of ancestors whose attributes a position also gets, in data with `parents`: 1, those
        of the parent, such as ``word=the[parent]``; 2, also ``word=the[grandparent]``, then
        ``word=the[parent^3]`` and so on, up to 255. X is not changed, but the number of attributes
        grows.
    all_pairs : bool, default False
        Give every attribute a weight for every label, as CRF++ and Wapiti do (CRFsuite's
        ``feature.possible_states``, sklearn-crfsuite's ``all_possible_states``). False: only for
        labels that it occurs with in training. Weights for labels that an attribute never occurs
        with are evidence against these labels, worth about 0.1 points of F1 on text; but the number
        of weights is many times larger, which takes time and memory.
    transition_attributes : bool or str, default False
        Whether attributes also have weights for pairs of neighbouring labels, so that transitions
        can depend on the input. A string is a prefix: attributes whose names start with it have
        weights for pairs of labels only, all others for labels only ("B" and "U" lines of CRF++
        templates).
    pattern_attributes : bool or str, default False
        Whether attributes also have weights for label patterns of any length: for the patterns of
        the model (see `order`) that end at a position where the attribute occurs in training; with
        `all_pairs` for all patterns. A string is a prefix, as for `transition_attributes`; the two
        parameters are equivalent if the patterns are all pairs of labels and nothing else, as by
        default. With this parameter, not only the scores of labels but also those of label patterns
        differ from position to position. Time grows with the number A of scores per position, about
        the number of labels plus the number of label patterns. Sequences are processed in batches
        that take up to 16 MiB of memory, or 32 MiB with 8 or more threads; a sequence that does not
        fit is a batch by itself, and takes up to 32 A bytes per position.
    random_state : int, RandomState or None, default None
        Seed for choosing the sequences that early stopping holds out (`validation_fraction`), and
        those on which ``decode="auto"`` tries the decoders; nothing else is random.
    <parameters of both estimators>

    Attributes
    ----------
    attributes_ : list of str
        Names of the attributes that can have weights.
    loss_ : float
        Training loss, penalties included: the negative log-likelihood, or the value
        of the objective with the sign changed. If early stopping keeps an iteration of the warm-up,
        it is the negative log-likelihood.
    n_iter_ : int
        Number of iterations.
    best_iter_ : int or None
        Number of iterations after which the metric was best on the `eval_set`, or on the held-out
        sequences.
    n_weights_ : int
        Number of weights.
    history_ : dict of lists
        One entry per iteration: ``loss``, of the objective of that iteration; with an ``eval_set``
        also ``eval_loss`` (of the objective, without penalties, per position), ``eval_accuracy``,
        and the metrics of `eval_metric`, such as ``eval_f1_macro``; for held-out training sequences
        ``validation_loss`` and so on. Accuracies and metrics use the decoder of `decode`; if it is
        "auto", marginals, or Viterbi for "max_margin".
    <attributes of both estimators>

    Examples
    --------
    >>> from hedgerow import LinearCRF
    >>> X = [[{"word": "the"}, {"word": "old"}, {"word": "man"}], [{"word": "man"}]]
    >>> y = [["D", "A", "N"], ["N"]]
    >>> crf = LinearCRF().fit(X, y)
    >>> [labels.tolist() for labels in crf.predict(X)]
    [['D', 'A', 'N'], ['N']]
    """

    learns = (AttributeWeights, PatternWeights)
    step_name = "iteration"
    best_iter_: int | None
    n_iter_: int

    def __init__(
        self,
        *,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        pattern_lambda: PatternLambda = None,
        objective: str | Objective = "likelihood",
        sharpness: float = 15.0,
        warm_iter: int | None = None,
        max_iter: int = 1000,
        tol: float | None = None,
        min_count: int = 0,
        ancestors: int = 0,
        all_pairs: bool = False,
        transition_attributes: bool | str = False,
        pattern_attributes: bool | str = False,
        random_state: Any = None,
        decode: DecodeParameter = "auto",
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str | None = None,
        eval_metric: MetricOrName = None,
        validation_fraction: float | None = 0.1,
        callbacks: Sequence[Callback] | None = None,
        order: int = 1,
        min_pattern_count: int = 0,
        label_patterns: Any = None,
        constraints: str | None = None,
        allowed: Any = None,
        forbidden: Any = None,
        start_labels: Any = None,
        end_labels: Any = None,
        missing_label: Any = None,
        group_column: str | int | None = None,
        parents_column: str | int | None = None,
        parents_format: ParentsFormat = "zero_based",
        queries: RelationalFeatures | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        label_costs: LabelCostsParameter = "hamming",
        f1_labels: Any = None,
        f1_average: F1Average = "macro",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.pattern_lambda = pattern_lambda
        self.objective = objective
        self.sharpness = sharpness
        self.warm_iter = warm_iter
        self.max_iter = max_iter
        self.tol = tol
        self.min_count = min_count
        self.ancestors = ancestors
        self.all_pairs = all_pairs
        self.transition_attributes = transition_attributes
        self.pattern_attributes = pattern_attributes
        self.random_state = random_state
        self.decode = decode
        self.early_stopping_rounds = early_stopping_rounds
        self.early_stopping_metric = early_stopping_metric
        self.eval_metric = eval_metric
        self.validation_fraction = validation_fraction
        self.callbacks = callbacks
        self.order = order
        self.min_pattern_count = min_pattern_count
        self.label_patterns = label_patterns
        self.constraints = constraints
        self.allowed = allowed
        self.forbidden = forbidden
        self.start_labels = start_labels
        self.end_labels = end_labels
        self.missing_label = missing_label
        self.group_column = group_column
        self.parents_column = parents_column
        self.parents_format = parents_format
        self.queries = queries
        self.class_weight = class_weight
        self.label_costs = label_costs
        self.f1_labels = f1_labels
        self.f1_average = f1_average
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def attributes_(self) -> list[str]:
        """Names of the attributes, in order."""
        check_fitted(self)
        return self.model_.index.names()

    @property
    def n_weights_(self) -> int:
        """Number of weights."""
        check_fitted(self)
        return self._weights.layout.n_weights + len(self.model_.pattern_weights)

    def weights(self) -> Any:
        """Weights of attributes, as a table: attribute, label, weight.

        The attribute ``(bias)`` is the bias weight of the label. `set_output` sets the type of the
        table.
        """
        check_fitted(self)
        return self._give(attribute_table(self._weights, self.model_.index, self.classes_))

    def transition_weights(self) -> Any:
        """Weights of label pairs, as a table: from, to, weight.

        With ``transition_attributes`` or ``pattern_attributes`` a column ``attribute`` comes first;
        it is empty for the pairs themselves.
        """
        return super().transition_weights()

    def patterns(self) -> Any:
        """Weights of label patterns, as a table: pattern, weight.

        With ``pattern_attributes`` a column ``attribute`` comes first; it is empty for the patterns
        themselves.
        """
        return super().patterns()

    def _transition_table(self) -> Table:
        plain, model = super()._transition_table(), self.model_
        patterns = model.grammar.patterns
        return transition_table(plain, self._weights, model.index, patterns, self.classes_)

    def _pattern_table(self) -> Table:
        plain, model = super()._pattern_table(), self.model_
        patterns = model.grammar.patterns
        return pattern_attribute_table(plain, self._weights, model.index, patterns, self.classes_)

    @property
    def _n_kept(self) -> int:
        stopped_early = self.early_stopping_rounds is not None and self.best_iter_ is not None
        return self.best_iter_ or 0 if stopped_early else self.n_iter_

    def _sizes(self) -> dict[str, int]:
        return {"attribute": len(self.model_.index), "weight": self.n_weights_}

    @property
    def _weights(self) -> LinearWeights:
        return self.model_.potential(AttributeWeights).weights

    def _trainer(self, init: LinearCRF | None) -> DescentTrainer:
        objective = read_objective(self, margin=True)
        check_linear_parameters(self, objective)
        return DescentTrainer(self, objective, None if init is None else init.model_)

    def _pack(self) -> dict[str, Any]:
        return {"n_iter": self.n_iter_, "best_iter": self.best_iter_}

    def _unpack(self, metadata: dict[str, Any]) -> None:
        self.n_iter_ = read_count(metadata, "n_iter")
        self.best_iter_ = None
        # Files of earlier formats may not have it.
        if metadata["format"] >= 7 or "best_iter" in metadata:
            self.best_iter_ = read_optional_count(metadata, "best_iter")
