"""The answers of CRFsuite, from its own weights and on the same data."""

import numpy as np
import pycrfsuite
import pytest

from hedgerow import LinearCRF
from hedgerow.trellis import forward_backward, log_likelihood, viterbi
from reference.scores import scores_of

LABELS = ["A", "B", "C"]
C2 = 0.3


def make_sentences(n_sentences=40, seed=0):
    """Words that hint at their labels, and labels that like to repeat."""
    rng = np.random.default_rng(seed)
    sentences, tags = [], []
    for _ in range(n_sentences):
        items, labels, state = [], [], rng.integers(3)
        for _ in range(rng.integers(1, 9)):
            state = state if rng.random() < 0.6 else rng.integers(3)
            hint = state if rng.random() < 0.7 else rng.integers(3)
            # CRFsuite leaves out what has a negative sum over the data, so sizes are positive.
            size = float(rng.exponential())
            items.append({"bias": 1.0, f"word={hint}{rng.integers(4)}": 1.0, "size": size})
            labels.append(LABELS[state])
        sentences.append(items)
        tags.append(labels)
    return sentences, tags


def train_crfsuite(path, sentences, tags, **parameters):
    """Write a model file; returns what the trainer says about it."""
    trainer = pycrfsuite.Trainer(verbose=False)
    for items, labels in zip(sentences, tags, strict=True):
        trainer.append(pycrfsuite.ItemSequence(items), labels)
    trainer.select("lbfgs")
    options = {f"feature.{name}": value for name, value in parameters.items()}
    trainer.set_params({"c1": 0.0, "c2": C2, "epsilon": 1e-9, "delta": 1e-9, **options})
    trainer.train(path)
    return trainer.logparser


@pytest.fixture(scope="module")
def crfsuite(tmp_path_factory):
    """A trained tagger, and the loss that its trainer ended with."""
    path = str(tmp_path_factory.mktemp("crfsuite") / "model")
    said = train_crfsuite(path, *make_sentences(), possible_states=True, possible_transitions=True)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    yield tagger, said.last_iteration["loss"]
    tagger.close()


def potentials_of(tagger, items):
    """Potentials from the weights that the model file names."""
    info = tagger.info()
    nodes = [
        [
            sum(value * info.state_features.get((name, label), 0.0) for name, value in item.items())
            for label in LABELS
        ]
        for item in items
    ]
    arcs = [[info.transitions[before, label] for label in LABELS] for before in LABELS]
    return scores_of(np.array(nodes), np.array(arcs), np.array([0, len(items)]))


def test_the_trellis_answers_as_crfsuite_does(crfsuite):
    tagger, _ = crfsuite
    rng = np.random.default_rng(1)
    for items in make_sentences(n_sentences=15, seed=2)[0]:
        potentials = potentials_of(tagger, items)
        tagger.set(pycrfsuite.ItemSequence(items))
        marginals = forward_backward(potentials).marginals
        theirs = [[tagger.marginal(label, t) for label in LABELS] for t in range(len(items))]
        # The model file can only be read with the six digits that it is printed with.
        np.testing.assert_allclose(marginals, theirs, atol=1e-5)
        codes = rng.integers(0, 3, len(items))
        log_prob = log_likelihood(potentials, codes)[0]
        assert np.exp(log_prob) == pytest.approx(
            tagger.probability([LABELS[code] for code in codes]), rel=1e-4
        )
        assert [LABELS[code] for code in viterbi(potentials)] == tagger.tag()


def without_bias(sentences):
    """The label's own weight, which LinearCRF has anyway, takes the place of "bias"."""
    return [[{n: v for n, v in item.items() if n != "bias"} for item in s] for s in sentences]


def test_linear_crf_finds_the_minimum_that_crfsuite_finds(crfsuite):
    tagger, loss = crfsuite
    sentences, tags = make_sentences()
    crf = LinearCRF(reg_lambda=2 * C2, all_pairs=True).fit(without_bias(sentences), tags)
    assert crf.loss_ == pytest.approx(loss, rel=1e-3)
    fine = LinearCRF(reg_lambda=2 * C2, all_pairs=True, tol=1e-10)
    fine.fit(without_bias(sentences), tags)
    assert fine.loss_ <= loss + 1e-5
    table = fine.weights()
    info = tagger.info()
    for name, label, weight in zip(*table.values(), strict=True):
        theirs = info.state_features.get((name.replace("(bias)", "bias"), label), 0.0)
        assert weight == pytest.approx(theirs, abs=1e-3)
    for before, label, weight in zip(*fine.transition_weights().values(), strict=True):
        assert weight == pytest.approx(info.transitions[before, label], abs=1e-3)


def test_linear_crf_predicts_what_crfsuite_predicts(crfsuite):
    tagger, _ = crfsuite
    sentences, tags = make_sentences()
    crf = LinearCRF(reg_lambda=2 * C2, all_pairs=True, tol=1e-10)
    crf.fit(without_bias(sentences), tags)
    new = make_sentences(n_sentences=30, seed=3)[0]
    for labels, items in zip(crf.predict(without_bias(new), decode="viterbi"), new, strict=True):
        assert labels.tolist() == tagger.tag(pycrfsuite.ItemSequence(items))
