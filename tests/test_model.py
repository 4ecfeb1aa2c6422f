"""Models: potentials add up, whatever they are, and every answer comes from their scores."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from hedgerow.labels import Grammar, Patterns
from hedgerow.potentials import NodeTrees, PatternWeights, Potential
from hedgerow.predictor import read_inputs
from hedgerow.sequences import cut_runs
from hedgerow.trellis import build_trellis
from reference.automata import PatternChain, enumerate_patterns
from reference.linear import make_data

X, Y = make_data(n_sequences=6, longest=4, seed=3)
CRFS = {
    "linear": LinearCRF(max_iter=5, tol=0),
    "edges": LinearCRF(max_iter=5, tol=0, transition_attributes=True),
    "trees": TreeCRF(n_rounds=3, order=2),
}


@dataclass(frozen=True, eq=False)
class GivenScores(Potential):
    """Scores from outside, (N, K), for sequences that are known beforehand."""

    nodes: np.ndarray
    size: int = 1

    def batch_positions(self, n_labels):
        return self.size

    def prepare(self, sequences, n_threads):
        def add(first, stop, nodes, edges):
            nodes += self.nodes[sequences.offsets[first] : sequences.offsets[stop]]

        return add


@pytest.fixture(scope="module", params=CRFS)
def crf(request):
    return CRFS[request.param].fit(X, Y)


def all_scores(model, sequences):
    parts = list(model.scores(sequences, 1))
    return [np.concatenate([part.nodes for part in parts]), parts[0].arcs]


def test_potentials_add_up(crf):
    sequences = read_inputs(crf, X, None).sequences
    given = np.random.default_rng(0).normal(size=(sequences.n_positions, 3))
    more = np.arange(len(crf.model_.grammar.patterns), dtype=float)
    both = replace(
        crf.model_,
        potentials=(*crf.model_.potentials, GivenScores(given), PatternWeights(more)),
    )
    nodes, arcs = all_scores(crf.model_, sequences)
    found_nodes, found_arcs = all_scores(both, sequences)
    np.testing.assert_allclose(found_nodes, nodes + given, rtol=1e-12)
    np.testing.assert_allclose(found_arcs, arcs + crf.model_.trellis.arc_scores(more), rtol=1e-12)


def test_the_answers_of_scores_from_outside_equal_enumeration(crf):
    patterns = Patterns.of([(0, 1), (2, 0, 1)])
    grammar = Grammar(3, patterns)
    inputs = read_inputs(crf, X, None)
    rng = np.random.default_rng(1)
    nodes, weights = rng.normal(size=(inputs.sequences.n_positions, 3)), np.array([1.5, -2.0])
    model = replace(
        crf.model_,
        grammar=grammar,
        trellis=build_trellis(grammar),
        potentials=(GivenScores(nodes, 3), PatternWeights(weights)),
    )
    marginals = model.marginals(inputs, n_threads=1)
    predicted = model.predict(inputs, "viterbi", n_threads=1)
    log_probs = model.log_likelihoods(inputs, predicted, n_threads=1)
    for s, (first, stop) in enumerate(cut_runs(inputs.sequences.offsets, 1)):
        place = slice(*inputs.sequences.offsets[[first, stop]])
        chain = PatternChain(nodes[place], list(patterns), weights)
        exact = enumerate_patterns(chain)
        np.testing.assert_allclose(marginals[place], exact.marginals, rtol=1e-10)
        best = max(exact.log_probs.values())
        assert log_probs[s] == pytest.approx(best, rel=1e-10)
    explanation = model.explain(read_inputs(crf, X[:1], None), 1, None, None, n_threads=1)
    assert len(explanation.features["feature"]) == 0


def test_a_potential_that_is_not_there(crf):
    model = replace(crf.model_, potentials=())
    with pytest.raises(LookupError, match="the model has no NodeTrees"):
        model.potential(NodeTrees)


def test_the_representation_is_short(crf):
    assert len(repr(crf.model_)) < 200
