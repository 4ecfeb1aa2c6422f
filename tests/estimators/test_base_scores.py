"""Base scores in training and in prediction, for both estimators."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.model_selection import cross_validate

from hedgerow import Checkpoint, LinearCRF, load
from hedgerow.encode import GivenParents
from hedgerow.inspection import permutation_importance
from hedgerow.model_selection import cross_val_predict
from hedgerow.plots import marginals as plot_marginals
from hedgerow.potentials import GivenScores
from hedgerow.raw_data import RawData
from hedgerow.report import write_report
from hedgerow.scorers import make_position_scorer
from reference.estimators import (
    answers,
    assert_same,
    assert_same_training,
    every_prediction,
    refuses,
)
from reference.trainings import saved

RNG = np.random.default_rng(7)
LENGTHS = (3, 1, 4, 2, 3, 4, 2, 3)
X = [RNG.normal(size=(n, 2)) for n in LENGTHS]
Y = [RNG.choice(["a", "b", "c"], n).tolist() for n in LENGTHS]
BASE = [RNG.normal(size=(n, 3)) for n in LENGTHS]
ZERO = [np.zeros_like(scores) for scores in BASE]


@pytest.fixture(scope="module")
def crf(make):
    return make().fit(X, Y, base_scores=BASE)


def enumerate_marginals(crf, x, scores):
    """Marginals of one sequence by its labellings, with scores added to the model's own."""
    raw = RawData([x], base_scores=[np.zeros((len(x), 3))])
    sequences = crf.model_.read(raw, group_column=None, parents=GivenParents(), name="CRF")
    (own,) = crf.model_.scores(sequences, 1)
    weights = dict(zip(crf.label_patterns_, crf.patterns()["weight"], strict=True))
    labels, total = crf.classes_.tolist(), np.zeros((len(x), 3))
    nodes = own.nodes + scores
    for codes in product(range(3), repeat=len(x)):
        named = [labels[k] for k in codes]
        score = sum(nodes[t, k] for t, k in enumerate(codes))
        score += sum(
            weight
            for pattern, weight in weights.items()
            for t in range(len(x))
            if tuple(named[max(0, t - len(pattern) + 1) : t + 1]) == pattern
        )
        total[np.arange(len(x)), codes] += np.exp(score)
    return total / total.sum(axis=1, keepdims=True)


def test_marginals_equal_enumeration(crf):
    for x, scores, found in zip(X, BASE, crf.predict_marginals(X, base_scores=BASE), strict=True):
        np.testing.assert_allclose(found, enumerate_marginals(crf, x, scores), rtol=1e-9)


def test_zeros_are_as_none(make):
    sets = {"X": X[:3], "y": Y[:3]}
    plain = make().fit(X, Y, eval_set=sets)
    zero = make().fit(X, Y, base_scores=ZERO, eval_set=sets | {"base_scores": ZERO[:3]})
    assert_same_training(plain, zero)
    assert_same(answers(plain, X), answers(zero, X, base_scores=ZERO))


def test_the_loss_is_that_of_all_scores(crf):
    loss = -crf.log_likelihood(X, Y, base_scores=BASE).sum()
    if isinstance(crf, LinearCRF):
        squares = sum(np.sum(table["weight"] ** 2) for table in (crf.weights(), crf.patterns()))
        assert crf.loss_ == pytest.approx(loss + squares / 2, rel=1e-9)
    else:
        assert crf.loss_ == pytest.approx(loss / sum(LENGTHS), rel=1e-9)


def test_training_learns_what_is_left(make):
    right = [np.where(np.array(y)[:, None] == ["a", "b", "c"], 9.0, 0.0) for y in Y]
    crf = make().fit(X, Y, base_scores=right)
    assert crf.score(X, Y, base_scores=right) == 1
    wrong = [-scores for scores in right]
    assert crf.score(X, Y, base_scores=wrong) < 0.2


def test_every_method_wants_them(crf):
    message = f"{type(crf).__name__} was fitted with base_scores"
    for method in every_prediction(crf):
        method(X, base_scores=BASE)
        refuses(ValueError, message, method, X)
    for method in (crf.score, crf.log_likelihood):
        method(X, Y, base_scores=BASE)
        refuses(ValueError, message, method, X, Y)
    refuses(ValueError, message, crf.explain, X[0], 0)


def test_a_model_without_them_refuses_them(make):
    crf = make().fit(X, Y)
    message = f"base_scores are given, but {type(crf).__name__} was fitted without them"
    for method in every_prediction(crf):
        refuses(ValueError, message, method, X, base_scores=BASE)
    refuses(ValueError, message, crf.explain, X[0], 0, base_scores=BASE[0])


