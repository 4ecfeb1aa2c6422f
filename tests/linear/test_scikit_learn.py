"""LinearCRF is an estimator like others."""

import copy
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.utils.validation import check_is_fitted

from hedgerow import LinearCRF
from reference.linear import make_data, to_dicts

X, Y = make_data(n_sequences=24)
PARAMETERS = {
    "reg_lambda": 0.5,
    "reg_alpha": 0.1,
    "objective": "accuracy",
    "sharpness": 4.0,
    "warm_iter": 5,
    "max_iter": 377,
    "tol": 1e-4,
    "min_count": 2,
    "all_pairs": True,
    "order": 2,
    "min_pattern_count": 2,
    "label_patterns": None,
    "constraints": None,
    "allowed": None,
    "forbidden": [],
    "start_labels": ["a", "b", "c"],
    "end_labels": ("a", "b", "c"),
    "missing_label": "?",
    "transition_attributes": True,
    "group_column": None,
    "class_weight": {"a": 2.0},
    "n_jobs": 1,
    "random_state": 3,
    "verbose": 0,
}


def test_parameters_are_kept_as_given():
    crf = LinearCRF(**PARAMETERS)
    assert isinstance(crf, BaseEstimator)
    assert crf.get_params() == PARAMETERS
    assert LinearCRF().set_params(**PARAMETERS).get_params() == PARAMETERS
    crf.fit(X, Y)
    assert crf.get_params() == PARAMETERS
    for name in ("class_weight", "forbidden", "start_labels", "end_labels"):
        assert getattr(crf, name) is PARAMETERS[name]
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        crf.set_params(depth=3)


def test_clone_has_the_parameters_and_nothing_else():
    crf = LinearCRF(**PARAMETERS).fit(X, Y)
    twin = clone(crf)
    assert twin.get_params() == PARAMETERS
    with pytest.raises(NotFittedError):
        check_is_fitted(twin)
    check_is_fitted(crf)
    np.testing.assert_array_equal(twin.fit(X, Y).predict_proba(X), crf.predict_proba(X))


def test_repr_shows_what_differs():
    assert repr(LinearCRF()) == "LinearCRF()"
    assert repr(LinearCRF(reg_lambda=2.5, all_pairs=True)) == (
        "LinearCRF(all_pairs=True, reg_lambda=2.5)"
    )
    assert "LinearCRF" in LinearCRF()._repr_html_()


def test_fit_returns_the_model():
    crf = LinearCRF()
    assert crf.fit(X, Y) is crf


@pytest.mark.parametrize("form", [list, to_dicts], ids=["arrays", "dicts"])
def test_cross_validation_over_sequences(form):
    scores = cross_val_score(LinearCRF(), form(X), Y, cv=4)
    assert scores.shape == (4,)
    fold = [s for s in range(24) if not 6 <= s < 12]
    crf = LinearCRF().fit([X[s] for s in fold], [Y[s] for s in fold])
    assert scores[1] == pytest.approx(crf.score(X[6:12], Y[6:12]))


def test_cross_validation_with_a_scorer_and_groups():
    def log_likelihood(crf, X, y):
        return crf.log_likelihood(X, y).mean()

    found = cross_validate(
        LinearCRF(),
        X,
        Y,
        groups=np.arange(24) // 3,
        cv=GroupKFold(4),
        scoring=log_likelihood,
        return_estimator=True,
    )
    assert (found["test_score"] < 0).all()
    assert all(estimator.classes_.tolist() == ["a", "b", "c"] for estimator in found["estimator"])


def test_grid_search():
    search = GridSearchCV(LinearCRF(), {"reg_lambda": [1e-2, 1.0, 1e4]}, cv=3).fit(X, Y)
    assert search.best_params_["reg_lambda"] in (1e-2, 1.0)
    assert search.score(X, Y) == search.best_estimator_.score(X, Y)
    for found, same in zip(search.predict(X), search.best_estimator_.predict(X), strict=True):
        np.testing.assert_array_equal(found, same)
    assert search.predict_proba(X).shape == (sum(map(len, X)), 3)
    assert search.classes_.tolist() == ["a", "b", "c"]


def test_grid_search_in_several_processes():
    grid = {"reg_alpha": [0.1, 1.0]}
    alone, together = (
        GridSearchCV(LinearCRF(n_jobs=1), grid, cv=2, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(
        alone.cv_results_["mean_test_score"], together.cv_results_["mean_test_score"]
    )


def test_a_search_hands_sample_weights_on():
    weights = np.linspace(0.1, 3, 24)
    search = GridSearchCV(LinearCRF(), {"reg_lambda": [1.0]}, cv=3).fit(X, Y, sample_weight=weights)
    expected = LinearCRF().fit(X, Y, weights)
    np.testing.assert_array_equal(search.predict_proba(X), expected.predict_proba(X))
    found = cross_validate(
        LinearCRF(), X, Y, cv=3, params={"sample_weight": weights}, return_estimator=True
    )
    assert found["estimator"][0].loss_ == LinearCRF().fit(X[8:], Y[8:], weights[8:]).loss_


def test_random_search():
    search = RandomizedSearchCV(
        LinearCRF(), {"reg_lambda": [0.1, 1.0], "all_pairs": [True]}, n_iter=2, cv=2, random_state=0
    )
    assert search.fit(X, Y).best_estimator_.all_pairs is True


@pytest.mark.parametrize("form", [list, to_dicts], ids=["arrays", "dicts"])
@pytest.mark.parametrize(
    "copied",
    [
        copy.deepcopy,
        copy.copy,
        *(
            lambda crf, protocol=protocol: pickle.loads(pickle.dumps(crf, protocol))
            for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
        ),
    ],
)
def test_copies_and_pickles_of_a_fitted_model(form, copied):
    crf = LinearCRF(transition_attributes=True).fit(form(X), Y)
    expected = crf.predict_proba(form(X))
    twin = copied(crf)
    assert twin.get_params() == crf.get_params()
    assert twin.attributes_ == crf.attributes_
    assert (twin.loss_, twin.n_iter_, twin.history_) == (crf.loss_, crf.n_iter_, crf.history_)
    np.testing.assert_array_equal(twin.predict_proba(form(X)), expected)
    assert twin.fit(form(X), Y).loss_ == crf.loss_


def test_a_deep_copy_goes_its_own_way():
    crf = LinearCRF().fit(X, Y)
    before = crf.predict_proba(X)
    copy.deepcopy(crf)._weights.patterns[:] = 5
    np.testing.assert_array_equal(crf.predict_proba(X), before)


def test_joblib_dumps(tmp_path):
    crf = LinearCRF().fit(X, Y)
    joblib.dump(crf, tmp_path / "model")
    twin = joblib.load(tmp_path / "model")
    np.testing.assert_array_equal(twin.predict_proba(X), crf.predict_proba(X))
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_array_equal(mapped.predict_proba(X), crf.predict_proba(X))


def test_a_pickle_of_a_model_that_is_not_fitted():
    twin = pickle.loads(pickle.dumps(LinearCRF(**PARAMETERS)))
    assert twin.get_params() == PARAMETERS
    assert not hasattr(twin, "classes_")
