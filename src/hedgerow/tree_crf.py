"""TreeCRF: a conditional random field whose potentials are boosted trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from hedgerow.base_choice import find_base, is_fitted, restore_base
from hedgerow.boosting.column_rules import InteractionConstraints, MonotoneConstraints
from hedgerow.boosting.settings import (
    CurvatureKind,
    DirectionKind,
    SamplingMethod,
    Transitions,
    TransitionStep,
    check_tree_parameters,
)
from hedgerow.boosting.trainer import BoostingTrainer
from hedgerow.decoding import DecodeParameter
from hedgerow.encode.parents import ParentsFormat
from hedgerow.estimator import Estimator
from hedgerow.fitted import check_fitted
from hedgerow.labels import Grammar
from hedgerow.objectives import F1Average, LabelCostsParameter, Objective, read_objective
from hedgerow.parameters import check_choice
from hedgerow.potentials import ContextTrees, NodeTrees, PatternWeights
from hedgerow.predictor import Labeller
from hedgerow.relational import RelationalFeatures
from hedgerow.shared_parameters import explain_shared
from hedgerow.state import read_count, read_optional_count, require
from hedgerow.training.base_training import BaseTraining
from hedgerow.training.eval_metrics import MetricOrName
from hedgerow.training.pattern_penalty import PatternLambda
from hedgerow.training.stopping import Callback
from hedgerow.trees.importances import importance_shares, importance_table
from hedgerow.trees.missing import MissingMethod
from hedgerow.trees.sampling import NegativeWeight
from hedgerow.trees.table import tree_table, trees_of_round
from hedgerow.trellis import Chain, Trellis

DeviceName = Literal["cpu", "cuda"]


@explain_shared
class TreeCRF(Estimator):
    """Conditional random field whose scores are sums of boosted trees.

    Every round grows one tree for each label, by second-order boosting with a bound on the
    curvature that takes the dependence of labels into account (Chen et al. 2015), or by first-order
    boosting (Dietterich et al. 2008). Weights of label patterns are learned together with the
    trees.

    X may contain numbers, NaN for missing values, text and categories, sparse matrices, or dicts of
    attributes. A category that did not occur in training is treated as missing; but a text column
    with more than 254 categories becomes one binary feature per category, all of which are 0 where
    the value is missing or new. Positions of a window beyond the ends of a sequence are not
    missing: every split learns a separate direction for them. An attribute that a position does not
    have is 0.

    Parameters
    ----------
    n_rounds : int, default 200
        Number of rounds.
    learning_rate : float or None, default None
        Every step is multiplied by this factor. None: 0.3 (1 for first-order boosting); with a line
        search 0.1 (1 if `direction` is "conjugate"). Without a line search, a step that would
        increase the training loss is halved until it does not (backtracking).
    max_depth : int or None, default None
        Maximum depth of a tree: the number of splits between its root and a leaf. None: 10 if
        `max_leaves` is None too, otherwise no limit.
    max_leaves : int or None, default None
        Maximum number of leaves of a tree; the split with the largest gain is made first. None: 31
        if `max_depth` is None too, otherwise as many as `max_depth` allows, up to 32,768.
    min_child_weight : float, default 1.0
        Minimum sum of curvatures in a leaf. In first-order boosting this is the number of examples.
    min_split_gain : float, default 0.0
        Minimum gain of a split.
    reg_lambda : float, default 1.0
        L2 regularization: added to the sum of curvatures of a leaf, which shrinks its value.
    max_step : float or None, default 1.0
        Maximum absolute value of a leaf, before it is multiplied by the learning rate. It keeps the
        first rounds stable if there are many labels and few examples. Steps of the weights of label
        patterns are dampened instead: a step of size x, up or down, becomes about
        ``m * log(1 + x / m)``, with ``m = (n - 1) * max_step`` for a pattern of n labels.
        None: no limit.
    max_bins : int, default 255
        Maximum number of bins for the values of a column, 2 to 255.
    window : int or (int, int), default 0
        Number of positions before and after the current one that trees can split on, up to 255; a
        pair: (before, after). No values are copied, so the data take no additional memory. Only the
        histograms used in training grow with the window: per thread up to 8 (``max_bins`` + 1)
        (``max_leaves`` - 1) bytes per column and position of the window, 60 KiB by default; with
        ``max_depth`` alone, ``max_depth`` replaces ``max_leaves`` - 1. For more than 10^7 positions
        it is twice that. Columns with one dominant value take less.
    ancestors : int, default 0
        Number of ancestors of a position that trees can split on, in data with `parents`: 1 is the
        parent, 2 also the grandparent, and so on, up to 255. No values are copied. (`window` is
        about neighbours in the order of the sequence.) Ancestors beyond a root are "outside", like
        positions beyond the ends of a sequence. Such features are named ``tag[parent]``,
        ``tag[grandparent]``, ``tag[parent^3]``.
    colsample_bytree : float, default 1.0
        Share of the columns that are sampled for each tree. A column is sampled separately for
        each position of the window and each ancestor.
    colsample_bynode : float, default 1.0
        Share of the columns of the tree that are sampled for each split.
    monotone_constraints : dict, list or None, default None
        For some columns, the labels whose odds may only increase, or only decrease, as the value of
        the column increases.
        ``{"speed": {"running": 1}}``: the odds of "running" against every other label never
        decrease as "speed" increases, whatever the other columns and labels are; -1: they never
        increase. A column may have a number, 1, 0 or -1, for each of several labels: the odds of a
        label against any label with a smaller number then never decrease; labels that are left out
        have 0. If there are only two labels, ``{"speed": 1}``, or ``[1, 0, -1]`` with one number
        per column, constrains the second label of ``classes_``. Columns are given by name, or by a
        number that counts features only, without the columns of groups and parents; attributes of
        dicts by name. Attributes are 0 where they are absent. The constraint applies to every
        position of the window. Missing values are not ordered.
    interaction_constraints : list of lists, "pairwise", "no_interactions" or None, default None
        Groups of columns that may interact: all splits on a path from the root to a leaf use
        columns of one group. Columns in no group form one more group. "pairwise": any two columns;
        "no_interactions": each column by itself. A column stands for all positions of the window;
        for dicts, a key stands for all its values.
    newton : bool, default True
        Whether to use second derivatives (curvature). False: first-order boosting.
    curvature : {"mixing", "exact", "length"}, default "mixing"
        Bound on how much the labels of a sequence depend on each other. "mixing": from how
        strongly each label determines its neighbours (their mixing rates), in time linear in the
        length of a sequence. "exact": by brute force, in time quadratic in the length. "length":
        the largest value possible for that length.
    direction : {"steepest", "conjugate"}, default "steepest"
        Search direction of a round. "steepest": the round's own trees. "conjugate": the round's own
        trees plus a share of the previous direction, as in the method of conjugate gradients.
        Conjugate directions reach a low training loss in fewer rounds, and overfit sooner. They
        need memory for three additional copies of the scores; a line search alone needs two.
    line_search : bool or None, default None
        Whether each round minimises the training loss along its direction; the step found is
        multiplied by `learning_rate`. It takes one or two more evaluations of the loss per round.
        False: a fixed step, `learning_rate`. None: for conjugate directions only.
    transitions : {"weights", "trees"}, default "weights"
        How transitions between labels are scored. "weights": one weight per label pattern, whatever
        the input. "trees": in addition, trees that can split on the input and on the `order`
        previous labels, so that a column can mean one thing after label B and another after label
        D. This takes more time and memory: about 16 bytes per position for each pair of labels.
        Above order 1, it is 16 bytes per position for each label and each label pattern of the
        model. The maximum is 255 labels. Splits on previous labels overfit easily, so their gains
        are computed with a `reg_lambda` that is larger by 20, unless `newton` is False.
        ``label_patterns=[]`` leaves only the trees; with ``newton=False`` and ``trim=0`` that is
        the TreeCRF of Dietterich et al. (2008).
    transition_step : {"auto", "bound", "exact"}, default "auto"
        How the weights of label patterns are updated. "bound": with the same bound as the trees.
        "exact": in addition by a few iterations of L-BFGS every eighth round, which takes longer.
        "auto": "bound" for label pairs; for longer patterns, whose weights are strongly correlated,
        also L-BFGS every eighth round, but only from round 32 on, since earlier the weights would
        absorb what the trees should learn.
    pattern_lambda : float, list of float, "auto" or None, default "auto"
        Strength of the L2 penalty on the weights of label patterns. A number applies to all of
        them. A list has one number for patterns of 2, 3, ... labels; the last number also applies
        to all longer patterns. "auto": strong for a pattern length if most patterns of
        that length occur only once in training, otherwise weak. None: no penalty.
    trim : float or None, default None
        Skip examples (a position and a label) whose probability is within this distance of the
        observed 0 or 1. They hardly affect the trees but take most of the time. None: 0.02; with
        more than 25 labels, half of the uniform probability. 0: skip only examples whose
        probability is exactly the observed 0 or 1.
    subsample : float, default 1.0
        Share of the sequences that are sampled for each round. 0.5 often gives a better model in
        less time.
    sampling_method : {"uniform", "gradient_based"}, default "uniform"
        What `subsample` samples. "uniform": sequences, all with the same probability.
        "gradient_based": examples (a position and a label), with a probability proportional to
        their gradient and a weight of 1 / probability, so that sums are unbiased (importance
        sampling).
    stratified : bool, default False
        Whether to keep all positive examples (of observed labels) and sample the negative ones (of
        all other labels), after Gutmann and Kersting. With many labels, most examples are negative.
    negative_ratio : float, default 3.0
        Number of negative examples that are kept per positive one.
    negative_weight : {"unbiased", "none", "balanced"}, default "unbiased"
        Weight of the negative examples that are kept. "unbiased": they stand for all negative ones,
        so that sums are unbiased. "none": 1, which favours observed labels. "balanced": they have
        the same total weight as the positive examples.
    objective : str or object, default "likelihood"
        What training maximises: "likelihood", the probability of whole labellings;
        "pointwise", the product of the probabilities of all true labels; "accuracy", the number
        of positions whose true label is the most probable one (Gross et al. 2006), which helps if
        labels are noisy; "expected_accuracy", the sum of the probabilities of all true labels;
        "f1", the F1 of labels (`f1_labels`, `f1_average`), with expected counts; "softmax_margin",
        the likelihood with the costs of errors (`label_costs`) added to the scores of wrong labels,
        so that costly errors become less probable (Gimpel and Smith 2010); or an object with the
        methods value and gradient, see `hedgerow.objectives.Objective`. The likelihood and the
        softmax margin sum over all values of a label that is not known; other objectives leave its
        position out.
    sharpness : float, default 5.0
        Steepness of the sigmoid that replaces the 0-1 loss in "accuracy": a true label whose
        probability exceeds that of the most probable other label by 1 / sharpness counts as 0.73.
        Training starts with an eighth of this value.
    warm_rounds : int or None, default None
        Number of rounds at the beginning that maximise the likelihood, before those that maximise
        the objective. None: a fifth of the rounds, or four fifths for "f1"; with `init`, no new
        ones. "softmax_margin" needs none.
    random_state : int, RandomState or None, default None
        Seed of all random sampling. If it is a number, it also decides which sequences are held
        out, how sequences are divided into the folds of `base_folds`, and on which sequences
        ``decode="auto"`` tries the decoders.
    missing : {"learned", "fractional", "surrogate", "impute", "indicator"}, default "learned"
        How a split treats missing values. "learned": they go in the direction with the larger gain.
        "fractional": they go in both directions, in proportion to the known values (instance
        weighting, as in C4.5). "surrogate": another column decides, the first of up to five
        surrogate splits whose value is known (as in CART). "impute": they are replaced by the most
        frequent category, by the most frequent value of a column of up to 32 different numbers, or
        by the median; in a sparse matrix by 0. "indicator": they are replaced by 0 or the first
        category, and a split may also test whether a value is missing. Without missing values all
        methods give the same model. The guide to missing values explains which one to choose.
    max_literals : int, default 4
        If X contains facts: maximum number of literals (terms joined by ``&``) in a query, 1 to 6.
        Trees extend the queries that they split on: where ``head(P)`` holds (P is the head of the
        position), a further split may be on ``head(P) & P: tag=verb`` (this P has the tag verb).
        Usually one literal is added at a time. One that only introduces a variable, such as
        ``head(P)``, says little by itself, so up to ``depth`` - 1 others are added together with it
        (``depth`` is the parameter of the `RelationalFeatures` in `queries`). If `max_literals` is
        at most ``depth``, queries are not extended.
    base : LinearCRF, TreeCRF or None, default None
        A model to train on top of: the trees are added to its scores. An unfitted base is trained
        by `fit`, on the same labels, and on `X_base` if it is given; ``base_`` is the fitted copy.
        A fitted base is used as it is. Weights of label patterns start at those of the base;
        patterns that only the base has are kept too.
    base_folds : int or None, default None
        Number of folds for cross-fitting an unfitted base: each training sequence is scored by a
        base that was trained on the other folds, so that it is treated like a new sequence. 0: no
        cross-fitting; the base then scores the sequences that it was trained on, which leaves
        little for the trees to learn. None: 5, or 0 for a fitted base.
    device : {"cpu", "cuda"}, default "cpu"
        Where to train: on the CPU, or on one NVIDIA GPU, CuPy's current device (by default the
        first), which needs the extra ``hedgerow[cuda]``. The model is the same kind of object in
        both cases; with "cuda", labels and marginals are predicted on a GPU if there is one.
        Settings that the GPU does not support raise an error; see the guide to training on a GPU.
    <parameters of both estimators>

    Attributes
    ----------
    n_rounds_ : int
        Number of rounds of the model.
    n_warm_rounds_ : int
        Number of rounds that maximised the likelihood, before those for the objective.
    best_round_ : int or None
        Number of rounds after which the metric was best on the `eval_set`, or on the held-out
        sequences.
    loss_ : float
        Training loss per position: the negative log-likelihood, or the value of the objective with
        the sign changed, depending on what the last round optimised.
    history_ : dict of lists
        One entry per round: ``loss`` (of the objective of that round, per position) and
        ``accuracy`` on the training data; with an `eval_set` also ``eval_loss`` (of the objective),
        ``eval_accuracy``, and the metrics of `eval_metric`, such as ``eval_f1_macro``; for held-out
        training sequences ``validation_loss`` and so on. Accuracies and metrics use one decoder:
        that of `decode`, or marginals if it is "auto".
    base_ : LinearCRF or TreeCRF
        The fitted base, if there is one.
    feature_importances_ : (number of columns,) array
        Share of the total gain of the splits on each column.
    <attributes of both estimators>

    Examples
    --------
    >>> from hedgerow import TreeCRF
    >>> X = [[[0.1], [0.9], [0.2]], [[0.8], [0.1]]]
    >>> y = [["low", "high", "low"], ["high", "low"]]
    >>> crf = TreeCRF(n_rounds=20, min_child_weight=0).fit(X, y)
    >>> [labels.tolist() for labels in crf.predict(X)]
    [['low', 'high', 'low'], ['high', 'low']]
    """

    learns = (ContextTrees, PatternWeights)
    step_name = "round"
    best_round_: int | None
    n_warm_rounds_: int

    def __init__(
        self,
        *,
        n_rounds: int = 200,
        learning_rate: float | None = None,
        max_depth: int | None = None,
        max_leaves: int | None = None,
        min_child_weight: float = 1.0,
        min_split_gain: float = 0.0,
        reg_lambda: float = 1.0,
        max_step: float | None = 1.0,
        max_bins: int = 255,
        window: int | tuple[int, int] = 0,
        ancestors: int = 0,
        colsample_bytree: float = 1.0,
        colsample_bynode: float = 1.0,
        monotone_constraints: MonotoneConstraints = None,
        interaction_constraints: InteractionConstraints = None,
        newton: bool = True,
        curvature: CurvatureKind = "mixing",
        direction: DirectionKind = "steepest",
        line_search: bool | None = None,
        transitions: Transitions = "weights",
        transition_step: TransitionStep = "auto",
        pattern_lambda: PatternLambda = "auto",
        trim: float | None = None,
        subsample: float = 1.0,
        sampling_method: SamplingMethod = "uniform",
        stratified: bool = False,
        negative_ratio: float = 3.0,
        negative_weight: NegativeWeight = "unbiased",
        objective: str | Objective = "likelihood",
        sharpness: float = 5.0,
        warm_rounds: int | None = None,
        random_state: Any = None,
        missing: MissingMethod = "learned",
        max_literals: int = 4,
        base: Any = None,
        base_folds: int | None = None,
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
        device: DeviceName = "cpu",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_rounds = n_rounds
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_child_weight = min_child_weight
        self.min_split_gain = min_split_gain
        self.reg_lambda = reg_lambda
        self.max_step = max_step
        self.max_bins = max_bins
        self.window = window
        self.ancestors = ancestors
        self.colsample_bytree = colsample_bytree
        self.colsample_bynode = colsample_bynode
        self.monotone_constraints = monotone_constraints
        self.interaction_constraints = interaction_constraints
        self.newton = newton
        self.curvature = curvature
        self.direction = direction
        self.line_search = line_search
        self.transitions = transitions
        self.transition_step = transition_step
        self.pattern_lambda = pattern_lambda
        self.trim = trim
        self.subsample = subsample
        self.sampling_method = sampling_method
        self.stratified = stratified
        self.negative_ratio = negative_ratio
        self.negative_weight = negative_weight
        self.objective = objective
        self.sharpness = sharpness
        self.warm_rounds = warm_rounds
        self.random_state = random_state
        self.missing = missing
        self.max_literals = max_literals
        self.base = base
        self.base_folds = base_folds
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
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that the input may contain NaN, for missing values."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def n_rounds_(self) -> int:
        """Number of rounds of the model."""
        check_fitted(self)
        return self._trees.forest.n_rounds

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of the total gain of the splits on each column, (number of columns,).

        If X contains dicts, every attribute is a column. `importances` also lists the columns by
        offset, and includes previous labels if trees split on them.
        """
        check_fitted(self)
        columns, schema = self._trees.columns, self.model_.schema
        n_features = len(columns.of_schema()) if schema.kind == "items" else schema.n_features
        return importance_shares(self._trees.forest, columns, n_features)

    def importances(self) -> Any:
        """Gain of the splits on each column, as a table: feature, offset, gain.

        The offset is the position in the window; columns of ancestors are separate features, such
        as ``speed[parent]``. Only features that splits use are listed, the largest gain first;
        surrogate splits have no gain. `set_output` sets the type of the table.
        """
        check_fitted(self)
        return self._give(importance_table(self._trees.forest, self._trees.columns))

    def trees(self, *, round: int | None = None, label: Any = None) -> Any:
        """The trees, as a table with one row per node.

        `set_output` sets the type of the table.

        Parameters
        ----------
        round
            Only the trees of this round, counted from 1 like ``best_round_``.
        label
            Only the trees of this label.

        Returns
        -------
        hedgerow.tables.Table, or a DataFrame
            The columns are:

            - ``round`` and ``label`` of the tree, and ``node``, the number of the node, 0 for the
              root;
            - ``feature`` of a split, and its ``offset`` in the window. If trees split on ancestors,
              the ancestor is part of the name of the feature (``speed[parent]``), and the column
              ``ancestor`` is its number of generations, 0 for none;
            - ``question``, the split as text; positions for which it is true go left;
            - ``threshold``: values below it go left (NaN if the split has no threshold);
            - ``categories`` that go left, a tuple, or None;
            - ``left`` and ``right``, the numbers of the child nodes;
            - ``missing``: where missing values go, "left", "right" or "both";
            - ``left_share``: if ``missing`` is "both", the share of missing values that goes left
              (NaN otherwise);
            - ``surrogates``: a tuple of substitutes for the split, as text; where the feature of
              the split is missing, the first substitute whose feature is known decides;
            - ``outside``: where positions beyond the ends of the sequence go, "left" or "right";
            - ``value`` that a leaf adds to the score of the label, or that a split would add if it
              were a leaf;
            - ``gain`` of the split;
            - ``weight``, the sum of the curvatures of the examples in the node.

            In leaves ``feature``, ``question``, ``missing`` and ``outside`` are empty, and ``left``
            and ``right`` are -1.
        """
        check_fitted(self)
        columns, forest = self._trees.columns, self._trees.forest
        chosen = trees_of_round(forest, round)
        if label is not None:
            code = self.model_.labels.read_codes([label], "label")[0]
            chosen = chosen[forest.outputs[chosen] == code]
        return self._give(tree_table(forest, columns, self.classes_, chosen))

    @property
    def _trees(self) -> NodeTrees:
        return self.model_.potential(NodeTrees)

    @property
    def _n_kept(self) -> int:
        return self.n_rounds_

    def _sizes(self) -> dict[str, int]:
        return {"tree": self._trees.forest.n_trees}

    def build_trellis(self, grammar: Grammar) -> Trellis:
        """The trellis of a grammar; on a GPU a first-order chain, if all patterns are pairs."""
        if self.device == "cuda" and grammar.patterns.longest <= 2:
            return Chain(grammar.n_labels, grammar.pair_codes, grammar.constraints)
        return super().build_trellis(grammar)

    @property
    def _labeller(self) -> Labeller:
        if self.device == "cuda":
            from hedgerow.cuda.predictor import DeviceModel  # only if a GPU is used

            return DeviceModel.find(self.model_)
        return super()._labeller

    def _trainer(self, init: TreeCRF | None) -> BoostingTrainer:
        check_tree_parameters(self)
        check_choice("device", self.device, get_args(DeviceName))
        objective = read_objective(self, margin=False)
        if self.device == "cuda":
            from hedgerow.cuda.trainer import CudaTrainer  # only if a GPU is used

            return CudaTrainer(self, objective, init)
        return BoostingTrainer(self, objective, init)

    def _base_training(self, init: Any) -> BaseTraining | None:
        return find_base(self, getattr(init, "base_", None), continues=init is not None)

    def _pack(self) -> dict[str, Any]:
        packed: dict[str, Any] = {"best_round": self.best_round_}
        packed["warm_rounds"] = self.n_warm_rounds_
        if hasattr(self, "base_"):
            packed["base_was_fitted"] = is_fitted(self.base)
        return packed

    def _unpack(self, metadata: dict[str, Any]) -> None:
        self.best_round_ = read_optional_count(metadata, "best_round")
        self.n_warm_rounds_ = self.n_rounds_  # up to format 2 all rounds were for the likelihood
        if metadata["format"] > 2:
            self.n_warm_rounds_ = read_count(metadata, "warm_rounds")
        require(self.n_warm_rounds_ <= self.n_rounds_, "it has more warm-up rounds than rounds")
        if hasattr(self, "base_"):
            was_fitted = metadata.get("base_was_fitted")
            require(isinstance(was_fitted, bool), "base_was_fitted is not true or false")
            self.base = restore_base(self.base_, was_fitted=bool(was_fitted))
