"""Labels that occur only in evaluation data count as errors, with a warning."""

import re

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.pipeline import make_pipeline

from hedgerow import DataWarning, LinearCRF
from hedgerow.report import write_report
from hedgerow.scorers import make_position_scorer
from reference.estimators import group_ids, refuses
from reference.linear import make_data

X, Y = make_data(n_sequences=10)
STRANGE = [["d", *Y[0][1:]], ["e", *Y[1][1:]], *Y[2:]]
HIDDEN = [[None if label in ("d", "e") else label for label in y] for y in STRANGE]
N = sum(map(len, Y))
MESSAGE = (
    "y has labels that did not occur in training: 'd', 'e', at 2 positions, first at y[0][0]; the "
    "model cannot predict them, so they count as mistakes, and are left out of losses and "
    "likelihoods"
)


@pytest.fixture(scope="module")
def crf(make):
    return make().fit(X, Y)


def warns(message=MESSAGE):
    return pytest.warns(DataWarning, match=re.escape(message))


def test_scores_count_them_as_mistakes(crf):
    n_right = crf.score(X, HIDDEN) * (N - 2)
    with warns():
        assert crf.score(X, STRANGE) == pytest.approx(n_right / N)
    flat = np.concatenate(STRANGE)
    with warns("at 2 positions, first at y[0]; the model"):
        found = crf.score(np.concatenate(X), flat, groups=group_ids(X))
    assert found == pytest.approx(n_right / N)
    with warns():
        weighted = crf.score(X, STRANGE, [0, 0, *[1] * 8])
    assert weighted == crf.score(X[2:], Y[2:])
    with warns("at 1 position, first"):
        assert crf.score([X[0][:1]], [["d"]]) == 0


def test_likelihoods_leave_them_out(crf):
    with warns():
        found = crf.log_likelihood(X, STRANGE)
    np.testing.assert_array_equal(found, crf.log_likelihood(X, HIDDEN))


def test_labels_of_another_kind_are_refused(crf):
    wrong = [[1] * len(y) for y in Y]
    refuses(ValueError, "unknown label 1 at y[0][0]; known labels: 'a', 'b'", crf.score, X, wrong)
    refuses(ValueError, "unknown label 'd' at known[0][0]", crf.predict, X, known=STRANGE)


@pytest.mark.parametrize("last", [lambda crf: crf, lambda crf: make_pipeline("passthrough", crf)])
def test_scorers(crf, last):
    message = "y has labels that did not occur in training: 'd', 'e', at 2 positions; the model"
    estimator, y_pred = last(crf), np.concatenate(crf.predict(X))
    for metric, options in ((accuracy_score, {}), (f1_score, {"average": "micro"})):
        scorer = make_position_scorer(metric, **options)
        with warns(message):
            found = scorer(estimator, X, STRANGE)
        assert found == pytest.approx(metric(np.concatenate(STRANGE), y_pred, **options))
    scorer = make_position_scorer(log_loss, response_method="predict_proba", labels=crf.classes_)
    expected = scorer(estimator, X, HIDDEN)
    with warns(message):
        assert scorer(estimator, X, STRANGE) == expected
    if estimator is crf:
        with warns(message):
            found = scorer(crf, np.concatenate(X), np.concatenate(STRANGE), groups=group_ids(X))
        assert found == pytest.approx(expected)


def test_eval_sets(make):
    with warns(MESSAGE.replace("y has", "eval_set has", 1)):
        crf = make(eval_metric="sequence_accuracy", decode="viterbi").fit(
            X, Y, eval_set=(X, STRANGE)
        )
    hidden = make(decode="viterbi").fit(X, Y, eval_set=(X, HIDDEN))
    assert crf.history_["eval_loss"] == hidden.history_["eval_loss"]
    for found, of_known in zip(
        crf.history_["eval_accuracy"], hidden.history_["eval_accuracy"], strict=True
    ):
        assert found == pytest.approx(of_known * (N - 2) / N)
    with warns():
        assert crf.history_["eval_accuracy"][-1] == pytest.approx(crf.score(X, STRANGE))
    whole = [list(found) == list(y) for found, y in zip(crf.predict(X), STRANGE, strict=True)]
    assert crf.history_["eval_sequence_accuracy"][-1] == pytest.approx(np.mean(whole))


def test_eval_sets_with_nothing_to_learn_from(make):
    message = (
        "in eval_set: none of the labels of y, such as 'd', occurred in training; at least one"
    )
    with warns("eval_set has labels that did not occur in training: 'd'"):
        refuses(ValueError, message, make().fit, X, Y, eval_set=(X, [["d"] * len(y) for y in Y]))
    margin = LinearCRF(objective="max_margin", max_iter=3)
    message = "in eval_set: unknown label 'd' at y[0][0]"
    refuses(ValueError, message, margin.fit, X, Y, eval_set=(X, STRANGE))


def test_the_report(crf, tmp_path):
    with warns():
        write_report(crf, tmp_path / "page.html", X, STRANGE)
