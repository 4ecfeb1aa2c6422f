"""What all objectives share: parts add up, evaluation agrees with training, slopes agree."""

from dataclasses import dataclass

import numpy as np
import pytest

from hedgerow.decoding import DECODERS
from hedgerow.labels import Labels
from hedgerow.labels.automaton import Automaton
from hedgerow.objectives import (
    F1,
    Accuracy,
    ExpectedAccuracy,
    LabelCosts,
    Likelihood,
    MaxMargin,
    OfMarginals,
    Pointwise,
    SoftmaxMargin,
    Targets,
)
from hedgerow.trellis import Scores, forward_backward, viterbi
from reference.scores import scores_of

OFFSETS = np.array([0, 3, 4, 9, 10])
CUTS = [slice(0, 1), slice(1, 3), slice(3, 4)]
OBJECTIVES = {
    "likelihood": Likelihood(),
    "pointwise": OfMarginals(Pointwise()),
    "accuracy": OfMarginals(Accuracy(4.0)),
    "expected accuracy": OfMarginals(ExpectedAccuracy()),
    "F1": OfMarginals(F1()),
    "max margin": MaxMargin(LabelCosts()),
    "softmax margin": SoftmaxMargin(LabelCosts(2.0)),
}


@dataclass
class Part:
    """Some sequences, scored beforehand."""

    given: Scores
    targets: Targets

    def scores(self):
        return self.given

    def empty_slopes(self):
        return np.empty_like(self.given.nodes)


@pytest.fixture(params=OBJECTIVES)
def objective(request):
    return OBJECTIVES[request.param].for_labels(Labels(np.arange(3)))


LABELS = ["known", "partial", "weighted", "partial, weighted", "positions weighted"]


@pytest.fixture(params=["chain", "edges", "automaton"])
def scores(request):
    rng = np.random.default_rng(5)
    nodes = rng.normal(size=(10, 3))
    if request.param == "automaton":
        automaton = Automaton.build(3, [(0, 1), (2, 0, 1), (1, 1)])
        return scores_of(nodes, rng.normal(size=automaton.n_arcs), OFFSETS, automaton=automaton)
    edges = rng.normal(size=(10, 3, 3)) if request.param == "edges" else None
    return scores_of(nodes, rng.normal(size=(3, 3)), OFFSETS, edges)


def make_targets(kind, scores, objective):
    codes = np.random.default_rng(6).integers(0, 3, 10).astype(np.int32)
    if "partial" in kind and not objective.needs_all_labels:
        codes[[1, 5, 9]] = -1
    weights = {}
    if kind == "positions weighted":
        weights = {"position_weights": np.random.default_rng(7).uniform(0, 3, 10)}
    elif "weighted" in kind:
        weights = {"sequence_weights": np.array([0.5, 2.0, 1.0, 3.0])}
    return Targets(OFFSETS, codes, scores.trellis, **weights)


def test_parts_add_up(objective, scores):
    for kind in LABELS:
        check_parts(objective, scores, make_targets(kind, scores, objective))


def check_parts(objective, scores, targets):
    whole = objective.measure(scores, targets, n_threads=1)
    parts = [Part(scores.part(cut), targets.part(cut)) for cut in CUTS]
    measured = objective.measure_parts(parts, targets, n_threads=1)
    found = [(part, each.loss, each.slopes(part.empty_slopes())) for part, each in measured]
    assert [part for part, _, _ in found] == parts
    assert sum(loss for _, loss, _ in found) == pytest.approx(whole.loss, rel=1e-12)
    arcs, slopes = whole.arc_slopes(), whole.slopes()
    np.testing.assert_array_equal(slopes.arcs, arcs)
    nodes = np.concatenate([part.nodes for _, _, part in found])
    np.testing.assert_allclose(nodes, slopes.nodes, rtol=1e-10, atol=1e-12)
    sums = sum(part.arcs for _, _, part in found)
    np.testing.assert_allclose(sums, slopes.arcs, rtol=1e-10, atol=1e-12)
    if scores.edges is None:
        assert slopes.edges is None
    else:
        edges = np.concatenate([part.edges for _, _, part in found])
        np.testing.assert_allclose(edges, slopes.edges, rtol=1e-10, atol=1e-12)


def test_evaluation_agrees_with_training(objective, scores):
    for kind in LABELS[:-1]:  # what is evaluated never has weights of positions
        for decode in DECODERS:
            check_evaluation(objective, scores, make_targets(kind, scores, objective), decode)


def check_evaluation(objective, scores, targets, decode):
    expected = objective.measure(scores, targets, n_threads=1)
    parts = (scores.part(cut) for cut in CUTS)
    loss, codes = objective.evaluate(parts, targets, decode=decode, n_threads=1)
    assert loss == pytest.approx(expected.loss, rel=1e-12)
    if decode == "viterbi":
        assert codes.tolist() == viterbi(scores, n_threads=1).tolist()
    else:
        marginals = forward_backward(scores).marginals
        assert codes.tolist() == marginals.argmax(axis=1).tolist()
        if not objective.adds_costs:
            np.testing.assert_allclose(expected.probabilities(), marginals, rtol=1e-12)


def test_slopes_take_the_place_of_the_marginals_once(scores):
    targets = Targets(OFFSETS, np.zeros(10, np.int32), scores.trellis)
    measured = Likelihood().measure(scores, targets, n_threads=1)
    marginals = measured.probabilities()
    assert measured.slopes().nodes is marginals
    with pytest.raises(AssertionError, match="slopes have overwritten the marginals"):
        measured.probabilities()
    with pytest.raises(AssertionError, match="slopes may be called only once"):
        measured.slopes()
