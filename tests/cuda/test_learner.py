"""Trees that are grown on a device equal those of the compiled core, bit for bit."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from hedgerow import _core
from hedgerow.boosting.curvature import MODEST
from hedgerow.cuda import learner as learners
from hedgerow.cuda.bins import NODE, DeviceBins
from hedgerow.cuda.feature_choice import derive_keys
from hedgerow.cuda.layout import Layout
from hedgerow.cuda.learner import DeviceLearner, TreeInputs
from hedgerow.encode import encode
from hedgerow.trees import learner as cpu_learners
from hedgerow.trees.columns import Columns
from hedgerow.trees.learner import GrowthRules, TreeLearner
from hedgerow.trees.sampling import Purpose, Sampling, draw_key

RATE = 0.3
LENGTHS = [40, 3, 0, 90, 1, 27, 60, 11]


class Case:
    """Columns of some sequences, and derivatives of a loss at them."""

    def __init__(self, X, n_labels=3, seed=0, max_bins=255, lengths=LENGTHS, weights=None):
        rng = np.random.default_rng(seed)
        self.sequences = encode(X, np.repeat(np.arange(len(lengths)), lengths))
        self.offsets = self.sequences.offsets
        self.columns = Columns.learn(self.sequences, None, max_bins, 1)
        n_positions = self.sequences.n_positions
        self.codes = rng.integers(n_labels, size=n_positions).astype(np.int32)
        logits = 2.0 * rng.normal(size=(n_positions, n_labels))
        self.marginals = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        if n_labels == 2:
            self.marginals[:, 0] = 1.0 - self.marginals[:, 1]
        self.gammas = rng.uniform(2.0, 30.0, size=n_positions).astype(np.float32)
        self.weights = weights

    @property
    def n_labels(self):
        return self.marginals.shape[1]

    def rules(self, **changed):
        return GrowthRules(
            **{
                "max_leaves": 64,
                "max_depth": 6,
                "min_child_weight": 1.0,
                "min_split_gain": 0.0,
                "reg_lambda": 1.0,
                "max_step": 1.0,
                "learning_rate": RATE,
            }
            | changed
        )

    def on_cpu(self, rules, sampling, window):
        bins = self.columns.bins(self.sequences, 1)
        data = _core.TreeData(bins, *window)
        learner = TreeLearner(
            data,
            rules,
            sampling,
            offsets=self.offsets,
            codes=self.codes,
            scales=self.weights,
            n_threads=1,
            opposite=self.n_labels == 2,
        )
        curvatures = np.empty(self.marginals.shape, np.float32)
        _core.fill_curvatures(
            self.marginals, self.gammas, self.weights, RATE, MODEST, curvatures, 1
        )
        gradients = self.marginals.copy()
        if self.weights is not None:
            gradients *= self.weights[:, None]
        _core.subtract_observed(gradients, self.codes, self.weights, 1)
        return learner.grow(gradients, curvatures, 5)

    def on_device(self, device, rules, sampling, window):
        layout = Layout.plan(self.offsets, self.n_labels, device.n_multiprocessors)
        bins = DeviceBins(device, layout, self.columns, self.sequences, self.n_labels, 1)
        learner = DeviceLearner(
            device,
            bins,
            self.columns,
            range(-window[0], window[1] + 1),
            rules,
            sampling,
            n_outputs=self.n_labels,
            scales=self.weights,
            rate=RATE,
            modest=MODEST,
            opposite=self.n_labels == 2,
        )

        def put(array, fill=0):
            by_row = np.full((layout.n_rows, *array.shape[1:]), fill, array.dtype)
            by_row[layout.rows] = array
            return device.upload(by_row)

        labels = put(self.codes.astype(np.int8), -1)
        inputs = TreeInputs(put(self.marginals), put(self.gammas), labels)
        forest = learner.grow(inputs, 5)
        self.check_scores(device, learner, layout, forest)
        return forest

    def check_scores(self, device, learner, layout, forest):
        """Walking trees gives the scores of the core."""
        scores = np.random.default_rng(1).normal(size=self.marginals.shape)
        expected, bins = np.empty_like(scores), self.columns.bins(self.sequences, 1)
        by_row = np.zeros((layout.n_rows, self.n_labels))
        by_row[layout.rows] = scores
        for trees in (forest.scaled(0.5), forest.scaled(1.0).scaled(2.0), _rebuild(forest)):
            trees.add_scores(bins, scores, expected, 1)
            out = device.zeros(by_row.shape, np.float64)
            learner.add(trees, device.upload(by_row), out)
            np.testing.assert_array_equal(device.download(out)[layout.rows], expected)

    def check(self, device, sampling=None, window=(0, 0), **rules):
        sampling = Sampling(0.05, seed=3) if sampling is None else sampling
        rules = self.rules(**rules)
        expected = self.on_cpu(rules, sampling, window).arrays()
        found = self.on_device(device, rules, sampling, window).arrays()
        assert len(expected["columns"]) > 3 * self.n_labels
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)


def _rebuild(forest):
    """Equal trees that are not on the device."""
    return _core.Forest(forest.arrays(), forest.n_outputs)


def draw_numbers(rng, n_columns, missing=0.0):
    X = rng.normal(size=(sum(LENGTHS), n_columns)).round(1)
    X[rng.random(X.shape) < missing] = np.nan
    return X


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("growth", [{}, {"max_leaves": 9}, {"max_leaves": 6, "max_depth": 100}])
def test_numbers(device, growth, missing):
    X = draw_numbers(np.random.default_rng(0), 6, missing)
    Case(X).check(device, **growth)


@pytest.mark.parametrize("n_labels", [2, 9])
def test_other_numbers_of_labels(device, n_labels):
    X = draw_numbers(np.random.default_rng(1), 5, 0.1)
    Case(X, n_labels).check(device, max_leaves=12, max_depth=5)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_windows(device, missing):
    X = draw_numbers(np.random.default_rng(2), 3, missing)
    Case(X, max_bins=12).check(device, window=(2, 3), max_leaves=20)


@pytest.mark.parametrize("window", [(0, 0), (2, 1)])
def test_columns_of_two_bins(device, window):
    X = (draw_numbers(np.random.default_rng(2), 130) > 0.5).astype(float)
    X[:, 5] = 1.0
    Case(X).check(device, window=window, max_depth=3)


def test_trees_that_do_not_fit_shared_memory(device, monkeypatch):
    monkeypatch.setattr(device, "shared_bytes", 1 << 11)
    Case(draw_numbers(np.random.default_rng(2), 3), max_bins=20).check(device)


def test_columns_in_many_tiles(device, monkeypatch):
    monkeypatch.setattr(learners, "TILE_BYTES", 500)
    X = draw_numbers(np.random.default_rng(3), 11)
    Case(X).check(device)


def test_sums_of_more_than_32_bits_give_nearly_the_same_trees(device, monkeypatch):
    X = draw_numbers(np.random.default_rng(4), 5, 0.1)
    case, sampling = Case(X), Sampling(0.05)
    few = case.on_device(device, case.rules(), sampling, (0, 0))
    for module in (learners, cpu_learners):
        monkeypatch.setattr(module, "count_bits", lambda n: (34, 35))
    case.check(device)
    many = case.on_device(device, case.rules(), sampling, (0, 0))
    np.testing.assert_array_equal(few.columns, many.columns)
    np.testing.assert_allclose(few.values, many.values, rtol=1e-5)


def test_categories(device):
    rng = np.random.default_rng(5)
    n = sum(LENGTHS)
    words = rng.choice([*"abcdefghij", None], size=(n, 2))
    frame = pd.DataFrame({"u": words[:, 0], "v": words[:, 1], "x": rng.normal(size=n)})
    Case(frame, seed=1).check(device, window=(1, 0))


def test_attributes(device):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(sum(LENGTHS), 7)).round(1)
    X[rng.random(X.shape) < 0.7] = 0.0
    Case(scipy.sparse.csr_array(X), max_bins=9).check(device)
    Case(scipy.sparse.csr_array(X), max_bins=9).check(device, window=(1, 1), max_leaves=16)


def test_weights(device):
    rng = np.random.default_rng(7)
    weights = np.repeat(rng.choice([0.0, 0.5, 2.0], size=len(LENGTHS)), LENGTHS)
    weights[:40] = 1.5
    Case(draw_numbers(rng, 4), weights=weights).check(device)


@pytest.mark.parametrize("weight", ["unbiased", "none", "balanced"])
def test_stratified_examples(device, weight):
    X = draw_numbers(np.random.default_rng(8), 4)
    Case(X).check(device, Sampling(0.01, 1.0, 0.7, seed=3, negative_weight=weight))


def test_a_share_of_the_sequences_and_columns(device):
    X = draw_numbers(np.random.default_rng(9), 8)
    Case(X).check(device, Sampling(0.01, 0.7, seed=4), colsample_bytree=0.4)


@pytest.mark.parametrize("growth", [{"max_depth": 2}, {"max_depth": 2, "max_leaves": 3}])
def test_a_share_of_the_columns_for_each_node(device, growth):
    X = draw_numbers(np.random.default_rng(9), 8)
    Case(X).check(device, window=(1, 0), colsample_bytree=0.6, colsample_bynode=0.3, **growth)


def test_columns_of_a_node_follow_from_its_place(device):
    case, sampling = Case(draw_numbers(np.random.default_rng(9), 8)), Sampling(0.01, seed=3)
    rules = case.rules(colsample_bynode=0.1)
    forest = case.on_device(device, rules, sampling, (0, 0)).arrays()
    key = draw_key(sampling.seed, 5, Purpose.COLUMNS)
    n_deep = 0
    for tree, root in enumerate(forest["tree_offsets"][:-1]):
        of_tree = derive(derive(key, tree), 2)
        nodes = [(root, 0)]
        for node, place in nodes:
            if forest["columns"][node] < 0:
                continue
            n_deep += place > 6
            draws = [derive(derive(of_tree, place), column) for column in range(8)]
            assert forest["columns"][node] == np.argmin(draws)
            left = root + forest["lefts"][node]
            nodes += [(left, 2 * place + 1), (left + 1, 2 * place + 2)]
    assert n_deep > 10


def derive(key, purpose):
    return int(derive_keys(np.uint64(key), np.array([purpose], np.uint64))[0])


def test_trees_of_one_leaf(device):
    X = draw_numbers(np.random.default_rng(9), 2)
    case, sampling = Case(X), Sampling(0.01)
    rules = case.rules(max_leaves=1)
    expected = case.on_cpu(rules, sampling, (0, 0)).arrays()
    found = case.on_device(device, rules, sampling, (0, 0)).arrays()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_nodes_that_are_no_trees():
    with pytest.raises(ValueError, match="nodes must have the size of a node"):
        _core.read_device_forest(np.zeros((1, 3, 63), np.uint8), True)
    nodes = np.zeros((1, 3), NODE)
    with pytest.raises(ValueError, match="children must come after their parent"):
        _core.read_device_forest(nodes.view(np.uint8).reshape(1, 3, 64), True)
