"""The tree learner: gradients and curvatures in, the trees of a round out."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import _core
from hedgerow.trees.learner import TreeLearner
from hedgerow.trees.sampling import Purpose, Sampling, draw_key, select_positions
from reference.boosting import assert_same_forest
from reference.tables import make_table, windows
from reference.tree_walks import read_trees
from reference.trees import Rules, grow_tree

TABLE = make_table(
    ["few, some missing", "many"], ["there or not"], [5, 9, 1, 12, 8], np.random.default_rng(0)
)
N = TABLE.n_positions


def make_learner(sampling=None, window=(0, 0), n_threads=1, rules=None, **more):
    rules = Rules(max_leaves=6) if rules is None else rules
    return TreeLearner(
        _core.TreeData(TABLE.to_kernel(), *window),
        _core.GrowthRules(**vars(rules)),
        Sampling(-1.0) if sampling is None else sampling,
        offsets=TABLE.offsets,
        n_threads=n_threads,
        **more,
    )


def draw_derivatives(rng, n_outputs=3):
    return rng.normal(size=(N, n_outputs)), rng.random((N, n_outputs)).astype(np.float32)


@settings(deadline=None, derandomize=True, max_examples=20)
@given(st.integers(0, 2**32), windows, st.booleans())
def test_any_loss_will_do(seed, window, alike):
    rng = np.random.default_rng(seed)
    gradients, curvatures = draw_derivatives(rng)
    curvatures = curvatures[:, :1].copy() if alike else curvatures
    scales = rng.choice([0.0, 1.0, 2.0], N)
    learner = make_learner(Sampling(0.25), window, scales=scales)
    forest = learner.grow(gradients, curvatures, 0)
    assert (forest.n_outputs, forest.n_rounds) == (3, 1)
    for k, tree in enumerate(read_trees(forest.arrays())):
        kept = (np.abs(gradients[:, k]) > 0.25 * scales) & (scales > 0)
        g, h = gradients[kept, k].astype(np.float32), curvatures[kept, 0 if alike else k]
        naive = grow_tree(TABLE, window, np.flatnonzero(kept), g, h, Rules(max_leaves=6))
        assert sorted(n.value for n in tree) == sorted(n.value for n in naive)
        assert sorted(n.gain for n in tree) == sorted(n.gain for n in naive)


def test_least_squares_in_one_round():
    # Half the squared error, from scores of 0: gradients -y, curvatures 1.
    y = np.where(TABLE.bins[:, 1] > np.median(TABLE.bins[:, 1]), 3.0, -1.0)[:, None]
    rules = Rules(max_leaves=2, reg_lambda=0.0)
    forest = make_learner(rules=rules).grow(-y, np.ones((N, 1), np.float32), 0)
    out = np.zeros((N, 1))
    forest.add_scores(TABLE.to_kernel(), out, out, 1)
    np.testing.assert_allclose(out, y)


@pytest.mark.parametrize("sampling", [Sampling(-1.0, subsample=0.6), Sampling(0.0, 0.6, 1.0, 7)])
def test_draws_depend_on_the_round_and_nothing_else(sampling):
    gradients, curvatures = draw_derivatives(np.random.default_rng(0))
    codes = np.random.default_rng(1).integers(-1, 3, N).astype(np.int32)
    first, again, threads = (make_learner(sampling, codes=codes, n_threads=n) for n in (1, 1, 3))
    trees = [first.grow(gradients, curvatures, number) for number in range(3)]
    for number in (2, 0, 1):
        assert_same_forest(again.grow(gradients, curvatures, number), trees[number])
        assert_same_forest(threads.grow(gradients, curvatures, number), trees[number])
    assert trees[0].weights.tolist() != trees[1].weights.tolist()
    selected = select_positions(TABLE.offsets, 0.6, draw_key(sampling.seed, 0, Purpose.SEQUENCES))
    zeroed = np.where(selected[:, None] != 0, 1.0, 0.0)
    plain = Sampling(0.0, 1.0, sampling.negative_ratio, sampling.seed)
    chosen = make_learner(plain, codes=codes).grow(zeroed * gradients, curvatures, 0)
    assert_same_forest(chosen, trees[0])


def test_columns_are_drawn_anew_in_every_round():
    gradients, curvatures = draw_derivatives(np.random.default_rng(0), 1)
    learner = make_learner()
    rules = partial(_core.GrowthRules, **vars(Rules(max_leaves=2, reg_lambda=0.0)))
    learner.rules = rules(colsample_bytree=0.4)
    roots = {int(learner.grow(gradients, curvatures, r).columns[0]) for r in range(20)}
    assert len(roots) > 1


def test_outputs_with_opposite_gradients_share_their_splits():
    gradients, curvatures = draw_derivatives(np.random.default_rng(0), 1)
    both = np.hstack([gradients, -gradients]), np.hstack([curvatures, curvatures])
    directions = np.array([[1, 0, 0], [-1, 0, 0]], np.int8)
    rules = _core.ColumnRules(n_columns=3, directions=directions)
    for more in ({}, {"column_rules": rules}):
        once = make_learner(Sampling(0.25), opposite=True, **more).grow(*both, 0)
        twice = make_learner(Sampling(0.25), **more).grow(*both, 0)
        assert_same_forest(once, twice)
    codes = (gradients[:, 0] > 0).astype(np.int32)
    drawn = Sampling(0.25, negative_ratio=0.5)
    once = make_learner(drawn, opposite=True, codes=codes).grow(*both, 0)
    assert_same_forest(once, make_learner(drawn, codes=codes).grow(*both, 0))


def test_opposite_outputs_are_two():
    gradients, curvatures = draw_derivatives(np.random.default_rng(0))
    with pytest.raises(ValueError, match="opposite outputs need exactly two outputs"):
        make_learner(opposite=True).grow(gradients, curvatures, 0)
