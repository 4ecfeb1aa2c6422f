"""TreeCRF is an estimator like others."""

import copy
import inspect
import pickle
import re

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.utils.validation import check_is_fitted

from hedgerow import TreeCRF
from reference.boosting import assert_same_model
from reference.linear import make_data, to_dicts

X, Y = make_data(n_sequences=24)
SMALL = {"n_rounds": 3, "max_depth": 2, "min_child_weight": 0.0, "n_jobs": 1}
PARAMETERS = {
    "n_rounds": 4,
    "learning_rate": 0.2,
    "max_depth": None,
    "max_leaves": 5,
    "min_child_weight": 0.5,
    "min_split_gain": 0.01,
    "reg_lambda": 2.0,
    "max_step": 3.0,
    "max_bins": 16,
    "window": (1, 0),
    "colsample_bytree": 0.9,
    "colsample_bynode": 0.8,
    "newton": True,
    "curvature": "length",
    "transition_step": "exact",
    "trim": 0.001,
    "subsample": 0.9,
    "stratified": True,
    "negative_ratio": 2.0,
    "objective": "accuracy",
    "sharpness": 4.0,
    "warm_rounds": 1,
    "early_stopping_rounds": None,
    "early_stopping_metric": "accuracy",
    "callbacks": [],
    "order": 2,
    "min_pattern_count": 2,
    "label_patterns": None,
    "constraints": None,
    "allowed": None,
    "forbidden": [],
    "start_labels": ["a", "b", "c"],
    "end_labels": ("a", "b", "c"),
    "missing_label": "?",
    "group_column": None,
    "class_weight": {"a": 2.0},
    "n_jobs": 1,
    "random_state": 3,
    "verbose": 0,
}
COPIES = [
    copy.deepcopy,
    *(
        lambda crf, protocol=protocol: pickle.loads(pickle.dumps(crf, protocol))
        for protocol in (2, pickle.HIGHEST_PROTOCOL)
    ),
]


def test_parameters_are_kept_as_given():
    crf = TreeCRF(**PARAMETERS)
    assert isinstance(crf, BaseEstimator)
    assert crf.get_params() == PARAMETERS
    assert TreeCRF().set_params(**PARAMETERS).get_params() == PARAMETERS
    crf.fit(X, Y)
    assert crf.get_params() == PARAMETERS
    for name in ("class_weight", "forbidden", "start_labels", "end_labels", "callbacks", "window"):
        assert getattr(crf, name) is PARAMETERS[name]
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        crf.set_params(depth=3)


def test_every_parameter_is_documented_with_its_default():
    documented, text = {}, inspect.getdoc(TreeCRF)
    for names, default in re.findall(r"^([\w, ]+) : .*default (.*)$", text, re.M):
        documented |= dict.fromkeys(names.split(", "), default.replace('"', "'"))
    assert documented == {name: repr(value) for name, value in TreeCRF().get_params().items()}


def test_clone_has_the_parameters_and_nothing_else():
    crf = TreeCRF(**PARAMETERS).fit(X, Y)
    twin = clone(crf)
    assert twin.get_params() == PARAMETERS
    with pytest.raises(NotFittedError):
        check_is_fitted(twin)
    check_is_fitted(crf)
    assert_same_model(twin.fit(X, Y), crf)


def test_repr_shows_what_differs():
    assert repr(TreeCRF()) == "TreeCRF()"
    assert repr(TreeCRF(n_rounds=7, window=(1, 2))) == "TreeCRF(n_rounds=7, window=(1, 2))"
    assert "TreeCRF" in TreeCRF()._repr_html_()


def test_fit_returns_the_model():
    crf = TreeCRF(**SMALL)
    assert crf.fit(X, Y) is crf


@pytest.mark.parametrize("form", [list, to_dicts], ids=["arrays", "dicts"])
def test_cross_validation_over_sequences(form):
    scores = cross_val_score(TreeCRF(**SMALL), form(X), Y, cv=4)
    assert scores.shape == (4,)
    fold = [s for s in range(24) if not 6 <= s < 12]
    crf = TreeCRF(**SMALL).fit([X[s] for s in fold], [Y[s] for s in fold])
    assert scores[1] == pytest.approx(crf.score(X[6:12], Y[6:12]))


def test_cross_validation_with_a_scorer_and_groups():
    found = cross_validate(
        TreeCRF(**SMALL),
        X,
        Y,
        groups=np.arange(24) // 3,
        cv=GroupKFold(4),
        scoring=lambda crf, X, y: crf.log_likelihood(X, y).mean(),
    )
    assert (found["test_score"] < 0).all()


def test_grid_search():
    search = GridSearchCV(TreeCRF(**SMALL), {"learning_rate": [1e-6, 0.5]}, cv=3).fit(X, Y)
    assert search.best_params_["learning_rate"] == 0.5
    assert search.score(X, Y) == search.best_estimator_.score(X, Y)
    assert search.predict_proba(X).shape == (sum(map(len, X)), 3)
    assert search.classes_.tolist() == ["a", "b", "c"]


def test_a_search_hands_sample_weights_on():
    weights = np.linspace(0.1, 3, 24)
    search = GridSearchCV(TreeCRF(**SMALL), {"max_depth": [2]}, cv=3)
    search.fit(X, Y, sample_weight=weights)
    assert_same_model(search.best_estimator_, TreeCRF(**SMALL).fit(X, Y, weights))


def test_features_are_described_as_scikit_learn_does():
    crf = TreeCRF(**SMALL).fit(X, Y)
    assert crf.n_features_in_ == 3
    assert not hasattr(crf, "feature_names_in_")
    crf.fit(to_dicts(X), Y)
    assert not hasattr(crf, "n_features_in_")


# Copies.


@pytest.mark.parametrize("form", [list, to_dicts], ids=["arrays", "dicts"])
@pytest.mark.parametrize("copied", COPIES)
def test_copies_and_pickles_of_a_fitted_model(form, copied):
    crf = TreeCRF(**SMALL).fit(form(X), Y)
    twin = copied(crf)
    assert twin.get_params() == crf.get_params()
    assert_same_model(twin, crf)
    assert (twin.loss_, twin.best_round_, twin.history_) == (
        crf.loss_,
        crf.best_round_,
        crf.history_,
    )
    np.testing.assert_array_equal(twin.predict_proba(form(X)), crf.predict_proba(form(X)))
    assert twin.fit(form(X), Y).loss_ == crf.loss_


def test_joblib_dumps(tmp_path):
    crf = TreeCRF(**SMALL).fit(X, Y)
    joblib.dump(crf, tmp_path / "model")
    for mode in (None, "r"):
        twin = joblib.load(tmp_path / "model", mmap_mode=mode)
        np.testing.assert_array_equal(twin.predict_proba(X), crf.predict_proba(X))


def test_a_shallow_copy():
    crf = TreeCRF(**SMALL).fit(X, Y)
    np.testing.assert_array_equal(copy.copy(crf).predict_proba(X), crf.predict_proba(X))


def test_a_pickle_of_a_model_that_is_not_fitted():
    twin = pickle.loads(pickle.dumps(TreeCRF(**PARAMETERS)))
    assert twin.get_params() == PARAMETERS
    assert not hasattr(twin, "classes_")