def test_forms_that_mean_the_same(make, crf):
    flat, groups = np.concatenate(X), np.repeat(np.arange(len(X)), LENGTHS)
    scores = np.concatenate(BASE)
    for base_scores in (
        scores,
        scores.tolist(),
        pd.DataFrame(scores),
        pd.DataFrame(scores[:, [2, 0, 1]], columns=["c", "a", "b"]),
        pl.DataFrame(scores[:, ::-1], schema=["c", "b", "a"]),
    ):
        other = make().fit(flat, np.concatenate(Y), groups=groups, base_scores=base_scores)
        found = other.predict_proba(flat, groups=groups, base_scores=base_scores)
        np.testing.assert_array_equal(found, crf.predict_proba(X, base_scores=BASE))
    found = crf.predict_proba(X, base_scores=scores)
    np.testing.assert_array_equal(found, crf.predict_proba(X, base_scores=BASE))


def test_files_remember_that_there_were_some(crf, tmp_path):
    loaded = load(saved(crf, tmp_path))
    assert loaded.model_.takes_base_scores
    assert_same(answers(loaded, X, base_scores=BASE), answers(crf, X, base_scores=BASE))
    assert saved(loaded, tmp_path) == saved(crf, tmp_path)
    assert '"base_scores": true' in crf.to_json()


def test_checkpoints_know_them(make, tmp_path):
    kept = Checkpoint(tmp_path / "kept", every=1)
    first = make().fit(X, Y, base_scores=BASE, checkpoint=kept)
    assert_same_training(first, make().fit(X, Y, base_scores=BASE, checkpoint=kept))
    fit = make().fit
    message = "base_scores has changed"
    refuses(ValueError, message, fit, X, Y, base_scores=ZERO, checkpoint=kept)
    message = "base_scores was given and is not given now"
    refuses(ValueError, message, fit, X, Y, checkpoint=kept)


def test_a_model_to_start_from_was_fitted_alike(make, crf):
    more = make().fit(X, Y, base_scores=BASE, init=crf)
    assert more.model_.takes_base_scores
    fit = make().fit
    message = "was fitted with base_scores and needs them here too"
    refuses(ValueError, message, fit, X, Y, init=crf)
    plain = make().fit(X, Y)
    refuses(ValueError, "was fitted without them", fit, X, Y, init=plain, base_scores=BASE)


def test_they_stay_with_their_sequences(make):
    """Held-out and training sequences have their own base scores."""
    marked = [np.full((n, 2), float(s)) for s, n in enumerate(LENGTHS)]
    base = [np.full((n, 3), float(s)) for s, n in enumerate(LENGTHS)]
    seen = []

    class Spy(GivenScores):
        def prepare(self, sequences, n_threads):
            seen.append((sequences.dense[:, 0], sequences.base_scores[:, 0]))

    crf = make(early_stopping_rounds=1, validation_fraction=0.4)
    crf.given_potentials = lambda: (Spy(),)
    crf.fit(marked, Y, base_scores=base)
    assert len(seen) >= 2
    for marks, scores in seen:
        np.testing.assert_array_equal(marks, scores)


def test_explanations_list_them(crf):
    found = crf.explain(X[2], 1, "a", "b", base_scores=BASE[2])
    features = found.feature_table
    (place,) = np.flatnonzero(features["feature"] == "base_scores")
    assert features["contribution"][place] == pytest.approx(BASE[2][1, 0] - BASE[2][1, 1])
    assert found.to_table()["contribution"].sum() == pytest.approx(found.log_odds)
    marginals = crf.predict_marginals(X, base_scores=BASE)[2][1]
    assert found.log_odds == pytest.approx(np.log(marginals[0] / marginals[1]))


def test_a_plot_takes_them(crf):
    assert plot_marginals(crf, X[0], Y[0], base_scores=BASE[0]) is not None


def test_large_scores_leave_no_nan(make):
    sure = [np.where(np.array(y)[:, None] == ["a", "b", "c"], 0.0, -1e9) for y in Y]
    crf = make().fit(X, Y, base_scores=sure)
    assert crf.loss_ == pytest.approx(0, abs=1e-6)
    assert np.isfinite(crf.predict_proba(X, base_scores=sure)).all()
    against = [-scores for scores in sure]
    assert np.isfinite(make().fit(X, Y, base_scores=against).loss_)


