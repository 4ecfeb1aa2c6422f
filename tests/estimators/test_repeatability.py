"""Reproducibility: the same model with any number of threads, when fitted again, after Ctrl-C."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from hedgerow import LinearCRF, TreeCRF
from reference.ctrl_c import press_after
from reference.estimators import (
    ESTIMATORS,
    answers,
    assert_same,
    assert_same_model,
    assert_same_training,
    small,
    tables,
)
from reference.linear import hide, make_data, to_dicts

X, Y = make_data(n_sequences=300, n_features=6, labels="abcd", longest=30)
DICTS, PARTIAL = to_dicts(X), hide(Y)
FRAMES = [
    pd.DataFrame(
        {
            **{str(number): column for number, column in enumerate(x.T)},
            "text": [f"v{value:.1f}" for value in x[:, 0]],
            "word": [f"w{value}" for value in x[:, 1]],
        }
    )
    for x in X[:60]
]
DRAWS = {
    "subsample": 0.5,
    "stratified": True,
    "negative_ratio": 1.0,
    "colsample_bytree": 0.8,
    "colsample_bynode": 0.8,
    "random_state": 3,
}
BY_GRADIENT = DRAWS | {"sampling_method": "gradient_based", "negative_weight": "none"}
EDGES = {"transition_attributes": True}
CASES = [
    *((estimator, X, Y, {}) for estimator in ESTIMATORS),
    *((estimator, X, Y, {"order": 2}) for estimator in ESTIMATORS),
    (LinearCRF, X, PARTIAL, {"order": 2}),
    (LinearCRF, X, Y, {"reg_alpha": 0.5}),
    (LinearCRF, X, Y, {"objective": "accuracy"}),
    (LinearCRF, X, Y, {"objective": "max_margin"}),
    (LinearCRF, X, Y, {"order": 2, "class_weight": "balanced"}),
    (LinearCRF, X[:100], Y[:100], {"order": 3, **EDGES}),
    (LinearCRF, X[:100], PARTIAL[:100], EDGES),
    (LinearCRF, X[:100], Y[:100], {"order": 2, "pattern_attributes": True}),
    (TreeCRF, X, PARTIAL, {}),
    (TreeCRF, X, Y, {"window": 1, "class_weight": "balanced"}),
    (TreeCRF, X, Y, {"objective": "expected_accuracy", "warm_rounds": 1}),
    (TreeCRF, X, Y, DRAWS),
    (TreeCRF, X, Y, BY_GRADIENT),
    (TreeCRF, X[:100], Y[:100], BY_GRADIENT | {"transitions": "trees"}),
    (TreeCRF, X, Y, {"newton": False, "transition_step": "exact"}),
    (TreeCRF, X, Y, {"transitions": "trees", "order": 2}),
    (TreeCRF, X, Y, DRAWS | {"transitions": "trees"}),
    (TreeCRF, DICTS, Y, {"window": (1, 0)}),
    (TreeCRF, FRAMES, Y[:60], {}),
]
some_kinds = pytest.mark.parametrize(
    ("estimator", "parameters"),
    [
        (LinearCRF, EDGES | {"class_weight": "balanced"}),
        (LinearCRF, {"reg_alpha": 0.5, "order": 2}),
        (TreeCRF, {"window": 1, "order": 2}),
        (TreeCRF, DRAWS),
    ],
)


@pytest.mark.parametrize(
    ("estimator", "given", "y", "parameters"),
    CASES,
    ids=[f"{estimator.__name__}-{parameters}" for estimator, _, _, parameters in CASES],
)
def test_bit_identical_for_any_number_of_threads(estimator, given, y, parameters):
    weights, few = np.linspace(1, 2, len(given)), given[:50]
    one, other = (
        small(estimator, **parameters, n_jobs=n_jobs).fit(given, y, weights, eval_set=(few, y[:50]))
        for n_jobs in (1, 7)
    )
    assert_same_training(one, other)
    assert_same(
        *([*answers(crf, few), crf.log_likelihood(few, PARTIAL[:50])] for crf in (one, other))
    )


@some_kinds
def test_bit_identical_when_fitted_again(estimator, parameters):
    def make(**more):
        return small(estimator, **{"n_jobs": 2, **parameters, **more})

    crf = make().fit(X, Y)
    assert_same_training(make().fit(X[:3], Y[:3]).fit(X, Y), crf)
    if parameters is not DRAWS:
        assert_same_training(make(random_state=7).fit(X, Y), crf)


def test_draws_depend_on_the_seed():
    def fit(seed):
        return small(TreeCRF, **DRAWS | {"random_state": seed}).fit(X[:100], Y[:100])

    assert fit(1).loss_ != fit(2).loss_
    state = np.random.RandomState(5)
    one, two = fit(state), fit(state)
    assert one.loss_ != two.loss_
    assert_same_model(fit(np.random.RandomState(5)), one)
    assert_same_model(fit(7), fit(np.int64(7)))


@pytest.fixture(scope="module")
def fitted(make):
    return make(n_jobs=2).fit(X, Y)


def test_bit_identical_predictions_alone_or_in_a_batch(fitted):
    marginals, likelihoods = fitted.predict_marginals(X), fitted.log_likelihood(X, Y)
    for s in range(0, len(X), 17):
        np.testing.assert_array_equal(fitted.predict_proba([X[s]]), marginals[s])
        assert fitted.log_likelihood([X[s]], [Y[s]])[0] == likelihoods[s]


def test_the_order_of_sequences_does_not_matter(make, fitted):
    assert_same_training(make().fit(X[::-1], Y[::-1]), fitted)


@pytest.mark.parametrize("form", [list, to_dicts], ids=["arrays", "dicts"])
def test_predictions_from_several_threads_at_once(make, form):
    given = form(X[:60])
    crf = make(n_jobs=2).fit(given, Y[:60])
    expected, labels = crf.predict_proba(given), np.concatenate(crf.predict(given))

    def ask(_):
        same = (crf.predict_proba(given) == expected).all()
        return same and (np.concatenate(crf.predict(given)) == labels).all()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(32)))


def test_fits_in_several_threads_at_once(make):
    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(lambda _: make(n_jobs=2).fit(X[:100], Y[:100]), range(6))
    for other in others:
        assert_same_training(first, other)


# Trainings that are interrupted.


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize(
    ("crf", "endless"),
    [
        (LinearCRF(tol=0, reg_lambda=1e-6, max_iter=9), {"max_iter": 10**6}),
        (LinearCRF(tol=0, reg_lambda=1e-6, reg_alpha=0.1, max_iter=9), {"max_iter": 10**6}),
        (TreeCRF(n_rounds=2, max_depth=8, trim=0), {"n_rounds": 10**6}),
    ],
    ids=["LinearCRF", "L1", "TreeCRF"],
)
def test_ctrl_c_ends_a_long_fit_and_leaves_the_model_as_it_was(crf, endless):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5_000, 60))
    labels = rng.integers(0, 40, len(rows))
    crf.fit(rows[:50], labels[:50])
    kept = crf.predict_proba(rows[:50]), *tables(crf).values()
    crf.set_params(**endless)
    groups = np.arange(len(rows)) // 100
    with pytest.raises(KeyboardInterrupt):
        press_after(0.1, lambda: crf.fit(rows, labels, groups=groups))
    assert_same((crf.predict_proba(rows[:50]), *tables(crf).values()), kept)
