"""Penalties of label patterns: given ones, and automatic ones."""

from types import SimpleNamespace

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from hedgerow.labels import Patterns
from hedgerow.objectives import Targets
from hedgerow.training.pattern_penalty import STRENGTH, pattern_penalties
from reference.linear import make_data

PATTERNS = Patterns.of([(0, 1), (1, 0), (0, 1, 0), (0, 1, 0, 1)])


def penalties(value, labels=((0, 1, 0, 1),), weights=None):
    codes = np.array([code for sequence in labels for code in sequence], np.int32)
    offsets = np.cumsum([0, *map(len, labels)])
    targets = Targets(offsets, codes, SimpleNamespace(n_labels=2), weights)
    return pattern_penalties(value, PATTERNS, targets)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2, [2, 2, 2, 2]),
        (np.float32(0.5), [0.5] * 4),
        ([1.0, 3.0], [1, 1, 3, 3]),
        ((1, 2, 3, 4), [1, 1, 2, 3]),
        (np.array([0.25]), [0.25] * 4),
    ],
    ids=str,
)
def test_numbers_are_of_lengths(value, expected):
    assert penalties(value).tolist() == expected


def test_none_is_none():
    assert penalties(None) is None


def test_auto_goes_by_what_occurs_once():
    # Of the pairs 01 and 10 the second occurs once, of longer runs all do.
    half, all_of_them = STRENGTH / 4, STRENGTH
    assert penalties("auto").tolist() == [half, half, all_of_them, all_of_them]
    assert penalties("auto", [[0, 1, 0, 1]] * 2).tolist() == [0.0] * 4
    weighted = penalties("auto", weights=np.array([2.0]))
    assert weighted.tolist() == [0.0] * 4
    assert penalties("auto", [[-1, 0, -1]]).tolist() == [0.0] * 4


@pytest.mark.parametrize(("transition_step", "pattern_lambda"), [("bound", 0.3), ("exact", "auto")])
def test_weights_come_to_the_minimum_of_the_penalised_loss(transition_step, pattern_lambda):
    # Without attributes: expected and observed counts differ by the pull of the penalty.
    y = [list("aababbbaab"), list("abbaaabbab")]
    X = [[{}] * 10, [{}] * 10]
    crf = TreeCRF(
        n_rounds=600 if transition_step == "bound" else 160,
        learning_rate=1.0,
        transition_step=transition_step,
        pattern_lambda=pattern_lambda,
        order=2,
        trim=0,
        reg_lambda=0.01,
        max_step=None,
    ).fit(X, y)
    expected = np.concatenate(crf.predict_pattern_marginals(X)).sum(axis=0)
    text = ["".join(labels) for labels in y]
    observed = [
        sum(line.startswith("".join(pattern), at) for line in text for at in range(10))
        for pattern in crf.label_patterns_
    ]
    strengths = penalties(pattern_lambda, [[int(c == "b") for c in line] for line in text])
    by_length = {2: strengths[0], 3: strengths[2]}
    pull = [by_length[len(pattern)] for pattern in crf.label_patterns_]
    slopes = expected - observed + pull * crf.model_.pattern_weights
    np.testing.assert_allclose(slopes, 0, atol=0.05)


def test_all_that_differs_from_none_is_the_penalty():
    X, y = make_data(n_sequences=12, seed=1)
    same = [LinearCRF(reg_lambda=0.7, pattern_lambda=value, tol=0) for value in (None, 0.7)]
    first, second = (crf.fit(X, y) for crf in same)
    assert first.loss_ == pytest.approx(second.loss_, rel=1e-12)
    trees = [TreeCRF(n_rounds=5, pattern_lambda=value).fit(X, y) for value in (None, 0)]
    assert trees[0].loss_ == trees[1].loss_


def test_the_margin_needs_a_penalty():
    X, y = make_data()
    for value in (0, [1.0, 0.0]):
        crf = LinearCRF(objective="max_margin", order=2, pattern_lambda=value)
        with pytest.raises(ValueError, match="which needs a penalty; pass numbers above 0"):
            crf.fit(X, y)
    for value in ("auto", np.array([0.5, 1.0])):
        crf = LinearCRF(objective="max_margin", order=2, pattern_lambda=value).fit(X, y)
        assert crf.score(X, y) > 0.8
