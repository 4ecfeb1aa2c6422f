"""Training of trees that split on previous labels: proposals that are rejected."""

import numpy as np
import pytest

from hedgerow import TreeCRF
from reference.boosting import assert_same_forest, make_booster
from reference.linear import make_data

X, Y = make_data(n_sequences=8, longest=6, seed=2)


def make(**parameters):
    return make_booster(TreeCRF(transitions="trees", n_jobs=1, n_rounds=6, **parameters), X, Y)


@pytest.mark.parametrize("order", [1, 2])
def test_rejected_trees_leave_no_trace(order):
    booster, undisturbed = make(order=order), make(order=order)
    trees = booster.trees
    for _ in range(3):
        assert booster.advance()
        assert undisturbed.advance()
    assert (
        trees.proposed.edges is trees.scores.edges
    )  # there is one array as long as that is enough
    before = [array.copy() for array in trees.scores.arrays]
    for _ in range(2):
        trees.propose(booster.rounds.parts[-1].trees)
        trees.reject(booster.rounds.parts)
        assert trees.proposed.edges is not trees.scores.edges
        for array, kept in zip(trees.scores.arrays, before, strict=True):
            np.testing.assert_array_equal(array, kept)
    while undisturbed.advance():
        assert booster.advance()
    assert_same_forest(booster.rounds.kept_forest(), undisturbed.rounds.kept_forest())
    for array, other in zip(
        booster.trees.scores.arrays, undisturbed.trees.scores.arrays, strict=True
    ):
        np.testing.assert_array_equal(array, other)


def test_searched_steps_need_two_arrays():
    trees = make(line_search=True).trees
    assert trees.proposed.edges is not trees.scores.edges
