"""Conventions of scikit-learn: parameters, clones, copies, features."""

import copy
import inspect
import io
import pickle
import re

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from hedgerow import LinearCRF, TreeCRF
from reference.estimators import answers, assert_same, assert_same_training
from reference.linear import make_data, to_dicts
from reference.model_files import to_chunks

X, Y = make_data(n_sequences=24)
CHUNKS = list(map(to_chunks, Y))
SHARED = {
    "reg_lambda": 0.5,
    "objective": "accuracy",
    "sharpness": 4.0,
    "early_stopping_rounds": None,
    "early_stopping_metric": "accuracy",
    "eval_metric": ["f1_macro"],
    "decode": "marginal",
    "validation_fraction": 0.3,
    "callbacks": [],
    "pattern_lambda": [0.5, 1.0],
    "order": 2,
    "min_pattern_count": 2,
    "ancestors": 0,
    "label_patterns": None,
    "constraints": None,
    "allowed": None,
    "forbidden": [],
    "start_labels": ["a", "b", "c"],
    "end_labels": ("a", "b", "c"),
    "missing_label": "?",
    "group_column": None,
    "parents_column": None,
    "parents_format": "zero_based",
    "queries": None,
    "class_weight": {"a": 2.0},
    "label_costs": {"a": {"b": 2.0}},
    "f1_labels": ["a", "c"],
    "f1_average": "micro",
    "n_jobs": 1,
    "random_state": 3,
    "verbose": 0,
}
PARAMETERS = {
    LinearCRF: SHARED
    | {
        "reg_alpha": 0.1,
        "warm_iter": 5,
        "max_iter": 20,
        "tol": 0,
        "min_count": 2,
        "all_pairs": True,
        "transition_attributes": True,
        "pattern_attributes": False,
    },
    TreeCRF: SHARED
    | {
        "n_rounds": 4,
        "learning_rate": 0.2,
        "max_depth": None,
        "max_leaves": 5,
        "min_child_weight": 0.5,
        "min_split_gain": 0.01,
        "max_step": 3.0,
        "max_bins": 16,
        "window": (1, 0),
        "colsample_bytree": 0.9,
        "colsample_bynode": 0.8,
        "monotone_constraints": {0: {"a": 1}},
        "interaction_constraints": [{0}],
        "newton": True,
        "curvature": "length",
        "direction": "conjugate",
        "line_search": True,
        "transitions": "trees",
        "transition_step": "exact",
        "trim": 0.001,
        "subsample": 0.9,
        "sampling_method": "gradient_based",
        "stratified": True,
        "negative_ratio": 2.0,
        "negative_weight": "balanced",
        "warm_rounds": 1,
        "missing": "surrogate",
        "max_literals": 3,
        "base": None,
        "base_folds": 3,
        "device": "cpu",
    },
}


def test_parameters_are_kept_as_given(estimator):
    parameters = PARAMETERS[estimator]
    crf = estimator(**parameters)
    assert isinstance(crf, BaseEstimator)
    assert crf.get_params() == parameters
    assert estimator().set_params(**parameters).get_params() == parameters
    crf.fit(X, Y, eval_set=(X, Y))
    for name, value in parameters.items():
        assert getattr(crf, name) is value
    with pytest.raises(ValueError, match=r"has no parameter 'depth'"):
        crf.set_params(depth=3)


def test_every_parameter_is_documented_with_its_default(estimator):
    documented, text = {}, inspect.getdoc(estimator)
    for names, default in re.findall(r"^([\w, ]+) : .*default (.*)$", text, re.M):
        documented |= dict.fromkeys(names.split(", "), default.replace('"', "'"))
    assert documented == {name: repr(value) for name, value in estimator().get_params().items()}
    assert "of both estimators>" not in text  # the marks of `explain_shared`


def test_clone_has_the_parameters_and_nothing_else(estimator):
    crf = estimator(**PARAMETERS[estimator]).fit(X, Y, eval_set=(X, Y))
    twin = clone(crf)
    assert twin.get_params() == PARAMETERS[estimator]
    with pytest.raises(NotFittedError):
        check_is_fitted(twin)
    check_is_fitted(crf)
    assert_same_training(twin.fit(X, Y, eval_set=(X, Y)), crf)


def test_repr_shows_what_differs(estimator):
    name = estimator.__name__
    assert repr(estimator()) == f"{name}()"
    assert repr(estimator(reg_lambda=2.5, order=2)) == f"{name}(order=2, reg_lambda=2.5)"
    assert name in estimator()._repr_html_()


def test_features_are_described_as_scikit_learn_does(make):
    crf = make().fit([pd.DataFrame(x, columns=list("pqr")) for x in X], Y)
    assert crf.n_features_in_ == 3
    assert crf.feature_names_in_.tolist() == ["p", "q", "r"]
    crf.fit(X, Y)
    assert crf.n_features_in_ == 3
    assert not hasattr(crf, "feature_names_in_")
    crf.fit(to_dicts(X), Y)
    for name in ("n_features_in_", "feature_names_in_"):
        with pytest.raises(AttributeError, match="X had named attributes, and no columns"):
            getattr(crf, name)


# Copies.


def through_joblib(crf):
    file = io.BytesIO()
    joblib.dump(crf, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "joblib": through_joblib,
    **{
        f"pickle {protocol}": lambda crf, protocol=protocol: pickle.loads(
            pickle.dumps(crf, protocol)
        )
        for protocol in (2, pickle.HIGHEST_PROTOCOL)
    },
}
FITTED = {
    "dicts": (to_dicts(X), Y, {}),
    "constraints": (X, CHUNKS, {"order": 2, "constraints": "BIO"}),
    "own": (X, Y, {"order": 2}),
}
OWN = {LinearCRF: {"transition_attributes": True}, TreeCRF: {"window": 1}}


@pytest.fixture(scope="module", params=FITTED)
def fitted(make, estimator, request):
    """A model, what it was trained on, and what it says."""
    given, y, parameters = FITTED[request.param]
    parameters = parameters | (OWN[estimator] if request.param == "own" else {})
    crf = make(**parameters).fit(given, y)
    return crf, given, y, answers(crf, given)


@pytest.mark.parametrize("copied", COPIES)
def test_copies_and_pickles_of_a_fitted_model(fitted, copied):
    crf, given, y, expected = fitted
    twin = crf
    for _ in range(2):  # a model that has answered before, and its copy
        twin = COPIES[copied](twin)
        assert twin.get_params() == crf.get_params()
        assert_same_training(twin, crf)
        assert_same(answers(twin, given), expected)
    assert twin.fit(given, y).loss_ == crf.loss_


def test_joblib_maps_a_model_into_memory(fitted, tmp_path):
    crf, given, _, expected = fitted
    joblib.dump(crf, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    assert_same(answers(mapped, given), expected)


def test_a_deep_copy_goes_its_own_way(make):
    crf = make().fit(X, Y)
    before = crf.predict_proba(X)
    copy.deepcopy(crf).model_.pattern_weights[:] = 5
    np.testing.assert_array_equal(crf.predict_proba(X), before)


def test_a_pickle_of_a_model_that_is_not_fitted(estimator):
    twin = pickle.loads(pickle.dumps(estimator(**PARAMETERS[estimator])))
    assert twin.get_params() == PARAMETERS[estimator]
    assert not hasattr(twin, "classes_")
