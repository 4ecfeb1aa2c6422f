"""Attributes of training, early stopping, warm start."""

import numpy as np
import pytest

from hedgerow import TreeCRF
from reference.linear import make_data

X, Y = make_data(n_sequences=30, longest=6)
OTHER_X, OTHER_Y = make_data(n_sequences=15, seed=1)


def make(**parameters):
    usual = {"n_rounds": 10, "learning_rate": 0.5, "min_child_weight": 0, "trim": 0, "n_jobs": 1}
    return TreeCRF(**usual | parameters)


def eval_loss(crf, X=OTHER_X, y=OTHER_Y):
    return -crf.log_likelihood(X, y).sum() / sum(map(len, y))


def test_the_history_has_the_share_of_labels_that_are_right():
    crf = make().fit(X, Y)
    assert crf.n_rounds_ == len(crf.history_["accuracy"]) == 10
    likeliest = np.concatenate(crf.predict(X, decode="marginal")) == np.concatenate(Y)
    assert crf.history_["accuracy"][-1] == likeliest.mean()


# Early stopping.


def test_training_ends_when_nothing_is_left_to_learn():
    rows, labels = np.array([[0.0], [1.0]] * 5), np.array(["a", "b"] * 5)
    crf = make(n_rounds=10**6, order=0, learning_rate=1.0, trim=0.01).fit(rows, labels)
    assert crf.n_rounds_ < 1000
    assert crf.score(rows, labels) == 1
    assert len(crf.history_["loss"]) == crf.n_rounds_


# Warm start.


def test_the_loss_where_nothing_more_was_learnt():
    init = make(order=0).fit(X, Y)
    crf = make(order=0, trim=1.0).fit(OTHER_X, OTHER_Y, init=init)
    assert crf.n_rounds_ == init.n_rounds_
    assert crf.loss_ == pytest.approx(eval_loss(crf))


def test_the_history_of_figures_that_began_later():
    init = make(n_rounds=5).fit(X, Y)
    watch = {"eval_set": (OTHER_X, OTHER_Y)}
    options = {"learning_rate": 1.0, "reg_lambda": 0.1}
    stopped = make(n_rounds=40, early_stopping_rounds=3, **options).fit(X, Y, init=init, **watch)
    assert stopped.n_rounds_ == len(stopped.history_["loss"]) - 3
    crf = make(n_rounds=2, **options).fit(X, Y, init=stopped, **watch)
    assert len(crf.history_["loss"]) == crf.n_rounds_
    assert len(crf.history_["eval_loss"]) == crf.n_rounds_ - 5


def test_accuracy_where_labels_are_equally_probable():
    rows, labels = np.zeros((4, 1, 1)), np.array([[0], [1], [0], [1]])
    crf = make(n_rounds=1, subsample=0.99, random_state=0).fit(rows, labels)
    assert crf.history_["accuracy"][-1] == crf.score(rows, labels) == 0.5


# Importances.


def test_the_informative_column_is_found():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 5))
    labels = np.where(rows[:, 3] > 0, "p", "n")
    crf = make(n_rounds=3, max_depth=3).fit(rows, labels)
    shares = crf.feature_importances_
    assert shares.shape == (5,)
    assert shares.sum() == pytest.approx(1)
    assert (shares >= 0).all()
    assert shares.argmax() == 3
    assert shares[3] > 0.9
    table = crf.importances()
    assert list(table) == ["feature", "offset", "gain"]
    assert table["feature"][0] == "x3"
    assert (np.diff(table["gain"]) <= 0).all()
    sums = [table["gain"][table["feature"] == f"x{j}"].sum() for j in range(5)]
    np.testing.assert_allclose(sums / np.sum(sums), shares)
