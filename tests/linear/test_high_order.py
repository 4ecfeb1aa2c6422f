"""What label patterns of any order are to the loss, and to a training that starts from others."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from hedgerow import LinearCRF
from hedgerow.descent.warm_start import start_from
from hedgerow.objectives import Likelihood
from hedgerow.trellis import AutomatonChain, Chain
from reference.descents import build_loss
from reference.linear import make_data

X, Y = make_data(n_sequences=10, seed=4)
ROWS = np.concatenate(X)
PAIRS = list(itertools.product("abc", repeat=2))


def test_all_pairs_as_patterns_are_order_1():
    plain = LinearCRF(tol=0, max_iter=300).fit(X, Y)
    for patterns in (PAIRS, PAIRS[::-1]):
        crf = LinearCRF(tol=0, max_iter=300, label_patterns=patterns).fit(X, Y)
        assert crf.loss_ == pytest.approx(plain.loss_, rel=1e-9)
        np.testing.assert_allclose(crf.predict_proba(X), plain.predict_proba(X), atol=1e-6)
        for found, expected in zip(crf.predict(X), plain.predict(X), strict=True):
            np.testing.assert_array_equal(found, expected)
    same = LinearCRF(label_patterns=PAIRS).fit(X, Y)
    plain = LinearCRF().fit(X, Y)
    np.testing.assert_allclose(same.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(same.patterns()["weight"], plain.patterns()["weight"], rtol=1e-9)


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("class_weight", [None, {"a": 3.0}])
def test_a_pattern_of_weight_zero_changes_nothing(edges, class_weight):
    # Order 1 over an automaton, which the longer pattern asks for, and without one.
    parameters = {"transition_attributes": edges, "class_weight": class_weight, "reg_lambda": 0.5}
    patterns = [*PAIRS, ("a", "b", "c")]
    plain, *_ = build_loss(LinearCRF(**parameters), X, Y)
    longer, *_ = build_loss(LinearCRF(label_patterns=patterns, **parameters), X, Y)
    assert isinstance(plain.targets.trellis, Chain)
    assert isinstance(longer.targets.trellis, AutomatonChain)
    weights = np.random.default_rng(0).normal(size=plain.n_weights)
    value, gradient = plain.of(Likelihood())(weights)
    same, slopes = longer.of(Likelihood())(np.append(weights, 0.0))
    assert same == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slopes[:-1], gradient, rtol=1e-9, atol=1e-11)


def test_order_0_is_logistic_regression():
    crf = LinearCRF(order=0, all_pairs=True, tol=1e-12).fit(X, Y)
    with_bias = np.column_stack([ROWS, np.ones(len(ROWS))])
    peer = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000)
    peer.fit(with_bias, np.concatenate(Y))
    np.testing.assert_allclose(crf.predict_proba(X), peer.predict_proba(with_bias), atol=1e-5)


@pytest.mark.parametrize(("old", "new"), [(1, 2), (2, 1), (3, 2), (0, 2), (2, 0), (2, 3)])
@pytest.mark.parametrize("renamed", [False, True])
def test_a_start_from_another_order_takes_over_the_patterns_that_both_have(old, new, renamed):
    init = LinearCRF(order=old, reg_lambda=0.1).fit(X, Y)
    # "a" becomes "z", so that every label has another code.
    y = [["z" if label == "a" and renamed else label for label in labels] for labels in Y]
    crf = LinearCRF(order=new)
    loss, data, _, layout = build_loss(crf, X, y)
    start = start_from(init.model_, data, layout)
    cold, _ = loss.of(Likelihood())(np.zeros(loss.n_weights))
    warm, _ = loss.of(Likelihood())(start)
    assert warm < cold
    weights = loss.split(start)[1]
    table = init.patterns()
    kept = dict(zip(table["pattern"], table["weight"].tolist(), strict=True))
    classes = data.labels.classes.tolist()
    patterns = [tuple(classes[k] for k in pattern) for pattern in data.grammar.patterns]
    assert weights.tolist() == [kept.get(pattern, 0.0) for pattern in patterns]
    if min(old, new) and not renamed:
        assert weights.any()
    crf.fit(X, y, init=init)
    assert crf.loss_ == pytest.approx(LinearCRF(order=new).fit(X, y).loss_, rel=1e-3)
