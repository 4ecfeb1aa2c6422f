"""Label patterns: which exist, their tables, and models without any."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from reference.linear import make_data

X, Y = make_data(n_sequences=10, seed=4)
ROWS = np.concatenate(X)
PAIRS = list(itertools.product("abc", repeat=2))


def count_patterns(y, order):
    """How often every pattern of two to order + 1 labels occurs."""
    return Counter(
        tuple(labels[t : t + n])
        for labels in y
        for n in range(2, order + 2)
        for t in range(len(labels) - n + 1)
    )


@pytest.mark.parametrize(("order", "min_pattern_count"), [(0, 1), (2, 0), (3, 2), (100, 4)])
def test_patterns_that_occur_often_enough(make, order, min_pattern_count):
    crf = make(order=order, min_pattern_count=min_pattern_count).fit(X, Y)
    counts = count_patterns(Y, order)
    kept = [pattern for pattern, n in counts.items() if n >= max(1, min_pattern_count)]
    assert crf.label_patterns_ == sorted(kept, key=lambda pattern: (len(pattern), pattern))
    assert len(crf.model_.pattern_weights) == len(kept)


def test_order_1_has_all_pairs_unless_only_some_are_asked_for(make):
    items, y = [[{}] * 3, [{}] * 2], [["a", "b", "c"], ["a", "b"]]
    for count, expected in ((0, PAIRS), (1, [("a", "b"), ("b", "c")]), (2, [("a", "b")]), (3, [])):
        assert make(min_pattern_count=count).fit(items, y).label_patterns_ == expected


def test_the_patterns_given_are_those_that_have_weights(make):
    given = [("b", "a"), ["a", "b", "c"], ("c",), ("b", "a"), np.array(["c", "c"])]
    crf = make(label_patterns=given).fit(X, Y)
    assert crf.label_patterns_ == [("b", "a"), ("a", "b", "c"), ("c", "c")]
    assert make(label_patterns=pd.Series(given)).fit(X, Y).loss_ == crf.loss_
    assert make(label_patterns=[]).fit(X, Y).loss_ == make(order=0).fit(X, Y).loss_


@pytest.mark.parametrize(
    ("names", "kind"), [([5, 7, -1], int), ([True, False], bool)], ids=["int", "bool"]
)
def test_patterns_of_labels_that_are_not_text(make, names, kind):
    X, y = make_data(labels=range(len(names)), seed=4)
    y = [[names[label] for label in labels] for labels in y]
    crf = make(order=2).fit(X, y)
    assert {type(label) for pattern in crf.label_patterns_ for label in pattern} == {kind}
    again = make(label_patterns=crf.label_patterns_).fit(X, y)
    assert again.label_patterns_ == crf.label_patterns_
    assert again.loss_ == pytest.approx(crf.loss_, rel=1e-9)
    as_array = np.array([pattern for pattern in crf.label_patterns_ if len(pattern) == 3])
    crf = make(label_patterns=as_array).fit(X, y)
    assert crf.label_patterns_ == list(map(tuple, as_array.tolist()))


@pytest.mark.parametrize("order", [1, 2])
def test_the_tables_of_patterns(make, order):
    crf = make(order=order).fit(X, Y)
    table, pairs = crf.patterns(), crf.transition_weights()
    assert list(table) == ["pattern", "weight"]
    assert list(pairs) == ["from", "to", "weight"]
    assert table["pattern"].tolist() == crf.label_patterns_
    assert len(table["weight"]) == len(crf.label_patterns_)
    by_pattern = dict(zip(table["pattern"], table["weight"], strict=True))
    by_pair = dict(zip(zip(pairs["from"], pairs["to"], strict=True), pairs["weight"], strict=True))
    assert by_pair == {z: weight for z, weight in by_pattern.items() if len(z) == 2}


def test_sequences_too_short_for_any_pattern(make):
    single = [x[:1] for x in X], [labels[:1] for labels in Y]
    crf, order_0 = make(order=3).fit(*single), make(order=0).fit(*single)
    assert crf.label_patterns_ == []
    np.testing.assert_allclose(crf.predict_proba(X), order_0.predict_proba(X), rtol=1e-9)


def test_without_patterns_positions_do_not_influence_each_other(make):
    crf = make(order=0).fit(X, Y)
    assert crf.label_patterns_ == []
    assert [len(column) for column in crf.patterns().values()] == [0, 0]
    assert [len(column) for column in crf.transition_weights().values()] == [0, 0, 0]
    assert [part.shape for part in crf.predict_pattern_marginals(X)] == [(len(x), 0) for x in X]
    one_by_one = crf.predict_proba([row[None] for row in ROWS])
    np.testing.assert_allclose(crf.predict_proba(X), one_by_one, rtol=1e-12)
    codes = np.searchsorted(crf.classes_, np.concatenate(Y))
    log_probs = np.log(one_by_one[np.arange(len(ROWS)), codes])
    expected = np.add.reduceat(log_probs, np.cumsum([0, *map(len, X[:-1])]))
    np.testing.assert_allclose(crf.log_likelihood(X, Y), expected, rtol=1e-10)
    both = (np.concatenate(crf.predict(X, decode=decode)) for decode in ("viterbi", "marginal"))
    np.testing.assert_array_equal(*both)
