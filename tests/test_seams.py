"""Extension points: a custom potential and a custom trellis, in training and prediction.

Both estimators are trained with given scores, on a graph that is not a chain: each label depends on
the first one of its sequence. Results are compared with enumeration.
"""

from dataclasses import dataclass, replace
from itertools import pairwise, product
from operator import ne

import numpy as np
import pytest

import hedgerow
from hedgerow import LinearCRF, TreeCRF, persist
from hedgerow.encode import GivenParents
from hedgerow.labels.automaton import PatternArcs
from hedgerow.potentials import NodeTrees, PatternWeights, Potential
from hedgerow.raw_data import RawData
from hedgerow.trellis import Mixing, Trellis
from reference.trainings import saved

RNG = np.random.default_rng(5)
X = [RNG.normal(size=(n, 2)) for n in (1, 2, 3, 4, 4, 3, 2, 4)]
Y = [RNG.choice(["a", "b", "c"], len(x)).tolist() for x in X]
OTHERS = [RNG.normal(size=(3, 2)), RNG.normal(size=(1, 2))]


class Given(Potential):
    """Given scores: the first column is evidence for the first label, the second against it."""

    def prepare(self, sequences, n_threads):
        scores = sequences.dense[:, :1] * [1.5, 0.0, -0.5] - sequences.dense[:, 1:] * [1.0, 0, 0]

        def add(first, stop, nodes, edges):
            nodes += scores[sequences.offsets[first] : sequences.offsets[stop]]

        return add


@dataclass(frozen=True, eq=False)
class Star(Trellis):
    """Arc (j, k) leads from the first label j to a later label k; all is found by enumeration."""

    n_labels: int
    constraints = None

    n_patterns = property(lambda self: self.n_labels**2)
    arc_shape = property(lambda self: (self.n_labels, self.n_labels))
    pattern_arcs = property(
        lambda self: PatternArcs(
            np.arange(self.n_patterns + 1), np.arange(self.n_patterns, dtype=np.int32)
        )
    )

    def arc_scores(self, weights, forbidden=-np.inf):
        return weights.reshape(self.arc_shape).copy()

    def pattern_sums(self, arc_sums):
        return arc_sums.ravel().copy()

    def arcs_taken(self, codes, offsets, parents):
        first = np.repeat(codes[offsets[:-1]], np.diff(offsets))
        arcs = np.where((first >= 0) & (codes >= 0), first * self.n_labels + codes, -1)
        arcs[offsets[:-1]] = -1
        return arcs.astype(np.int32)

    def labellings(self, scores):
        """Number, place, all labellings of each sequence, their scores and probabilities."""
        for s, (begin, end) in enumerate(pairwise(scores.offsets)):
            codes = np.array(list(product(range(self.n_labels), repeat=end - begin)))
            sums = scores.nodes[np.arange(begin, end), codes].sum(axis=1)
            sums += scores.arcs[codes[:, :1], codes[:, 1:]].sum(axis=1)
            yield s, slice(begin, end), codes, sums, np.exp(sums - np.logaddexp.reduce(sums))

    def fill_posteriors(self, scores, labels, weights, out, n_threads):
        if out.arc_sums is not None:
            out.arc_sums[:] = 0.0
        for s, place, codes, sums, probs in self.labellings(scores):
            if out.log_z is not None:
                out.log_z[s] = np.logaddexp.reduce(sums)
            if out.log_likelihoods is not None:
                (own,) = np.flatnonzero((codes == labels[place]).all(axis=1))
                out.log_likelihoods[s] = np.log(probs[own])
            if out.marginals is not None:
                hits = codes[:, :, None] == np.arange(self.n_labels)
                out.marginals[place] = np.einsum("i,itk->tk", probs, hits)
            if out.arc_sums is not None:
                arcs = (codes[:, :1], codes[:, 1:])
                weight = 1.0 if weights is None else weights[s]
                np.add.at(out.arc_sums, arcs, weight * probs[:, None])

    def fill_viterbi(self, scores, codes, n_threads):
        for _, place, labellings, sums, _ in self.labellings(scores):
            codes[place] = labellings[sums.argmax()]

    def mixing(self, scores, arc_sums, weights, n_threads):
        lengths = np.diff(scores.offsets)
        gammas = np.repeat(2.0 * lengths, lengths).astype(np.float32)
        edges = gammas.copy()
        edges[scores.offsets[:-1]] = 0.0
        return Mixing(gammas, edges, None)

    def _leave_out(self, *_):
        raise NotImplementedError

    fill_weighted_posteriors = fill_tangents = fill_k_best = fill_samples = _leave_out


class PluggedLinear(LinearCRF):
    """LinearCRF with both."""

    def build_trellis(self, grammar):
        return Star(grammar.n_labels)

    def given_potentials(self):
        return (Given(),)


class PluggedTrees(TreeCRF):
    """TreeCRF with both."""

    build_trellis = PluggedLinear.build_trellis
    given_potentials = PluggedLinear.given_potentials


CRFS = {
    "linear": PluggedLinear(reg_lambda=0.1, tol=1e-9),
    "l1": PluggedLinear(reg_alpha=0.2, reg_lambda=0.1),
    "trees": PluggedTrees(n_rounds=10, min_child_weight=0.1),
    "first order": PluggedTrees(n_rounds=5, newton=False, min_child_weight=0),
    "exact": PluggedTrees(n_rounds=5, transition_step="exact"),
}


