"""Suggestions for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

__all__ = ["suggest", "suggest_argument", "suggest_parameter"]

# For each tuple of names here, names of the same parameter in other libraries; the first name here
# that the estimator has is suggested.
# The libraries are XGBoost, LightGBM, CatBoost, scikit-learn, sklearn-crfsuite and CRFsuite.
MEANT = {
    ("n_rounds", "max_iter"): (
        "n_estimators num_boost_round num_boost_rounds num_round num_rounds num_iterations "
        "num_iteration num_trees n_trees n_iter iterations max_iterations max_iter n_rounds epochs "
        "n_epochs"
    ),
    ("learning_rate",): "eta shrinkage shrinkage_rate lr step_size",
    ("max_leaves",): "num_leaves num_leaf max_leaf max_leaf_nodes",
    ("max_depth",): "depth",
    ("max_bins",): "max_bin n_bins border_count",
    ("min_split_gain",): "gamma min_split_loss min_gain_to_split min_impurity_decrease",
    ("min_child_weight",): (
        "min_sum_hessian min_sum_hessian_in_leaf min_child_samples min_data_in_leaf "
        "min_samples_leaf"
    ),
    ("max_step",): "max_delta_step",
    ("line_search",): "linesearch",
    ("colsample_bytree",): "feature_fraction colsample max_features rsm",
    ("colsample_bynode",): "feature_fraction_bynode colsample_bylevel",
    ("monotone_constraints",): "monotonic_cst monotone_cst monotonic_constraints mc",
    ("interaction_constraints",): "interaction_cst",
    ("subsample",): "bagging_fraction sample_rate",
    ("sampling_method",): "data_sample_strategy bootstrap_type",
    ("reg_lambda",): "lambda lambda_ lambda_l2 l2 l2_regularization l2_leaf_reg reg_l2",
    ("reg_alpha",): "alpha lambda_l1 l1 l1_regularization reg_l1 c1",
    ("early_stopping_rounds",): (
        "n_iter_no_change early_stopping_round early_stopping early_stop patience od_wait stop_iter"
    ),
    ("eval_metric",): "metric metrics scoring feval custom_metric",
    ("warm_rounds", "warm_iter"): "warm_iter warm_rounds",
    ("objective",): "loss loss_function criterion",
    ("tol",): "tolerance epsilon delta",
    ("min_count",): "min_freq minfreq feature_minfreq min_df",
    ("all_pairs",): "all_possible_states possible_states feature_possible_states",
    ("class_weight",): "class_weights is_unbalance scale_pos_weight auto_class_weights",
    ("label_costs",): "cost costs cost_matrix margin_cost cost_sensitive",
    ("f1_average",): "average f1_macro f1_micro",
    ("random_state",): "seed random_seed",
    ("n_jobs",): "nthread nthreads num_threads num_thread n_threads thread_count",
    ("verbose",): "verbosity verbose_eval silent logging_level",
    ("base",): "base_estimator base_model",
}
NAMES = {name: ours for ours, theirs in MEANT.items() for name in theirs.split()}

# Hints that depend on the estimator, which is recognised by a parameter that only it has, since c2
# and C mean something else in each.
REMARKS = {
    ("c2", "all_pairs"): "did you mean reg_lambda? c2=1 is reg_lambda=2",
    ("C", "all_pairs"): "did you mean reg_lambda? C is 1 / reg_lambda",
    ("c2", "max_leaves"): "did you mean reg_lambda, which regularizes the values of leaves?",
    ("C", "max_leaves"): "did you mean reg_lambda, which regularizes the values of leaves?",
}

# Hints if there is no such parameter.
NOTES = {
    "warm_start": "did you mean the argument init of fit? fit(X, y, init=crf) starts from a model",
    "algorithm": "leave it out; objective sets what training maximises",
    "all_possible_transitions": "did you mean min_pattern_count? 0 gives every label pair a weight",
    "base_score": "did you mean the argument base_scores of fit? (scores of labels, by position)",
    "enable_categorical": "leave it out; columns of text and categories are read as such",
    "feature_types": "leave it out; columns of text and categories are read as such",
    "grow_policy": "leave it out; with max_leaves, the split with the largest gain is made first",
    "importance_type": "leave it out; feature_importances_ are shares of the total gain",
    "model_filename": "did you mean the method save? crf.save(path) writes a model file",
    "tree_method": "leave it out; TreeCRF grows trees from histograms",
    "use_label_encoder": "leave it out; labels may be text or numbers",
    "num_class": "leave it out; the labels of y are counted",
    "penalty": "did you mean reg_lambda, for an L2 penalty, or reg_alpha of LinearCRF, for L1?",
}
# Parameters without a counterpart.
WITHOUT_COUNTERPART = (
    "averaging booster boosting_type c calibration_candidates calibration_eta "
    "calibration_max_trials calibration_rate calibration_samples error_sensitive feature_weights "
    "gamma keep_tempfiles linesearch max_cat_threshold max_cat_to_onehot max_linesearch "
    "multi_strategy num_memories num_parallel_tree pa_type period trainer_cls validate_parameters "
    "variance"
)
NOTES |= dict.fromkeys(WITHOUT_COUNTERPART.split(), "leave it out")

# Names of arguments of fit in other libraries.
ARGUMENTS = {
    "init": "xgb_model init_model",
    "sample_weight": "weight weights sample_weights",
    "groups": "group qid lengths",
    "base_scores": "base_margin init_score base_margins",
    "eval_set": "eval_sets valid_sets validation_data evals X_val X_dev",
}
ARGUMENT_NAMES = {name: ours for ours, theirs in ARGUMENTS.items() for name in theirs.split()}


def suggest(name: str, known: Collection[str], cutoff: float = 0.6) -> str:
    """Similar names, as text to append to a message; empty if there are none.

    ``cutoff`` is the minimum similarity, from 0 to 1.
    """
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
    near = near or difflib.get_close_matches(name, known, n=3, cutoff=cutoff)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def suggest_parameter(
    name: str, known: Collection[str], others: Mapping[str, Collection[str]] | None = None
) -> str:
    """A suggestion for a parameter that an estimator does not have.

    Parameters
    ----------
    name
        The parameter.
    known
        Parameters of the estimator.
    others
        Parameters of the other estimators, by the name of their class.

    Examples
    --------
    >>> suggest_parameter("n_estimators", ["n_rounds", "order"])
    '; did you mean n_rounds?'
    >>> suggest_parameter("orders", ["n_rounds", "order"])
    '; did you mean order?'
    >>> suggest_parameter("num_leaves", ["max_iter"], {"TreeCRF": ["max_leaves"]})
    '; did you mean max_leaves of TreeCRF?'
    >>> suggest_parameter("colour", ["n_rounds", "order"])
    '; its parameters are n_rounds, order'
    """
    for ours in NAMES.get(name, ()):
        if ours in known:
            return f"; did you mean {ours}?"
    for (theirs, sign), remark in REMARKS.items():
        if name == theirs and sign in known:
            return f"; {remark}"
    if name in NOTES:
        return f"; {NOTES[name]}"
    others = others or {}
    owners = [owner for owner, parameters in others.items() if name in parameters]
    if owners:
        return f"; it is a parameter of {' and '.join(owners)}"
    for owner, parameters in others.items():
        for ours in NAMES.get(name, ()):
            if ours in parameters:
                return f"; did you mean {ours} of {owner}?"
    near = suggest(name, known, cutoff=0.7)
    return near or f"; its parameters are {', '.join(sorted(known))}"


def suggest_argument(
    name: str, known: Collection[str], parameters: Collection[str], owner: str
) -> str:
    """A suggestion for an argument that a method does not have.

    Parameters
    ----------
    name
        The argument.
    known
        Arguments of the method.
    parameters
        Parameters of the estimator it is a method of.
    owner
        Its class.

    Examples
    --------
    >>> suggest_argument("xgb_model", ["X", "y", "init"], ["n_rounds"], "TreeCRF")
    '; did you mean init?'
    >>> suggest_argument("num_boost_round", ["X", "y", "init"], ["n_rounds"], "TreeCRF")
    '; did you mean the parameter TreeCRF(n_rounds=...)?'
    """
    if ARGUMENT_NAMES.get(name) in known:
        return f"; did you mean {ARGUMENT_NAMES[name]}?"
    for meant in (name, *NAMES.get(name, ())):
        if meant in parameters:
            return f"; did you mean the parameter {owner}({meant}=...)?"
    arguments = [argument for argument in known if argument != "self"]
    return suggest(name, arguments) or f"; its arguments are {', '.join(arguments)}"