COLUMNS = "a column for each label, in this order: 'a', 'b', 'c'"
WRONG = {
    "text": ("scores", TypeError, f"base_scores is of type str; expected one array of shape "
             f"(length, 3) for each sequence, {COLUMNS}"),
    "number": (5, TypeError, "base_scores is of type int; expected one array"),
    "too few": (BASE[:2], ValueError, "base_scores has 2 parts but X has 8 sequences; expected"),
    "shape": ([BASE[0][:, :2], *BASE[1:]], ValueError,
              f"base_scores[0] has shape (3, 2); expected (3, 3), {COLUMNS}"),
    "flat": (np.zeros((4, 3)), ValueError, "base_scores has shape (4, 3); expected (22, 3)"),
    "words": ([[["x"] * 3] * n for n in LENGTHS], ValueError,
              "base_scores[0] is not an array of numbers: could not convert"),
    "complex": ([scores + 1j for scores in BASE], ValueError, "is not an array of numbers: its"),
    "names": ([pd.DataFrame(scores, columns=list("abd")) for scores in BASE], ValueError,
              "the columns of base_scores[0] are 'a', 'b', 'd', but the labels are 'a', 'b', 'c'; "
              "name the columns after the labels"),
    "nan": ([BASE[0] * np.nan, *BASE[1:]], ValueError,
            "base_scores is nan at position 0 of sequence 0 for label 'a'; expected finite "
            "numbers from -1e+09 to 1e+09"),
    "infinite": ([*BASE[:-1], np.full((3, 3), np.inf)], ValueError,
                 "base_scores is inf at position 0 of sequence 7 for label 'a'; expected finite"),
    "log of 0": ([*BASE[:-1], np.full((3, 3), -np.inf)], ValueError,
                 "for label 'a'; expected finite numbers from -1e+09 to 1e+09. If they are "
                 "logarithms of probabilities that may be 0, use np.log(np.maximum("
                 "probabilities, 1e-6)); for an "
                 "impossible label, pass a number such as -1e4"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(make, crf, name):
    base_scores, kind, message = WRONG[name]
    refuses(kind, message, make().fit, X, Y, base_scores=base_scores)
    refuses(kind, message, crf.predict, X, base_scores=base_scores)
    sets = {"X": X, "y": Y, "base_scores": base_scores}
    refuses(kind, "in eval_set: ", make().fit, X, Y, base_scores=BASE, eval_set=sets)


def test_eval_sets_want_them(make):
    fit = make().fit
    message = (
        "in eval_set: X comes without base_scores, but fit was given base_scores; pass a dict, "
        "{'X': X, 'y': y, 'base_scores': base_scores}"
    )
    refuses(ValueError, message, fit, X, Y, base_scores=BASE, eval_set=(X, Y))
    sets = [{"X": X, "y": Y, "base_scores": BASE}]
    refuses(ValueError, "in eval_set: base_scores are given, but", fit, X, Y, eval_set=sets)
    message = "eval_set (one) is a dict with the keys 'X', 'z'; expected"
    refuses(ValueError, message, fit, X, Y, eval_set={"one": {"X": X, "z": Y}})


def test_what_is_made_of_a_model_takes_them(make, crf, tmp_path):
    scorer = make_position_scorer("accuracy")
    right = crf.score(X, Y, base_scores=BASE)
    assert scorer(crf, X, Y, base_scores=BASE) == right
    for scoring in (None, "accuracy"):
        found = permutation_importance(crf, X, Y, scoring=scoring, base_scores=BASE, n_repeats=1)
        assert found.importances.shape == (2, 1)
    folds = [([0, 2, 4, 6], [1, 3, 5, 7]), ([1, 3, 5, 7], [0, 2, 4, 6])]
    predicted = cross_val_predict(make(), X, Y, cv=folds, base_scores=BASE)
    train = [BASE[i] for i in (1, 3, 5, 7)]
    model = make().fit(
        [X[i] for i in (1, 3, 5, 7)], [Y[i] for i in (1, 3, 5, 7)], base_scores=train
    )
    expected = model.predict(X[:1], base_scores=BASE[:1])
    assert predicted[0].tolist() == expected[0].tolist()
    write_report(crf, tmp_path / "page.html", X, Y, base_scores=BASE)
    message = "y, groups, parents, base_scores and X_base go with X"
    refuses(ValueError, message, write_report, crf, tmp_path / "page.html", base_scores=BASE)


def test_scikit_learn_hands_them_on(make):
    """By metadata routing, which must be enabled."""
    with config_context(enable_metadata_routing=True):
        crf = make().set_fit_request(base_scores=True).set_score_request(base_scores=True)
        found = cross_validate(crf, X, Y, cv=2, params={"base_scores": BASE}, error_score="raise")
    assert ((found["test_score"] >= 0) & (found["test_score"] <= 1)).all()


def test_early_stopping_may_keep_them_alone(make, tmp_path):
    """What is learned from noise makes correct base scores worse."""
    rng = np.random.default_rng(0)
    noise = [rng.choice(["a", "b", "c"], n).tolist() for n in LENGTHS]
    right = [np.where(np.array(y)[:, None] == ["a", "b", "c"], 6.0, 0.0) for y in Y]
    sets = {"X": X, "y": Y, "base_scores": right}
    crf = make(early_stopping_rounds=1).fit(X, noise, base_scores=right, eval_set=sets)
    best = crf.best_iter_ if isinstance(crf, LinearCRF) else crf.best_round_
    assert best == 0
    assert crf.score(X, Y, base_scores=right) == 1
    assert load(saved(crf, tmp_path)).score(X, Y, base_scores=right) == 1
