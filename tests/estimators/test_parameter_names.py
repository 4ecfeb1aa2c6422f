"""Unknown parameters: the error suggests the right name."""

import copy
import inspect
import pickle

import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hedgerow import LinearCRF, TreeCRF
from hedgerow.suggestions import NAMES, NOTES, REMARKS, suggest_parameter
from reference.estimators import ESTIMATORS, refuses

OF_BOTH = {
    "eval_metrics": "did you mean",
    "n_iter_no_change": "did you mean early_stopping_rounds?",
    "lambda_l2": "did you mean reg_lambda?",
    "seed": "did you mean random_state?",
    "nthread": "did you mean n_jobs?",
    "verbosity": "did you mean verbose?",
    "warm_start": "did you mean the argument init of fit? fit(X, y, init=crf) starts from a model",
    "eval_set": "it is an argument of fit",
    "sample_weight": "it is an argument of fit",
    "forbiden": "did you mean forbidden?",
    "num_memories": "leave it out",
    "averaging": "leave it out",
    "calibration_rate": "leave it out",
    "max_linesearch": "leave it out",
    "validate_parameters": "leave it out",
    "base_score": "did you mean the argument base_scores of fit?",
    "model_filename": "did you mean the method save?",
    "scale_pos_weight": "did you mean class_weight?",
    "xyz": "its parameters are all",
}
OF_ONE = {
    TreeCRF: {
        "n_estimators": "did you mean n_rounds?",
        "num_boost_round": "did you mean n_rounds?",
        "max_iter": "did you mean n_rounds?",
        "eta": "did you mean learning_rate?",
        "num_leaves": "did you mean max_leaves?",
        "gamma": "did you mean min_split_gain?",
        "feature_fraction": "did you mean colsample_bytree?",
        "reg_alpha": "it is a parameter of LinearCRF",
        "c1": "did you mean reg_alpha of LinearCRF?",
        "c2": "did you mean reg_lambda, which regularizes the values of leaves?",
        "C": "did you mean reg_lambda, which regularizes the values of leaves?",
        "max_dept": "did you mean max_depth?",
    },
    LinearCRF: {
        "c1": "did you mean reg_alpha?",
        "c2": "did you mean reg_lambda? c2=1 is reg_lambda=2",
        "C": "did you mean reg_lambda? C is 1 / reg_lambda",
        "gamma": "leave it out",
        "max_bin": "did you mean max_bins of TreeCRF?",
        "missing": "it is a parameter of TreeCRF",
        "max_iterations": "did you mean max_iter?",
        "n_rounds": "did you mean max_iter?",
        "all_possible_states": "did you mean all_pairs?",
        "all_possible_transitions": "did you mean min_pattern_count?",
        "max_depth": "it is a parameter of TreeCRF",
    },
}
OF_CRFSUITE = (
    "algorithm min_freq all_possible_states all_possible_transitions c1 c2 max_iterations "
    "num_memories epsilon period delta linesearch max_linesearch calibration_eta calibration_rate "
    "calibration_samples calibration_candidates calibration_max_trials pa_type c error_sensitive "
    "averaging variance gamma verbose model_filename keep_tempfiles trainer_cls"
)
OF_XGBOOST = (
    "base_score booster callbacks colsample_bylevel colsample_bynode colsample_bytree device "
    "early_stopping_rounds enable_categorical eval_metric feature_types feature_weights gamma "
    "grow_policy importance_type interaction_constraints learning_rate max_bin max_cat_threshold "
    "max_cat_to_onehot max_delta_step max_depth max_leaves min_child_weight missing "
    "monotone_constraints multi_strategy n_estimators n_jobs num_parallel_tree objective "
    "random_state reg_alpha reg_lambda sampling_method scale_pos_weight subsample tree_method "
    "validate_parameters verbosity"
)
CASES = [
    (estimator, name, answer)
    for estimator in ESTIMATORS
    for name, answer in (OF_BOTH | OF_ONE[estimator]).items()
]


@pytest.mark.parametrize(("estimator", "name", "answer"), CASES)
def test_the_error_says_what_was_meant(estimator, name, answer):
    message = f"{estimator.__name__} has no parameter {name!r}; {answer}"
    refuses(TypeError, message, estimator, **{name: 5})
    refuses(ValueError, message, estimator().set_params, **{name: 5})


def test_no_parameter_of_other_libraries_is_taken_for_a_misspelling():
    known = {name for estimator in ESTIMATORS for name in estimator().get_params()}
    remarks = {name for name, _ in REMARKS}
    assert {*OF_CRFSUITE.split(), *OF_XGBOOST.split()} <= known | set(NAMES) | set(NOTES) | remarks


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("early_stopping_rounds", "did you mean the parameter {}(early_stopping_rounds=...)?"),
        ("nthread", "did you mean the parameter {}(n_jobs=...)?"),
        ("xgb_model", "did you mean init?"),
        ("base_margin", "did you mean base_scores?"),
        ("X_dev", "did you mean eval_set?"),
        ("eval_sett", "did you mean eval_set?"),
        ("xyz", "its arguments are X, y, sample_weight, groups, eval_set, init, checkpoint"),
    ],
)
def test_arguments_of_fit(estimator, name, answer):
    message = f"{estimator.__name__}.fit has no argument {name!r}; "
    message += answer.format(estimator.__name__)
    refuses(TypeError, message, estimator().fit, [[[1.0]]], [["a"]], **{name: 5})
    arguments = list(inspect.signature(estimator.fit).parameters)
    assert arguments[:3] == ["self", "X", "y"]


def test_warnings_of_fit_name_the_line_that_called_it():
    with pytest.warns(ConvergenceWarning) as caught:
        LinearCRF(max_iter=1).fit([[[1.0], [0.0]]], [["a", "b"]])
    assert caught[0].filename == __file__


def test_parameters_are_given_by_name():
    message = "TreeCRF got the positional argument 50, but takes keyword arguments only; write"
    refuses(TypeError, message, TreeCRF, 50)


def test_parameters_of_a_step_of_a_pipeline(estimator):
    pipeline = make_pipeline(StandardScaler(), estimator())
    name = f"{estimator.__name__.lower()}__nthread"
    refuses(ValueError, "'nthread'; did you mean n_jobs?", pipeline.set_params, **{name: 5})


def test_every_suggestion_is_a_parameter():
    known = {name for estimator in ESTIMATORS for name in estimator().get_params()}
    assert {ours for names in NAMES.values() for ours in names} <= known
    for estimator in ESTIMATORS:
        own = set(estimator().get_params())
        assert not own & set(NOTES)
        for name in set(NAMES) - own:
            assert not set(NAMES[name]) & own or "did you mean" in suggest_parameter(name, own)


def test_the_signature_is_that_of_the_parameters(estimator):
    listed = inspect.signature(estimator).parameters
    assert list(listed) == list(inspect.signature(estimator.__init__).parameters)[1:]
    assert sorted(listed) == sorted(estimator().get_params())


def test_copies_are_made_without_parameters(make):
    crf = make(order=2)
    for other in (clone(crf), copy.deepcopy(crf), pickle.loads(pickle.dumps(crf))):
        assert other.get_params() == crf.get_params()


def test_a_subclass_may_list_parameters_of_its_own():
    class Taking(TreeCRF):
        def __init__(self, colour, **rest):
            super().__init__(**rest)
            self.colour = colour

    assert Taking("red", n_rounds=7).n_rounds == 7
