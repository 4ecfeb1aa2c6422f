"""Searches, cross-validation and pipelines of scikit-learn, with lists and with flat tables."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from hedgerow import LinearCRF, TreeCRF
from hedgerow.scorers import make_position_scorer
from reference.estimators import assert_same_model, group_ids, refuses, small
from reference.linear import make_data, to_dicts

X, Y = make_data(n_sequences=18)
ROWS, LABELS, GROUPS = np.concatenate(X), np.concatenate(Y), group_ids(X)
TABLE = pd.DataFrame(ROWS, columns=["a", "b", "c"]).assign(sequence=GROUPS)
FOLDS = GroupKFold(3)


@pytest.fixture
def crf():
    # What these tools ask for, both estimators have from their base class.
    return small(LinearCRF)


@pytest.fixture
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def fit_folds(crf):
    """Models of the folds of GroupKFold, which keeps sequences whole, and their test parts."""
    for train, test in FOLDS.split(ROWS, LABELS, GROUPS):
        train, test = np.unique(GROUPS[train]), np.unique(GROUPS[test])
        assert not set(train) & set(test)
        yield clone(crf).fit([X[s] for s in train], [Y[s] for s in train]), test


def predict_out_of_fold(crf):
    """Labels of each sequence by a model that was not trained on it, in the order of the rows."""
    found = [None] * len(X)
    for model, test in fit_folds(crf):
        for s, labels in zip(test, model.predict([X[s] for s in test]), strict=True):
            found[s] = labels
    return np.concatenate(found)


def score_by_hand(crf):
    return [
        model.score([X[s] for s in test], [Y[s] for s in test]) for model, test in fit_folds(crf)
    ]


def predict_scaled(crf):
    """Labels of all rows by a model that is trained on scaled ones."""
    scaled = StandardScaler().fit_transform(ROWS)
    return clone(crf).fit(scaled, LABELS, groups=GROUPS).predict(scaled, groups=GROUPS)


# Lists of sequences


@pytest.mark.parametrize("form", [list, to_dicts], ids=["arrays", "dicts"])
def test_an_integer_cv_deals_out_whole_sequences(crf, form):
    given = form(X)
    assert cross_val_score(crf, given, Y, cv=3).tolist() == [
        clone(crf)
        .fit(given[:start] + given[start + 6 :], Y[:start] + Y[start + 6 :])
        .score(given[start : start + 6], Y[start : start + 6])
        for start in (0, 6, 12)
    ]


@pytest.mark.parametrize(
    "search",
    [
        lambda crf, grid: GridSearchCV(crf, grid, cv=KFold(2)),
        lambda crf, grid: RandomizedSearchCV(crf, grid, n_iter=2, cv=KFold(2), random_state=0),
        lambda crf, grid: HalvingGridSearchCV(
            crf, grid, cv=KFold(2), min_resources=9, factor=2, random_state=0
        ),
    ],
    ids=["grid", "random", "halving"],
)
def test_searches_over_lists_of_sequences(crf, search):
    found = search(crf, {"reg_lambda": [0.1, 1.0]}).fit(X, Y)
    best = clone(crf).set_params(**found.best_params_).fit(X, Y)
    np.testing.assert_array_equal(found.predict_proba(X), best.predict_proba(X))
    assert found.score(X, Y) == best.score(X, Y)
    assert found.classes_.tolist() == ["a", "b", "c"]
    for labels, same in zip(found.predict(X), best.predict(X), strict=True):
        np.testing.assert_array_equal(labels, same)


def test_a_search_in_several_processes():
    with joblib.parallel_config("multiprocessing"):  # which is quick
        alone, together = (
            GridSearchCV(small(TreeCRF), {"max_depth": [1, 2]}, cv=2, n_jobs=n_jobs).fit(X, Y)
            for n_jobs in (1, 2)
        )
    scores = (search.cv_results_["mean_test_score"] for search in (alone, together))
    np.testing.assert_array_equal(*scores)


def test_a_search_hands_sample_weights_on(crf):
    weights = np.linspace(0.1, 3, 18)
    search = GridSearchCV(crf, {"reg_lambda": [1.0]}, cv=3).fit(X, Y, sample_weight=weights)
    assert_same_model(search.best_estimator_, clone(crf).fit(X, Y, weights))
    found = cross_validate(
        crf, X, Y, cv=3, params={"sample_weight": weights}, return_estimator=True
    )
    assert_same_model(found["estimator"][0], clone(crf).fit(X[6:], Y[6:], weights[6:]))


def test_halving_by_rows_would_tear_sequences_apart():
    search = HalvingGridSearchCV(
        TreeCRF(n_jobs=1, n_rounds=1, group_column="sequence"),
        {"max_depth": [1, 2, 3]},
        min_resources=15,
        cv=FOLDS,
        random_state=0,
        error_score="raise",
    )
    with pytest.raises(ValueError, match="the rows of a group must be consecutive"):
        search.fit(TABLE, LABELS, groups=GROUPS)


# Flat tables that carry their groups


def test_a_table_that_carries_its_groups(crf):
    own = clone(crf).set_params(group_column="sequence")
    found = cross_val_predict(own, TABLE, LABELS, groups=GROUPS, cv=FOLDS)
    np.testing.assert_array_equal(found, predict_out_of_fold(crf))
    scores = cross_validate(
        own, TABLE, LABELS, groups=GROUPS, cv=FOLDS, scoring=["accuracy", "f1_macro"]
    )
    np.testing.assert_allclose(scores["test_accuracy"], score_by_hand(crf))
    probs = cross_val_predict(own, TABLE, LABELS, groups=GROUPS, cv=FOLDS, method="predict_proba")
    assert probs.shape == (len(ROWS), 3)
    search = GridSearchCV(own, {"reg_lambda": [0.1, 1.0]}, cv=FOLDS)
    search.fit(TABLE, LABELS, groups=GROUPS)
    best = clone(crf).set_params(reg_lambda=search.best_params_["reg_lambda"]).fit(X, Y)
    np.testing.assert_array_equal(search.predict(TABLE), np.concatenate(best.predict(X)))


def test_a_pipeline_with_a_group_column(crf):
    scaler = make_column_transformer(
        (StandardScaler(), ["a", "b", "c"]),
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipe = make_pipeline(scaler, clone(crf).set_params(group_column="sequence"))
    found = pipe.fit(TABLE, LABELS).predict(TABLE)
    np.testing.assert_array_equal(found, predict_scaled(crf))
    assert pipe[-1].feature_names_in_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_group_column_may_be_scaled_with_all_others(library):
    scaler = StandardScaler().set_output(transform=library)
    crf = LinearCRF(n_jobs=1, group_column="sequence")
    found = make_pipeline(scaler, crf).fit(TABLE, LABELS).predict(TABLE)
    np.testing.assert_array_equal(found, predict_scaled(LinearCRF(n_jobs=1)))


# Groups passed separately, by metadata routing


def ask(crf):
    asked = clone(crf).set_fit_request(groups=True).set_score_request(groups=True)
    return asked.set_predict_request(groups=True).set_predict_proba_request(groups=True)


@pytest.mark.usefixtures("_routing")
def test_groups_are_routed_through_a_pipeline(crf):
    pipe = Pipeline([("scale", StandardScaler()), ("crf", ask(crf))])
    pipe.fit(ROWS, LABELS, groups=GROUPS)
    scaled = StandardScaler().fit_transform(ROWS)
    expected = clone(crf).fit(scaled, LABELS, groups=GROUPS)
    np.testing.assert_array_equal(
        pipe.predict_proba(ROWS, groups=GROUPS), expected.predict_proba(scaled, groups=GROUPS)
    )
    np.testing.assert_array_equal(pipe.predict(ROWS, groups=GROUPS), predict_scaled(crf))
    score = pipe.score(ROWS, LABELS, groups=GROUPS)
    assert score == expected.score(scaled, LABELS, groups=GROUPS)


@pytest.mark.usefixtures("_routing")
def test_groups_are_routed_through_cross_validation(crf):
    # Not through cross_val_predict, which never hands anything to predict: see group_column.
    routed = {"cv": FOLDS, "params": {"groups": GROUPS}}
    by_hand = score_by_hand(crf)
    assert cross_val_score(ask(crf), ROWS, LABELS, **routed).tolist() == by_hand
    scorer = make_position_scorer(accuracy_score).set_score_request(groups=True)
    scores = cross_validate(ask(crf), ROWS, LABELS, scoring={"right": scorer}, **routed)
    np.testing.assert_allclose(scores["test_right"], by_hand)


@pytest.mark.usefixtures("_routing")
def test_groups_are_routed_through_a_search(crf):
    pipe = Pipeline([("scale", StandardScaler()), ("crf", ask(crf))])
    search = GridSearchCV(pipe, {"crf__reg_lambda": [0.1, 1.0]}, cv=FOLDS)
    search.fit(ROWS, LABELS, groups=GROUPS)
    pipe.set_params(**search.best_params_)
    expected = cross_val_score(pipe, ROWS, LABELS, cv=FOLDS, params={"groups": GROUPS})
    assert search.best_score_ == pytest.approx(expected.mean())


@pytest.mark.usefixtures("_routing")
def test_groups_that_nobody_asked_for_are_an_error(crf):
    with pytest.raises(Exception, match=r"groups.* are passed but are not explicitly set"):
        make_pipeline(StandardScaler(), clone(crf)).fit(ROWS, LABELS, groups=GROUPS)


def test_without_routing_a_pipeline_takes_groups_by_name():
    pipe = make_pipeline(StandardScaler(), LinearCRF(n_jobs=1))
    pipe.fit(ROWS, LABELS, linearcrf__groups=GROUPS)
    found = pipe.predict(ROWS, groups=GROUPS)
    np.testing.assert_array_equal(found, predict_scaled(LinearCRF(n_jobs=1)))


# Scorers


def test_position_scorers_take_lists_and_tables(crf):
    model = clone(crf).fit(X, Y)
    flat = np.concatenate(model.predict(X))
    scorer = make_position_scorer(f1_score, average="macro")
    expected = f1_score(LABELS, flat, average="macro")
    assert scorer(model, X, Y) == pytest.approx(expected)
    assert scorer(model, ROWS, LABELS, groups=GROUPS) == pytest.approx(expected)
    assert scorer(model, ROWS, pd.Series(LABELS), groups=GROUPS) == pytest.approx(expected)
    as_loss = make_position_scorer(f1_score, average="macro", greater_is_better=False)
    assert as_loss(model, X, Y) == pytest.approx(-expected)
    weights = np.arange(len(X)) + 1.0
    accuracy = make_position_scorer(accuracy_score)
    assert accuracy(model, X, Y, sample_weight=weights) == pytest.approx(model.score(X, Y, weights))
    by_row = accuracy(model, ROWS, LABELS, groups=GROUPS, sample_weight=weights[GROUPS])
    assert by_row == pytest.approx(model.score(X, Y, weights))


def test_a_position_scorer_of_probabilities():
    crf = LinearCRF(n_jobs=1).fit(X, Y)
    scorer = make_position_scorer(
        log_loss, response_method="predict_proba", greater_is_better=False, labels=crf.classes_
    )
    assert scorer(crf, X, Y) == pytest.approx(-log_loss(LABELS, crf.predict_proba(X)))
    scores = cross_val_score(LinearCRF(n_jobs=1), X, Y, cv=3, scoring=scorer)
    assert (scores < 0).all()


@pytest.mark.parametrize("gap", [None, np.nan, "?"])
def test_position_scorers_leave_out_missing_labels(gap):
    crf = LinearCRF(n_jobs=1, missing_label="?").fit(X, Y)
    gaps = [[gap, *labels[1:]] for labels in Y]
    scorer = make_position_scorer(accuracy_score)
    assert scorer(crf, X, gaps) == pytest.approx(crf.score(X, gaps))
    pipe = make_pipeline("passthrough", crf)
    assert scorer(pipe, X, gaps) == pytest.approx(crf.score(X, gaps))
    with pytest.raises(
        ValueError, match="every label of y_true is missing; a score needs at least"
    ):
        scorer(crf, X, [[gap] * len(labels) for labels in Y])


@pytest.mark.parametrize(
    ("given", "y", "more", "message"),
    [
        (X, Y[1:], {}, "y_true has 17 sequences but 18 were predicted; pass"),
        (X, [[*Y[0], Y[1][0]], Y[1][1:], *Y[2:]], {}, "y_true[0] has 6 labels but 5 were"),
        (ROWS, LABELS[1:], {"groups": GROUPS}, f"labels but {len(ROWS)} were predicted; pass"),
        (
            ROWS,
            LABELS,
            {"groups": GROUPS, "sample_weight": np.ones(3)},
            f"shape (3,); expected one weight for each of {len(ROWS)} rows",
        ),
        (
            X,
            Y,
            {"sample_weight": np.ones(len(ROWS))},
            "expected one weight for each of 18 sequences",
        ),
    ],
)
def test_labels_and_weights_that_do_not_fit_x(given, y, more, message):
    crf, scorer = LinearCRF(n_jobs=1).fit(X, Y), make_position_scorer(accuracy_score)
    refuses(ValueError, message, scorer, crf, given, y, **more)


def test_a_position_scorer_can_be_kept():
    scorer = make_position_scorer(f1_score, average="micro")
    crf = LinearCRF(n_jobs=1).fit(X, Y)
    assert pickle.loads(pickle.dumps(scorer))(crf, X, Y) == scorer(crf, X, Y)
    assert "f1_score" in repr(scorer)


def test_bad_position_scorers():
    message = "response_method is 'decide'; expected 'predict' or 'predict_proba'"
    refuses(ValueError, message, make_position_scorer, f1_score, response_method="decide")
    refuses(TypeError, "score_func is 1; expected a metric such as", make_position_scorer, 1)
    refuses(ValueError, "'f1_makro' is not a valid scoring value", make_position_scorer, "f1_makro")


def test_position_scorers_by_the_names_of_scikit_learn():
    crf = LinearCRF(n_jobs=1).fit(X, Y)
    by_name = make_position_scorer("f1_macro", zero_division=0)
    by_metric = make_position_scorer(f1_score, average="macro", zero_division=0)
    assert by_name(crf, X, Y) == by_metric(crf, X, Y)
    assert make_position_scorer("neg_log_loss")(crf, X, Y) < 0
    assert not np.isnan(cross_val_score(crf, X, Y, cv=3, scoring=by_name)).any()


# What else scikit-learn does with estimators


def test_feature_selection_by_trees():
    crf = TreeCRF(n_rounds=3, n_jobs=1)
    assert SelectFromModel(crf).fit(ROWS, LABELS).transform(ROWS).shape[1] < 3
    assert RFE(crf, n_features_to_select=2).fit(ROWS, LABELS).support_.sum() == 2


def test_pipelines_are_kept_by_joblib(crf, tmp_path):
    pipe = make_pipeline(StandardScaler(), clone(crf)).fit(ROWS, LABELS)
    joblib.dump(pipe, tmp_path / "pipe")
    twin = joblib.load(tmp_path / "pipe")
    np.testing.assert_array_equal(twin.predict_proba(ROWS), pipe.predict_proba(ROWS))
