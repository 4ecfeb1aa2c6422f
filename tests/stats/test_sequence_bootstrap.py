"""The bootstrap, against scores computed from scratch for each resample."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score, log_loss, matthews_corrcoef

from hedgerow.metrics import (
    chunk_scores,
    flat,
    flat_accuracy_score,
    flat_f1_score,
    flat_fbeta_score,
    label_scores,
)
from hedgerow.scorers import make_position_scorer
from hedgerow.stats import bootstrap
from hedgerow.stats.tallies import ChunkMetric

RNG = np.random.default_rng(0)
LABELS = ["O", "B-NP", "I-NP", "B-VP"]


def draw_labels(n_sequences):
    return [[LABELS[k] for k in RNG.integers(0, 4, RNG.integers(1, 7))] for _ in range(n_sequences)]


def spoil(y, share):
    return [[LABELS[RNG.integers(4)] if RNG.random() < share else k for k in s] for s in y]


Y = draw_labels(40)
GOOD, BAD = spoil(Y, 0.1), spoil(Y, 0.5)
OPTIONS = {"n_resamples": 8, "random_state": 3}
F1 = {"average": "macro", "zero_division": 0}
SAME = {
    "accuracy": ("accuracy", lambda t, p: label_scores(t, p).accuracy),
    "sequence accuracy": ("sequence_accuracy", lambda t, p: label_scores(t, p).sequence_accuracy),
    "chunk F1": ("chunk_f1", lambda t, p: chunk_scores(t, p).f1),
    "strict chunks": (ChunkMetric("f1", "IOB2"), lambda t, p: chunk_scores(t, p, "IOB2").f1),
    "chunk recall": ("chunk_recall", lambda t, p: chunk_scores(t, p).recall),
    "a scorer's name": ("f1_macro", lambda t, p: flat_f1_score(t, p, average="macro")),
    "a scorer": (make_position_scorer(f1_score, **F1), lambda t, p: flat_f1_score(t, p, **F1)),
    "a loss": (
        make_position_scorer(f1_score, greater_is_better=False, **F1),
        lambda t, p: -flat_f1_score(t, p, **F1),
    ),
    "flat": (flat_accuracy_score, lambda t, p: flat_accuracy_score(t, p)),
    "flat with options": (
        partial(flat_fbeta_score, beta=2.0, average="micro"),
        lambda t, p: flat_fbeta_score(t, p, beta=2.0, average="micro"),
    ),
    "flat of another": (flat(matthews_corrcoef), lambda t, p: flat(matthews_corrcoef)(t, p)),
}


@pytest.mark.parametrize(
    ("name", "method"),
    [*((name, "percentile") for name in SAME), ("accuracy", "basic"), ("chunk F1", "BCa")],
)
def test_scores_from_counts_are_those_computed_from_scratch(name, method):
    metric, function = SAME[name]
    for others in ([GOOD], [GOOD, BAD]):
        fast, slow = (
            bootstrap(m, Y, *others, method=method, **OPTIONS) for m in (metric, function)
        )
        np.testing.assert_allclose(fast.distribution, slow.distribution, rtol=1e-12)
        assert fast.p_value == slow.p_value
        for what in ("value", "low", "high", "standard_error"):
            assert getattr(fast, what) == pytest.approx(getattr(slow, what), rel=1e-9)
    assert fast.value == pytest.approx(function(Y, GOOD) - function(Y, BAD))


def test_an_interval_of_a_mean():
    # Sequences of one position: the mean of a sample, whose error is known.
    n, share = 400, 0.8
    y, predicted = [["a"]] * n, [["a" if s < share * n else "b"] for s in range(n)]
    found = bootstrap("accuracy", y, predicted, n_resamples=2000, random_state=0)
    error = np.sqrt(share * (1 - share) / n)
    assert found.value == share
    assert found.standard_error == pytest.approx(error, rel=0.1)
    assert found.low == pytest.approx(share - 1.96 * error, abs=error / 4)
    assert found.high == pytest.approx(share + 1.96 * error, abs=error / 4)
    narrow = bootstrap("accuracy", y, predicted, confidence_level=0.5, random_state=0)
    assert found.low < narrow.low < narrow.high < found.high
    assert found.p_value is None
    assert found.distribution.shape == (2000,)
    assert "distribution" not in repr(found)


def test_whole_sequences_are_drawn():
    # Ten positions of a sequence are alike: ten times as many positions say no more.
    alone = [["a"]] * 50, [["a" if s < 40 else "b"] for s in range(50)]
    many = tuple([labels * 10 for labels in side] for side in alone)
    one, ten = (bootstrap("accuracy", *sides, **OPTIONS) for sides in (alone, many))
    assert (one.low, one.high, one.standard_error) == (ten.low, ten.high, ten.standard_error)


def test_p_values():
    better = bootstrap("accuracy", Y, GOOD, BAD, random_state=0)
    assert better.low > 0
    assert better.p_value == pytest.approx(2 / 1001)
    worse = bootstrap("accuracy", Y, BAD, GOOD, random_state=0)
    assert (worse.p_value, worse.high) == (better.p_value, pytest.approx(-better.low))
    same = bootstrap("accuracy", Y, GOOD, GOOD, random_state=0)
    assert (same.value, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    # Equally good, in different places: p-values are spread evenly.
    p_values = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        sides = [[["a" if rng.random() < 0.7 else "b"] for _ in range(80)] for _ in range(2)]
        options = {"n_resamples": 200, "random_state": seed}
        p_values.append(bootstrap("accuracy", [["a"]] * 80, *sides, **options).p_value)
    assert 0.3 < np.mean(p_values) < 0.7
    assert np.mean(np.array(p_values) < 0.1) < 0.25


def test_missing_labels_are_left_out():
    holes = [[None if t % 3 == 2 else k for t, k in enumerate(labels)] for labels in Y]
    holes[5] = [None] * len(holes[5])
    kept = [
        [(k, p) for k, p in zip(*pair, strict=True) if k] for pair in zip(holes, GOOD, strict=True)
    ]
    truth, predicted = ([[pair[i] for pair in s] for s in kept if s] for i in (0, 1))
    for metric in ("accuracy", "chunk_f1", lambda t, p: chunk_scores(t, p).f1):
        found = bootstrap(metric, holes, GOOD, **OPTIONS)
        expected = bootstrap(metric, truth, predicted, **OPTIONS)
        np.testing.assert_array_equal(found.distribution, expected.distribution)
    nan = [[float("nan") if k is None else 1.0 for k in labels] for labels in holes]
    assert bootstrap("accuracy", nan, nan, **OPTIONS).value == 1.0


def test_weights():
    weights = RNG.integers(0, 3, len(Y)).astype(float)
    for metric in ("accuracy", "f1_macro", flat_accuracy_score):
        found = bootstrap(metric, Y, GOOD, sample_weight=weights, **OPTIONS)
        copies = np.repeat(np.arange(len(Y)), weights.astype(int))
        expected = bootstrap(metric, [Y[s] for s in copies], [GOOD[s] for s in copies], **OPTIONS)
        assert found.value == pytest.approx(expected.value)

    def function(y_true, y_pred, sample_weight):
        return flat_accuracy_score(y_true, y_pred, sample_weight=sample_weight)

    slow, fast = (
        bootstrap(metric, Y, GOOD, BAD, sample_weight=weights, **OPTIONS)
        for metric in (function, "accuracy")
    )
    np.testing.assert_allclose(slow.distribution, fast.distribution)


def test_forms_of_labels():
    expected = bootstrap("f1_macro", Y, GOOD, BAD, **OPTIONS)
    arrays = [list(map(np.array, side)) for side in (Y, GOOD, BAD)]
    flats = [np.concatenate(side) for side in arrays]
    groups = np.repeat(np.arange(len(Y)), list(map(len, Y)))
    for found in (
        bootstrap("f1_macro", *arrays, **OPTIONS),
        bootstrap("f1_macro", *flats, groups=groups, **OPTIONS),
        bootstrap("f1_macro", *map(pd.Series, flats), groups=pd.Series(groups), **OPTIONS),
        bootstrap("f1_macro", *(side.tolist() for side in flats), groups=groups, **OPTIONS),
    ):
        np.testing.assert_array_equal(found.distribution, expected.distribution)


def test_draws_are_those_of_the_seed():
    first, again, other = (bootstrap("accuracy", Y, BAD, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.distribution, again.distribution)
    assert first.distribution.tolist() != other.distribution.tolist()


def test_one_resample():
    found = bootstrap("accuracy", Y, BAD, n_resamples=1)
    assert found.low == found.high == found.distribution[0]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("acuracy", Y, GOOD), {}, "metric is 'acuracy'; did you mean accuracy?"),
        (("zzz", Y, GOOD), {}, "metric is 'zzz'; expected a name such as 'accuracy', 'chunk_f1'"),
        (("roc_auc", Y, GOOD), {}, "metric is 'roc_auc', which compares probabilities"),
        (("accuracy", Y, GOOD[1:]), {}, "y_true has 40 sequences but y_pred has 39"),
        (("accuracy", Y, GOOD, [["O"]] * 40), {}, "in y_true but 1 in y_pred"),
        (("accuracy", Y[:1], GOOD[:1]), {}, "y_true has 1 sequence with labels; a bootstrap"),
        (("chunk_f1", [["a"]] * 2, [["b"]] * 2), {}, "f1 of chunks needs labels such as B-NP, I-N"),
        (("accuracy", Y, GOOD), {"n_resamples": 0}, "n_resamples is 0; expected an integer"),
        (("accuracy", Y, GOOD), {"confidence_level": 95}, "confidence_level is 95; expected"),
        (("accuracy", Y, GOOD), {"method": "normal"}, "method is 'normal'; expected 'percentile'"),
        (("accuracy", Y, GOOD), {"random_state": "x"}, "random_state is 'x'; expected an integer"),
        (("accuracy", Y, GOOD), {"sample_weight": [1.0]}, r"sample_weight has shape \(1,\); expec"),
        (("accuracy", Y, GOOD), {"sample_weight": -np.ones(len(Y))}, r"weight\[0\] is -1.0; "),
        (("accuracy", list("ab"), list("a")), {"groups": [1, 2]}, "y_true has 2 rows but a predi"),
        (("accuracy", list("ab"), list("ab")), {"groups": [1]}, "1 id but y_true has 2 rows; pass"),
        ((lambda t, p: np.nan, Y, GOOD), {}, "metric gives nan for a resample; expected a finite"),
        ((chunk_scores, Y, GOOD), {}, "metric gives ChunkScores.* for a resample; expected a fin"),
    ],
)
def test_what_cannot_be_resampled(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        bootstrap(*arguments, **options)


def test_what_is_no_metric():
    scorer = make_position_scorer(log_loss, response_method="predict_proba")
    with pytest.raises(ValueError, match=r"metric is <function log_loss .*compares probabilities"):
        bootstrap(scorer, Y, GOOD)
    with pytest.raises(TypeError, match="metric is 3; expected a name such as 'accuracy'"):
        bootstrap(3, Y, GOOD)
    with pytest.raises(TypeError, match="sequence 0 is a string; expected lists of labels"):
        bootstrap("accuracy", ["O", "B"], ["O", "B"])
    with pytest.raises(TypeError, match="sequence 0 is 1; expected lists of labels: wrap flat"):
        bootstrap("accuracy", np.array([1, 2]), np.array([1, 2]))
