"""Parts of a TreeCRF: boosters as in `fit`, and all arrays of a trained model."""

import numpy as np

from hedgerow.raw_data import RawData
from hedgerow.training.stopping import Stopping
from hedgerow.training.training import Training


def make_booster(crf, X, y, sample_weight=None):
    """The booster of a training run before its first round."""
    trainer = crf._trainer(None)
    raw = RawData(X, y, sample_weight=sample_weight)
    training = Training(crf, trainer, Stopping())
    trainer.learn(training.read(raw))
    return trainer.begin()


def advance(booster):
    """Do a round; returns its trees, or None if there was nothing to learn."""
    return booster.rounds.parts[-1].trees if booster.advance() else None


def assert_same_forest(first, second):
    for name, array in first.arrays().items():
        np.testing.assert_array_equal(array, getattr(second, name), err_msg=name)


def assert_same_model(first, second):
    """The same trees and weights, to the last bit."""
    assert_same_forest(first._trees.forest, second._trees.forest)
    np.testing.assert_array_equal(first.model_.pattern_weights, second.model_.pattern_weights)
    assert first.label_patterns_ == second.label_patterns_
    assert first.classes_.tolist() == second.classes_.tolist()


def tree_of(crf, number):
    """One tree as nested tuples (column, offset, left, right), leaves as numbers."""
    forest = crf._trees.forest
    first = int(forest.tree_offsets[number])

    def node(at):
        if forest.columns[at] < 0:
            return float(forest.tree_weights[number] * forest.values[at])
        left = first + int(forest.lefts[at])
        return int(forest.columns[at]), int(forest.offsets[at]), node(left), node(left + 1)

    return node(first)