@pytest.fixture(scope="module", params=CRFS)
def crf(request):
    sets = {"own": (X, Y), "other": (X[:3], Y[:3])}
    return CRFS[request.param].fit(X, Y, eval_set=sets)


def enumerate_scores(crf, X):
    """Scores of all labellings of each sequence, from the model's potentials alone."""
    given = np.concatenate(X) @ [[1.5, 0.0, -0.5], [-1.0, 0.0, 0.0]]
    learnt = replace(crf.model_, potentials=crf.model_.potentials[1:])
    parents = GivenParents()
    sequences = learnt.read(RawData(X), group_column=None, parents=parents, name="CRF")
    (scores,) = learnt.scores(sequences, 1)
    weights = crf.model_.potential(PatternWeights).weights.reshape(3, 3)
    begin = 0
    for x in X:
        place = slice(begin, begin := begin + len(x))
        nodes = scores.nodes[place] + given[place]
        totals = {}
        for codes in product(range(3), repeat=len(x)):
            total = sum(nodes[t, k] for t, k in enumerate(codes))
            totals[codes] = total + sum(weights[codes[0], k] for k in codes[1:])
        yield totals


def enumerate_probs(crf, X):
    """Their probabilities."""
    for totals in enumerate_scores(crf, X):
        log_z = np.logaddexp.reduce(list(totals.values()))
        yield {codes: np.exp(total - log_z) for codes, total in totals.items()}


def codes_of(crf):
    """The training labels."""
    return [tuple(np.searchsorted(crf.classes_, labels).tolist()) for labels in Y]


def likelihood_loss(crf):
    """Negative log-likelihood of the training labels."""
    pairs = zip(enumerate_probs(crf, X), codes_of(crf), strict=True)
    return -sum(np.log(probs[own]) for probs, own in pairs)


def squares(crf):
    """Sum of all squared weights."""
    return np.sum(crf.weights()["weight"] ** 2) + np.sum(crf.patterns()["weight"] ** 2)


def test_predictions_equal_enumeration(crf):
    marginals = crf.predict_marginals(OTHERS)
    predicted = crf.predict(OTHERS, decode="viterbi")
    for found, labels, probs in zip(
        marginals, predicted, enumerate_probs(crf, OTHERS), strict=True
    ):
        expected = np.zeros(found.shape)
        for codes, prob in probs.items():
            expected[np.arange(len(codes)), codes] += prob
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        best = max(probs, key=probs.get)
        assert labels.tolist() == [crf.classes_[k] for k in best]


def test_the_training_loss_equals_enumeration(crf):
    loss, mean = likelihood_loss(crf), likelihood_loss(crf) / sum(map(len, X))
    if isinstance(crf, LinearCRF):
        sizes = [np.abs(table["weight"]).sum() for table in (crf.weights(), crf.patterns())]
        penalties = crf.reg_lambda / 2 * squares(crf) + crf.reg_alpha * sum(sizes)
        assert crf.loss_ == pytest.approx(loss + penalties, rel=1e-9)
    else:
        assert crf.loss_ == pytest.approx(mean, rel=1e-9)
    assert crf.history_["own_loss"][-1] == pytest.approx(mean, rel=1e-9)
    assert set(crf.history_) >= {"own_accuracy", "other_loss", "other_accuracy"}
    assert crf.history_["loss"][-1] < crf.history_["loss"][0]


def test_linear_weights_are_at_the_minimum():
    """Where the gradient of the enumerated loss, by differences, is zero."""
    crf = PluggedLinear(reg_lambda=0.1, tol=1e-9).fit(X, Y)
    patterns = crf.model_.pattern_weights

    def loss(place, step):
        patterns[place] += step
        value = likelihood_loss(crf) + crf.reg_lambda / 2 * squares(crf)
        patterns[place] -= step
        return value

    for place in range(len(patterns)):
        assert loss(place, 1e-4) - loss(place, -1e-4) == pytest.approx(0, abs=2e-6)


def test_a_margin_equals_enumeration():
    crf = PluggedLinear(objective="max_margin", reg_lambda=0.5).fit(X, Y)
    hinges = [
        max(score + sum(map(ne, codes, own)) for codes, score in scores.items()) - scores[own]
        for scores, own in zip(enumerate_scores(crf, X), codes_of(crf), strict=True)
    ]
    assert crf.loss_ == pytest.approx(sum(hinges) + 0.25 * squares(crf), rel=1e-9)


def test_model_files_keep_what_is_learnt(crf, tmp_path):
    data = saved(crf, tmp_path)
    same = type(crf).from_state(persist.read(data)[1])
    np.testing.assert_array_equal(same.predict_proba(OTHERS), crf.predict_proba(OTHERS))
    with pytest.raises(hedgerow.ModelFileError, match=r"holds a 'Plugged.*does not know"):
        hedgerow.load(data)


def test_a_potential_without_a_form_in_files_says_so():
    with pytest.raises(
        NotImplementedError, match="Given cannot be saved in a model file: it lacks"
    ):
        Given().pack()
    with pytest.raises(
        NotImplementedError, match="Given cannot be read from a model file: it lacks"
    ):
        Given.unpack(None, schema=None, index=None, grammar=None)


def test_a_potential_that_is_not_there():
    model = replace(PluggedLinear().fit(X, Y).model_, potentials=())
    with pytest.raises(LookupError, match="the model has no NodeTrees"):
        model.potential(NodeTrees)
