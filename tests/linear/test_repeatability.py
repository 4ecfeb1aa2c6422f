"""The same data give the same model: on any number of threads, again, after a fork."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hedgerow import LinearCRF
from reference.linear import make_data, to_dicts

X, Y = make_data(n_sequences=300, n_features=6, labels="abcd", longest=30)
KINDS = pytest.mark.parametrize(
    "parameters",
    [
        *({}, {"transition_attributes": True}, {"reg_alpha": 0.5}, {"class_weight": "balanced"}),
        {"order": 2},
    ],
    ids=lambda parameters: "".join(parameters) or "plain",
)


def tables(crf):
    return *crf.weights().values(), *crf.transitions().values(), *crf.patterns().values()


def assert_equal(first, second):
    for one, two in zip(tables(first), tables(second), strict=True):
        np.testing.assert_array_equal(one, two)
    assert first.history_ == second.history_
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


@KINDS
def test_bit_identical_for_any_number_of_threads(parameters):
    one, *others = (
        LinearCRF(n_jobs=n_jobs, max_iter=12, tol=0, **parameters).fit(
            X, Y, np.linspace(1, 2, len(X)), eval_set=(X[:50], Y[:50])
        )
        for n_jobs in (1, 2, 3, 7, -1)
    )
    for other in others:
        assert_equal(one, other)


@KINDS
def test_bit_identical_when_fitted_again(parameters):
    crf = LinearCRF(max_iter=12, tol=0, **parameters).fit(X, Y)
    assert_equal(crf, LinearCRF(max_iter=12, tol=0, random_state=7, **parameters).fit(X, Y))
    assert_equal(LinearCRF(max_iter=12, tol=0, **parameters).fit(X[:3], Y[:3]).fit(X, Y), crf)


def test_bit_identical_predictions_alone_or_in_a_batch():
    crf = LinearCRF(max_iter=12, tol=0).fit(X, Y)
    marginals, likelihoods = crf.predict_marginals(X), crf.log_likelihood(X, Y)
    for s in range(0, len(X), 17):
        np.testing.assert_array_equal(crf.predict_proba([X[s]]), marginals[s])
        assert crf.log_likelihood([X[s]], [Y[s]])[0] == likelihoods[s]


def test_the_order_of_sequences_matters_to_rounding_alone():
    forth, back = LinearCRF().fit(X, Y), LinearCRF().fit(X[::-1], Y[::-1])
    assert back.loss_ == pytest.approx(forth.loss_, rel=1e-6)


def test_sets_do_not_bring_in_their_order():
    # The order of a set of strings changes from one process to the next.
    code = """
        from hedgerow import LinearCRF
        words = ["alpha", "beta", "gamma", "delta", "epsilon"]
        X = [[{"w": set(words)}, {"w": set(words[:2])}], [set(words), {"beta"}]]
        crf = LinearCRF().fit(X, [["a", "b"], ["b", "a"]])
        print(crf.attributes_, crf.weights()["weight"].tolist())
    """
    seen = {
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            timeout=60,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1


@pytest.mark.parametrize("form", [list, to_dicts])
def test_predictions_from_several_threads_at_once(form):
    given = form(X)
    crf = LinearCRF(max_iter=12, tol=0, n_jobs=2).fit(given, Y)
    expected = crf.predict_proba(given)
    labels = np.concatenate(crf.predict(given))

    def ask(_):
        same = (crf.predict_proba(given) == expected).all()
        return same and (np.concatenate(crf.predict(given)) == labels).all()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(32)))


def test_fits_in_several_threads_at_once():
    def fit(_):
        return LinearCRF(max_iter=6, tol=0, n_jobs=2).fit(X, Y)

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(fit, range(8))
    for other in others:
        assert_equal(first, other)


class Interrupting:
    """A place to write to that interrupts once, at the second writing."""

    def __init__(self):
        self.n_writings = 0

    def write(self, text):
        self.n_writings += 1
        if self.n_writings == 2:
            raise KeyboardInterrupt

    def flush(self):
        pass


@KINDS
def test_an_interrupted_fit_leaves_the_model_as_it_was(parameters, monkeypatch):
    crf = LinearCRF(**parameters).fit(X[:20], Y[:20])
    kept, history = tables(crf), crf.history_
    crf.verbose = 1
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", Interrupting())
        with pytest.raises(KeyboardInterrupt):
            crf.fit(to_dicts(X), [["z", *labels[1:]] for labels in Y])
    for before, now in zip(kept, tables(crf), strict=True):
        np.testing.assert_array_equal(before, now)
    assert crf.history_ is history
    assert crf.n_features_in_ == 6


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize("parameters", [{}, {"reg_alpha": 0.1}, {"order": 2}], ids=str)
def test_ctrl_c_ends_a_long_fit_and_leaves_the_model_as_it_was(parameters):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40_000, 60))
    labels = rng.integers(0, 40, len(rows))
    crf = LinearCRF(tol=0, max_iter=10**6, reg_lambda=1e-6, **parameters)
    crf.fit(rows[:5], labels[:5])
    kept = tables(crf)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        crf.fit(rows, labels, groups=np.arange(len(rows)) // 100)
    timer.join()
    for before, now in zip(kept, tables(crf), strict=True):
        np.testing.assert_array_equal(before, now)
