"""LinearCRF: a conditional random field whose potentials are linear in the attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hedgerow.decoding import DecodeParameter
from hedgerow.descent.parameters import check_linear_parameters
from hedgerow.descent.trainer import DescentTrainer
from hedgerow.estimator import Estimator
from hedgerow.linear.tables import attribute_table, transition_table
from hedgerow.linear.weights import LinearWeights
from hedgerow.objectives import Objective, read_objective
from hedgerow.potentials import AttributeWeights, PatternWeights
from hedgerow.predictor import check_fitted
from hedgerow.state import read_count, read_loss, read_optional_count
from hedgerow.tables import Table
from hedgerow.training.eval_metrics import MetricOrName
from hedgerow.training.pattern_penalty import PatternLambda
from hedgerow.training.stopping import Callback


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
    pattern_lambda : float, list of float, "auto" or None, default None
        Strength of the L2 penalty of the weights of label patterns, in place of `reg_lambda`: of
        all of them; of those with 2, 3, ... labels, the last number for all that are longer; or
        "auto", which holds back patterns of a length most of which occur just once in training, and
        hardly those of others. That often pays for an `order` above 1. None: `reg_lambda`.
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
        Maximum number of iterations for the likelihood, before those for the objective. None:
        `max_iter`, or none at all with `init`.
    max_iter : int, default 1000
        Maximum number of iterations for the objective, of L-BFGS, or of the bundle method for
        "max_margin".
    tol : float or None, default None
        Stop when ten iterations have lowered the loss by less than this share of it; for
        "max_margin", when the loss is known to be within this share of the lowest, which takes many
        iterations where there are many weights and `reg_lambda` is small. 0: never. None: 1e-5, and
        0.01 for "max_margin".
    decode : {"auto", "viterbi", "marginal"}, default "auto"
        How labels are found: "viterbi", the most probable labelling of each sequence as a whole;
        "marginal", the most probable label of each position. "auto": the one that labels more
        positions of the last `eval_set` right, or of the training sequences that are held out.
        Without either, "marginal" for objectives of the marginals, "viterbi" for "max_margin", and
        for the likelihood a rule on the training sequences decides, see the guide "Which
        decoder?". ``decode_`` is the one chosen.
    early_stopping_rounds : int or None, default None
        Early stopping: stop if the metric on the `eval_set`, the last one if there are several,
        has not improved for this many iterations, and keep the weights of the best one. Without an
        `eval_set` some training sequences are held out (`validation_fraction`). Iterations that
        only warm up (`warm_iter`) never stop the training.
    early_stopping_metric : str or None, default None
        The metric of early stopping: "loss", "accuracy", or the name of one in `eval_metric`. None:
        the last one of `eval_metric`, or "loss".
    eval_metric : str, callable, list, dict or None, default None
        What to measure on the `eval_set` after each iteration, beside loss and accuracy; greater is
        better. "sequence_accuracy", the share of sequences without a mistake; "chunk_f1",
        "chunk_precision" or "chunk_recall"; the name of one of scikit-learn's scorers that compare
        labels, such as "f1_macro"; what `hedgerow.scorers.make_position_scorer` or scikit-learn's
        ``make_scorer`` makes; or a function, called as ``metric(y_true, y_pred)`` with two lists of
        label lists. A list of such, or a dict that gives them names.
    validation_fraction : float or None, default 0.1
        Share of the training sequences that early stopping holds out if there is no `eval_set`.
        They are drawn by `random_state` if it is a number, else always the same, and the model is
        not trained on them; at least one, but none that alone has a label, unless all do. If there
        is only one sequence, its last part is held out. Weights count there as in training. None:
        an `eval_set` is required.
    callbacks : list of callables or None, default None
        Called after every iteration with a `hedgerow.training.stopping.Step`; training ends when
        one of them returns something true.
    min_count : int, default 0
        Leave out attributes that occur at fewer than this many training positions.
    all_pairs : bool, default False
        Give every attribute a weight for every label, as CRF++ and Wapiti do (CRFsuite's
        ``feature.possible_states``, sklearn-crfsuite's ``all_possible_states``); else only for
        labels it occurs with in training. The weights of labels that an attribute never occurs with
        speak against them, which can be worth a tenth of a point of F1 on text; but there are many
        times as many weights, with the time and memory that they take.
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
        them, and needs none beside it; a table without the column of that name needs `groups`.
    class_weight : dict, "balanced" or None, default None
        How much a position counts in training, by its label: a weight for each label (1 for those
        left out), or "balanced" for weights inversely proportional to how often a label occurs. The
        term log P(y_t | labels before) of the likelihood is multiplied by the weight. All labels
        must be known.
    n_jobs : int or None, default None
        Number of threads; None or -1 is all cores. The result does not depend on it.
    random_state : int, RandomState or None, default None
        Seed of which sequences early stopping holds out (`validation_fraction`); nothing else is
        random.
    verbose : int, default 0
        1 shows progress: a bar on a terminal or in a notebook, else a few lines. 2: always lines.

    Attributes
    ----------
    classes_ : (K,) array
        The labels, sorted.
    attributes_ : list of str
        Names of the attributes that can have weights.
    decode_ : {"viterbi", "marginal"}
        How `predict`, `score` and all else that labels positions decodes by default.
    loss_ : float
        Training loss of the weights, penalties included: the negative log-likelihood, or the value
        of the objective with the sign changed. Where early stopping keeps an iteration that only
        warmed up, it is the negative log-likelihood.
    n_iter_ : int
        Number of iterations done.
    best_iter_ : int or None
        Number of iterations at which the `eval_set`, or what was held out, did best.
    n_weights_ : int
        Number of weights.
    label_patterns_ : list of tuples of labels
        The label patterns that have weights.
    model_ : hedgerow.model.Model
        The trained model: labels, columns of X, potentials and a trellis.
    history_ : dict of lists
        ``loss`` after each iteration, of what it was for; with an ``eval_set`` also ``eval_loss``
        (of the objective, without penalties, per position), ``eval_accuracy``, and what
        `eval_metric` asks for, such as ``eval_f1_macro``; of training sequences that were held out
        ``validation_loss`` and so on. Accuracies and metrics are by the decoder of `decode`, or if
        it is "auto" by marginals, by Viterbi for "max_margin".

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
        decode: DecodeParameter = "auto",
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str | None = None,
        eval_metric: MetricOrName = None,
        validation_fraction: float | None = 0.1,
        callbacks: Sequence[Callback] | None = None,
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
        random_state: Any = None,
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
        self.decode = decode
        self.early_stopping_rounds = early_stopping_rounds
        self.early_stopping_metric = early_stopping_metric
        self.eval_metric = eval_metric
        self.validation_fraction = validation_fraction
        self.callbacks = callbacks
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

        The attribute ``(bias)`` stands for the label's own weight. `set_output` chooses the form
        in which tables are returned.
        """
        check_fitted(self)
        return self._give(attribute_table(self._weights, self.model_.index, self.classes_))

    def transitions(self) -> Any:
        """Weights of label pairs, as a table: from, to, weight.

        With ``transition_attributes`` a column ``attribute`` comes first; it is empty for the pairs
        themselves.
        """
        return super().transitions()

    def _transition_table(self) -> Table:
        plain = super()._transition_table()
        return transition_table(plain, self._weights, self.model_.index, self.classes_)

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
        objective = read_objective(self.objective, self.sharpness, margin=True)
        check_linear_parameters(self, objective)
        return DescentTrainer(self, objective, None if init is None else init.model_)

    def _pack(self) -> dict[str, Any]:
        return {"loss": self.loss_, "n_iter": self.n_iter_, "best_iter": self.best_iter_}

    def _unpack(self, metadata: dict[str, Any]) -> None:
        self.loss_ = read_loss(metadata)
        self.n_iter_ = read_count(metadata, "n_iter")
        self.best_iter_ = None
        if "best_iter" in metadata:  # which files of earlier versions do not have
            self.best_iter_ = read_optional_count(metadata, "best_iter")
