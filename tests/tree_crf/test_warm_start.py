"""Warm start from another model."""

import numpy as np
import pandas as pd
import pytest

import hedgerow
from hedgerow import TreeCRF
from reference.boosting import assert_same_model
from reference.estimators import assert_same_training
from reference.linear import hide, make_data, to_dicts
from reference.model_files import to_chunks
from reference.trainings import saved

X, Y = make_data(n_sequences=25, longest=6)
OTHER_X, OTHER_Y = make_data(n_sequences=10, seed=1)
FRAMES = [
    pd.DataFrame(x, columns=list("pqr")).assign(
        sign=np.where(x[:, 0] > 0, "plus", "minus"), text=[f"v{value:.1f}" for value in x[:, 1]]
    )
    for x in X
]
GAPS = [np.where(np.random.default_rng(0).random(x.shape) < 0.3, np.nan, x) for x in X]
CHUNKS = list(map(to_chunks, Y))
COLUMNS = {"colsample_bytree": 0.7, "colsample_bynode": 0.7, "random_state": 5}
STRATIFIED = {"stratified": True, "negative_ratio": 0.7, "random_state": 7}
CASES = {
    "plain": (X, Y, {}),
    "all draws": (X, Y, COLUMNS | STRATIFIED | {"subsample": 0.6}),
    "by gradients": (
        X,
        Y,
        STRATIFIED
        | {"subsample": 0.5, "sampling_method": "gradient_based", "negative_weight": "balanced"},
    ),
    "first-order": (X, Y, {"newton": False, "class_weight": "balanced"}),
    "exact steps": (X, Y, {"transition_step": "exact", "order": 2}),
    "exact curvature": (X, Y, {"curvature": "exact", "window": (1, 2)}),
    "partial labels": (X, hide(Y), {}),
    "constraints": (X, CHUNKS, {"constraints": "BIO"}),
    "dicts": (to_dicts(X), Y, {}),
    "categories": (FRAMES, Y, {}),
    "fractions": (GAPS, Y, {"missing": "fractional"}),
    "surrogates": (GAPS, Y, {"missing": "surrogate", "window": 1}),
    "imputed values": (GAPS, Y, {"missing": "impute"}),
    "long steps": (X, Y, {"learning_rate": 30.0, "max_step": None}),
}


def make(n_rounds, **parameters):
    return TreeCRF(**{"n_rounds": n_rounds, "min_child_weight": 0.1, "n_jobs": 1, **parameters})


@pytest.mark.parametrize("name", CASES)
def test_two_trainings_are_one(name, tmp_path):
    X, y, parameters = CASES[name]
    whole = make(12, **parameters).fit(X, y, eval_set=(X, y))
    assert whole.n_rounds_ == 12
    half = make(5, **parameters).fit(X, y, eval_set=(X, y))
    for init in (half, hedgerow.load(saved(half, tmp_path))):
        both = make(7, **parameters).fit(X, y, eval_set=(X, y), init=init)
        assert_same_training(both, whole)
        both.n_rounds = 12
        assert saved(both, tmp_path) == saved(whole, tmp_path)
    assert half.n_rounds_ == 5


def test_many_trainings_are_one():
    parameters = CASES["all draws"][2]
    whole = make(6, **parameters).fit(X, Y)
    crf = None
    for _ in range(6):
        crf = make(1, **parameters).fit(X, Y, init=crf)
    assert_same_model(crf, whole)


def test_a_model_can_go_on_from_itself():
    crf = make(4).fit(X, Y)
    assert crf.fit(X, Y, init=crf) is crf
    assert crf.n_rounds_ == 8
    assert_same_model(crf, make(8).fit(X, Y))


@pytest.mark.filterwarnings("ignore:y has a single label")
def test_two_trainings_are_one_where_the_objective_has_nothing_left_to_learn():
    # Of a single label all is known: no round for the objective gets anywhere.
    x, y = [[[0.0]]], [["a"]]
    parameters = {"objective": "expected_accuracy", "warm_rounds": 1}
    whole = make(2, **parameters).fit(x, y)
    crf = make(1, **parameters).fit(x, y, init=make(1, **parameters).fit(x, y))
    assert crf.loss_ == whole.loss_ == -1.0


@pytest.mark.parametrize("order", [0, 1, 2])
def test_new_data(order):
    init = make(8, order=order).fit(X, Y)
    before = -init.log_likelihood(OTHER_X, OTHER_Y).sum() / sum(map(len, OTHER_X))
    crf = make(8, order=order).fit(OTHER_X, OTHER_Y, init=init)
    old, new = init._trees.forest, crf._trees.forest
    assert crf.n_rounds_ == 16
    np.testing.assert_array_equal(new.values[: len(old.values)], old.values)
    assert crf._trees.columns is init._trees.columns
    found = -crf.log_likelihood(OTHER_X, OTHER_Y).sum() / sum(map(len, OTHER_X))
    assert crf.loss_ == pytest.approx(found)
    assert found < before
    assert (np.diff([before, *crf.history_["loss"][8:]]) <= 1e-12).all()


def test_fewer_labels_than_before():
    init = make(3).fit(X, Y)
    crf = make(3).fit([X[0][:1]], [["a"]], init=init)
    assert crf.classes_.tolist() == ["a", "b", "c"]
    assert crf.n_rounds_ == 6


def test_patterns_of_a_higher_order_are_added():
    init = make(5).fit(X, Y)
    crf = make(1, order=3, learning_rate=1e-9).fit(X, Y, init=init)
    old, new = (
        dict(zip(model.label_patterns_, model.patterns()["weight"], strict=True))
        for model in (init, crf)
    )
    assert max(map(len, new)) == 4
    for pattern, weight in new.items():
        assert weight == pytest.approx(old.get(pattern, 0.0), abs=1e-7)
    longer = make(8, order=3).fit(X, Y, init=init)
    assert longer.loss_ < init.loss_
    assert longer.n_rounds_ == 13


def test_another_window_and_other_trees():
    init = make(4, max_depth=2).fit(X, Y)
    crf = make(4, window=2, max_depth=4, max_bins=3).fit(X, Y, init=init)
    assert set(init.importances()["offset"]) == {0}
    assert set(crf.importances()["offset"]) > {0}
    np.testing.assert_array_equal(crf._trees.columns.cuts, init._trees.columns.cuts)


def test_rounds_that_were_not_kept_are_not_gone_on_from():
    stopped = make(40, early_stopping_rounds=3, learning_rate=1.0).fit(
        X, Y, eval_set=(OTHER_X, OTHER_Y)
    )
    assert stopped.n_rounds_ < len(stopped.history_["loss"])
    crf = make(2, learning_rate=1.0).fit(X, Y, eval_set=(OTHER_X, OTHER_Y), init=stopped)
    assert crf.n_rounds_ == stopped.n_rounds_ + 2
    assert {len(figures) for figures in crf.history_.values()} == {crf.n_rounds_}
    assert_same_model(crf, make(stopped.n_rounds_ + 2, learning_rate=1.0).fit(X, Y))
