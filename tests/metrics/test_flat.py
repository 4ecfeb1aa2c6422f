import numpy as np
import pytest
from sklearn import metrics as of_scikit_learn

from hedgerow import metrics
from hedgerow.metrics import flat

TRUE = [["A", "B", None], ["C", "B"], ["A"]]
PREDICTED = [["A", "A", "C"], ["C", "B"], ["B"]]
KNOWN = ["A", "B", "C", "B", "A"], ["A", "A", "C", "B", "B"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("accuracy_score", {}),
        ("precision_score", {"average": None}),
        ("recall_score", {"average": "macro"}),
        ("f1_score", {"average": "weighted"}),
        ("fbeta_score", {"average": "micro", "beta": 2}),
        ("classification_report", {"digits": 3}),
        ("classification_report", {"output_dict": True}),
        ("confusion_matrix", {"labels": ["C", "B", "A"]}),
    ],
)
@pytest.mark.parametrize("kind", [list, np.array])
def test_they_are_those_of_scikit_learn(name, options, kind):
    found = getattr(metrics, f"flat_{name}")(
        TRUE, [kind(labels) for labels in PREDICTED], **options
    )
    expected = getattr(of_scikit_learn, name)(*map(np.array, KNOWN), **options)
    np.testing.assert_equal(found, expected)


def test_any_metric():
    cohen = flat(of_scikit_learn.cohen_kappa_score)
    assert cohen.__name__ == "cohen_kappa_score"
    assert cohen(TRUE, PREDICTED) == pytest.approx(of_scikit_learn.cohen_kappa_score(*KNOWN))
    assert cohen(*KNOWN) == pytest.approx(cohen(TRUE, PREDICTED))  # flat labels will do
    known = np.array(KNOWN[1], dtype=object)
    assert cohen(KNOWN[0], known) == pytest.approx(cohen(TRUE, PREDICTED))


def test_probabilities():
    marginals = [np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.5, 0.5]])]
    found = flat(of_scikit_learn.log_loss)([[0, 1], [None]], marginals)
    assert found == pytest.approx(-np.log([0.9, 0.8]).mean())


def test_a_label_that_stands_for_a_missing_one():
    score = metrics.flat_accuracy_score([[1, -1], [2]], [[1, 2], [1]], missing_label=-1)
    assert score == 0.5


def test_weights_of_sequences_and_of_rows():
    by_sequence = metrics.flat_accuracy_score(TRUE, PREDICTED, sample_weight=[1, 2, 3])
    assert by_sequence == pytest.approx((1 + 2 + 2) / (2 + 4 + 3))
    assert metrics.flat_accuracy_score(*KNOWN, sample_weight=[1, 1, 2, 2, 3]) == by_sequence


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        (TRUE, PREDICTED[1:], "y_true has 3 sequences but 2 were predicted; pass one list"),
        (TRUE, [["A"], *PREDICTED[1:]], r"y_true\[0\] has 3 labels but 1 were predicted; pass one"),
        (["A", "B"], ["A"], "y_true has 2 labels but 1 were predicted; pass one label"),
        ([[None], [np.nan]], [["A"], ["A"]], "every label of y_true is missing; a score needs"),
    ],
)
def test_labels_that_do_not_go_together(true, predicted, message):
    with pytest.raises(ValueError, match=message):
        metrics.flat_accuracy_score(true, predicted)


def test_no_labels():
    with pytest.raises(TypeError, match="y is None; expected one label for every position"):
        metrics.flat_accuracy_score(None, PREDICTED)


def test_weights_that_do_not_fit():
    with pytest.raises(ValueError, match=r"shape \(2,\); expected .* each of 3 sequences"):
        metrics.flat_accuracy_score(TRUE, PREDICTED, sample_weight=[1, 2])


def test_a_metric_of_which_nothing_is_known():
    assert flat(max)([["a"]], [["b"]]).tolist() == ["b"]  # it has no signature
