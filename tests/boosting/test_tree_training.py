"""Training of trees on the input: proposals that are rejected."""

import numpy as np

from hedgerow import TreeCRF
from reference.boosting import assert_same_forest, make_booster
from reference.linear import make_data

X, Y = make_data(n_sequences=8, longest=6, seed=2)


def make(**parameters):
    return make_booster(TreeCRF(n_jobs=1, n_rounds=6, **parameters), X, Y)


def test_rejected_trees_leave_no_trace():
    booster, undisturbed = make(), make()
    trees = booster.trees
    for _ in range(3):
        assert booster.advance()
        assert undisturbed.advance()
    assert trees.proposed is trees.scores  # there is one array as long as that is enough
    before = trees.scores.nodes.copy()
    for _ in range(2):
        trees.propose(booster.rounds.parts[-1].trees)
        trees.reject(booster.rounds.parts)
        assert trees.proposed is not trees.scores
        np.testing.assert_array_equal(trees.scores.nodes, before)
    while undisturbed.advance():
        assert booster.advance()
    assert_same_forest(booster.rounds.kept_forest(), undisturbed.rounds.kept_forest())
    np.testing.assert_array_equal(trees.scores.nodes, undisturbed.trees.scores.nodes)


def test_searched_steps_need_two_arrays():
    trees = make(line_search=True).trees
    assert trees.proposed is not trees.scores
