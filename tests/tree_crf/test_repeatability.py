"""The same data give the same model: on any number of threads, again, after a fork."""

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from hedgerow import TreeCRF
from reference.boosting import assert_same_model
from reference.linear import hide, make_data, to_dicts

X, Y = make_data(n_sequences=400, n_features=6, labels="abcd", longest=30)
FRAMES = [
    pd.DataFrame(x)
    .rename(columns=str)
    .assign(text=[f"{value:.1f}" for value in x[:, 0]], word=[f"{value}" for value in x[:, 1]])
    for x in X
]
DRAWS = {
    "subsample": 0.5,
    "stratified": True,
    "negative_ratio": 1.0,
    "colsample_bytree": 0.8,
    "colsample_bynode": 0.8,
    "random_state": 3,
}
CASES = {
    "plain": (X, Y, {"window": 1}),
    "draws": (X, Y, DRAWS),
    "first-order": (X, Y, {"newton": False}),
    "order 2": (X, Y, {"order": 2}),
    "class weights": (X, Y, {"class_weight": "balanced"}),
    "exact steps": (X, Y, {"transition_step": "exact"}),
    "partial labels": (X, hide(Y), {}),
    "dicts": (to_dicts(X), Y, {"window": (1, 0)}),
    "text": (FRAMES, Y, {}),
}


def make(**parameters):
    return TreeCRF(**{"n_rounds": 3, "max_depth": 4, **parameters})


@pytest.mark.parametrize("name", CASES)
def test_bit_identical_for_any_number_of_threads(name):
    given, y, parameters = CASES[name]
    weights = np.linspace(1, 2, len(X))
    one, *others = (
        make(n_jobs=n_jobs, **parameters).fit(given, y, weights, eval_set=(given[:50], y[:50]))
        for n_jobs in (1, 2, 3)
    )
    marginals = one.predict_proba(given[:100])
    for other in others:
        assert_same_model(one, other)
        assert one.history_ == other.history_
        np.testing.assert_array_equal(other.predict_proba(given[:100]), marginals)


@pytest.mark.parametrize("name", ["plain", "draws", "order 2"])
def test_bit_identical_when_fitted_again(name):
    given, y, parameters = CASES[name]
    crf = make(n_jobs=2, **parameters).fit(given, y)
    assert_same_model(make(n_jobs=2, **parameters).fit(given[:3], y[:3]).fit(given, y), crf)


def test_draws_depend_on_the_seed():
    one, two = (make(**DRAWS | {"random_state": seed}).fit(X, Y) for seed in (1, 2))
    assert one.loss_ != two.loss_
    state = np.random.RandomState(5)
    one, two = (make(**DRAWS | {"random_state": state}).fit(X, Y) for _ in range(2))
    assert one.loss_ != two.loss_
    again = make(**DRAWS | {"random_state": np.random.RandomState(5)}).fit(X, Y)
    assert_same_model(again, one)
    seeded = [make(**DRAWS | {"random_state": seed}).fit(X, Y) for seed in (7, np.int64(7))]
    assert_same_model(*seeded)


def test_without_draws_the_seed_does_not_matter():
    assert_same_model(make(random_state=1).fit(X, Y), make(random_state=2).fit(X, Y))


def test_bit_identical_predictions_alone_or_in_a_batch():
    crf = make(window=2).fit(X, Y)
    marginals, likelihoods = crf.predict_marginals(X), crf.log_likelihood(X, Y)
    for s in range(0, len(X), 37):
        np.testing.assert_array_equal(crf.predict_proba([X[s]]), marginals[s])
        assert crf.log_likelihood([X[s]], [Y[s]])[0] == likelihoods[s]


def test_the_order_of_sequences_matters_to_rounding_alone():
    forth, back = make().fit(X, Y), make().fit(X[::-1], Y[::-1])
    assert back.loss_ == pytest.approx(forth.loss_, rel=1e-6)


@pytest.mark.parametrize("form", [list, to_dicts], ids=["arrays", "dicts"])
def test_predictions_from_several_threads_at_once(form):
    given = form(X[:60])
    crf = make(n_jobs=2).fit(given, Y[:60])
    expected, labels = crf.predict_proba(given), np.concatenate(crf.predict(given))

    def ask(_):
        same = (crf.predict_proba(given) == expected).all()
        return same and (np.concatenate(crf.predict(given)) == labels).all()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(16)))


def test_fits_in_several_threads_at_once():
    with ThreadPoolExecutor(3) as pool:
        first, *others = pool.map(lambda _: make(n_jobs=2).fit(X, Y), range(4))
    for other in others:
        assert_same_model(first, other)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
def test_ctrl_c_ends_a_long_fit_and_leaves_the_model_as_it_was():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 60))
    labels = rng.integers(0, 40, len(rows))
    crf = make(n_rounds=2, max_depth=8, trim=0)
    crf.fit(rows[:50], labels[:50])
    expected = crf.predict_proba(rows[:50])
    crf.n_rounds = 10**6
    timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        crf.fit(rows, labels, groups=np.arange(len(rows)) // 100)
    timer.join()
    assert crf.n_rounds_ == 2
    np.testing.assert_array_equal(crf.predict_proba(rows[:50]), expected)
