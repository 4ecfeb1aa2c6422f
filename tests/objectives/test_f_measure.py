"""The F-measure of expected counts: its value, and its gradients by marginals and by scores."""

import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from hedgerow.labels import Labels
from hedgerow.objectives import F1, ExpectedAccuracy, OfMarginals
from reference.problems import FORMS, TARGETS, central_differences, make_problem
from reference.scores import slopes_of

NAMES = Labels(np.array(["a", "b", "c"]))
OBJECTIVES = [
    F1(labels, average).for_labels(NAMES)
    for labels in (None, ("b",), ("c", "a"))
    for average in ("macro", "micro")
]


def f1_by_hand(objective, marginals, codes, weights):
    """2 TP / (2 TP + FN + FP) of each label, position by position, and their average."""
    chosen = range(marginals.shape[1]) if objective.codes is None else objective.codes
    right, missed, wrong = np.zeros((3, marginals.shape[1]))
    for p, code, weight in zip(marginals, codes, weights, strict=True):
        for k in chosen:
            if code == k:
                right[k] += weight * p[k]
                missed[k] += weight * (1 - p[k])
            elif code >= 0:
                wrong[k] += weight * p[k]
    if objective.average == "micro":
        n_there = right.sum() + missed.sum()
        return 2 * right.sum() / (right + n_there / len(right) + wrong).sum() if n_there else 0.0
    occur = [k for k in chosen if right[k] + missed[k] > 0]
    scores = [2 * right[k] / (2 * right[k] + missed[k] + wrong[k]) for k in occur]
    return np.mean(scores) if scores else 0.0


@given(st.sampled_from(OBJECTIVES), st.integers(0, 2**32 - 1))
def test_values_and_gradients_by_marginals(objective, seed):
    rng = np.random.default_rng(seed)
    marginals = rng.dirichlet(np.full(3, 0.7), size=6)
    codes = rng.integers(-1, 3, 6).astype(np.int32)
    weights = rng.uniform(0, 3, 6) * (codes >= 0)
    expected = weights.sum() * f1_by_hand(objective, marginals, codes, weights)
    assert objective.value(marginals, codes, weights) == pytest.approx(expected, rel=1e-12)
    differences = central_differences(
        lambda: objective.value(marginals, codes, weights), marginals, 1e-6
    )
    gradient = objective.gradient(marginals, codes, weights)
    assert gradient == pytest.approx(differences, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_slopes_by_scores_equal_central_differences(form):
    for number, case in enumerate(TARGETS.values()):
        objective = OfMarginals(OBJECTIVES[number])
        potentials, targets, _ = make_problem(form, case)
        found = slopes_of(objective, potentials, targets)
        loss = partial(lambda *given: slopes_of(*given).loss, objective, potentials, targets)
        for name in ("nodes", "arcs") if potentials.edges is None else ("nodes", "edges"):
            expected = central_differences(loss, getattr(potentials, name), 1e-5)
            np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-5, atol=1e-7)


def test_worked_by_hand():
    marginals = np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]])
    codes, weights = np.array([0, 1, 1], np.int32), np.ones(3)
    # Label 0: right 0.5, there 1, predicted 1.75. Label 1: right 0.75, there 2, predicted 1.25.
    first, second = 2 * 0.5 / 2.75, 2 * 0.75 / 3.25
    assert F1().value(marginals, codes, weights) == pytest.approx(3 * (first + second) / 2)
    one = F1(("b",)).for_labels(Labels(np.array(["a", "b"])))
    assert one.value(marginals, codes, weights) == pytest.approx(3 * second)
    slopes = one.gradient(marginals, codes, weights)
    assert slopes[:, 0].tolist() == [0, 0, 0]
    np.testing.assert_allclose(slopes[:, 1], 3 * np.array([-second, 2 - second, 2 - second]) / 3.25)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_marginals_that_are_certain_have_the_f1_of_their_labels(average):
    rng = np.random.default_rng(2)
    codes, predicted = rng.integers(0, 3, (2, 50)).astype(np.int32)
    marginals, weights = np.eye(3)[predicted], rng.uniform(0, 2, 50)
    for labels in (None, [1], [0, 2]):
        objective = F1(None if labels is None else tuple(labels), average)
        objective = objective.for_labels(Labels(np.arange(3)))
        expected = f1_score(codes, predicted, labels=labels, average=average, sample_weight=weights)
        value = objective.value(marginals, codes, weights)
        assert value == pytest.approx(weights.sum() * expected)


def test_micro_f1_of_all_labels_is_the_expected_accuracy():
    potentials, targets, _ = make_problem(FORMS["arcs"], TARGETS["sequence weights"])
    found, expected = (
        slopes_of(OfMarginals(objective), potentials, targets)
        for objective in (F1(average="micro"), ExpectedAccuracy())
    )
    assert found.loss == pytest.approx(expected.loss, rel=1e-12)
    np.testing.assert_allclose(found.nodes, expected.nodes, rtol=0, atol=1e-12)


def test_labels_that_count():
    assert F1().for_labels(NAMES).codes is None
    assert F1(("c", "a")).for_labels(NAMES).codes == (0, 2)
    chunks = Labels(np.array(["B-NP", "I-NP", "O"]))
    assert F1().for_labels(chunks).codes == (0, 1)
    assert F1(("O",)).for_labels(chunks).codes == (2,)
    assert F1().for_labels(Labels(np.array(["I", "O"]))).codes is None


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_labels_that_do_not_occur_say_nothing(average):
    objective = F1(("b",), average).for_labels(NAMES)
    marginals = np.full((2, 3), 1 / 3)
    for codes, weights in (([0, 2], [1.0, 1.0]), ([1, -1], [0.0, 0.0])):
        arrays = marginals, np.array(codes, np.int32), np.array(weights)
        assert objective.value(*arrays) == 0
        assert not objective.gradient(*arrays).any()


@pytest.mark.parametrize(
    ("labels", "average", "message"),
    [
        (None, "weighted", "f1_average is 'weighted'; expected 'macro' or 'micro'"),
        ([], "macro", "f1_labels is []; expected a list of labels, or None for all"),
        ("B", "macro", "f1_labels is 'B'; expected a list of labels, or None for all"),
        (["a", "b", "a"], "macro", "f1_labels has the label 'a' twice; give it once"),
    ],
)
def test_parameters_that_make_no_sense(labels, average, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        F1.read(labels, average)


def test_what_is_wrong_with_an_object():
    with pytest.raises(ValueError, match=r"^average is 'binary'; expected 'macro' or 'micro'$"):
        F1(average="binary")
    message = r"^f1_labels has the unknown label 'z'; known labels: 'a', 'b', 'c'$"
    with pytest.raises(ValueError, match=message):
        F1(("z",)).for_labels(NAMES)
    with pytest.raises(AssertionError, match="the labels are not known yet"):
        F1(("a",)).value(np.ones((1, 1)), np.zeros(1, np.int32), np.ones(1))
