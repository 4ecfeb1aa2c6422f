"""The loss is the one that the documentation defines, and its gradient is right."""

import itertools

import numpy as np
import pytest

from hedgerow import LinearCRF
from hedgerow.linear.loss import LinearLoss
from hedgerow.linear.weights import LinearWeights
from reference.linear import NaiveModel, make_data, to_dicts

KINDS = pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"all_pairs": True},
        {"transition_attributes": True},
        {"transition_attributes": True, "all_pairs": True},
        {"class_weight": {"a": 3.0, "c": 0.5}},
        {"class_weight": "balanced", "transition_attributes": True},
    ],
    ids=lambda parameters: "-".join(parameters) or "plain",
)
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["equal", "sample_weight"])


def make_weights(weighted, n_sequences):
    return np.linspace(0, 2, n_sequences) if weighted else None


def position_weights(crf, y, sample_weight):
    """Weight of every position, by its label and its sequence."""
    n_positions = sum(map(len, y))
    counts = {label: sum(labels.count(label) for labels in y) for label in "abc"}
    by_label = dict.fromkeys("abc", 1.0)
    if crf.class_weight == "balanced":
        by_label = {label: n_positions / (3 * count) for label, count in counts.items()}
    elif crf.class_weight is not None:
        by_label |= crf.class_weight
    return [
        [weight * by_label[label] for label in labels]
        for labels, weight in zip(y, sample_weight, strict=True)
    ]


@KINDS
@WEIGHTED
def test_the_loss_is_the_one_defined(parameters, weighted):
    X, y = make_data()
    sample_weight = make_weights(weighted, len(X))
    crf = LinearCRF(reg_lambda=0.7, **parameters).fit(X, y, sample_weight)
    naive = NaiveModel(crf)
    weights = position_weights(crf, y, np.ones(len(X)) if sample_weight is None else sample_weight)
    likelihood = sum(map(naive.log_likelihood, to_dicts(X), y, weights))
    assert crf.loss_ == pytest.approx(naive.penalty(0.7, 0) - likelihood, rel=1e-9)


@pytest.mark.parametrize("max_iter", [2, 1000])
@pytest.mark.parametrize("edges", [False, True])
def test_the_loss_with_both_penalties_is_the_one_defined(edges, max_iter):
    X, y = make_data()
    crf = LinearCRF(
        reg_lambda=0.3, reg_alpha=0.4, transition_attributes=edges, max_iter=max_iter, tol=0
    ).fit(X, y)
    naive = NaiveModel(crf)
    likelihood = sum(map(naive.log_likelihood, to_dicts(X), y))
    assert crf.loss_ == pytest.approx(naive.penalty(0.3, 0.4) - likelihood, rel=1e-9)


@KINDS
def test_likelihoods_and_marginals_equal_enumeration(parameters):
    X, y = make_data(seed=1)
    crf = LinearCRF(**parameters).fit(X, y)
    naive = NaiveModel(crf)
    expected = list(map(naive.log_likelihood, to_dicts(X), y))
    np.testing.assert_allclose(crf.log_likelihood(X, y), expected, rtol=1e-9, atol=1e-12)
    for found, positions in zip(crf.predict_marginals(X), to_dicts(X), strict=True):
        np.testing.assert_allclose(found, naive.marginals(positions), rtol=1e-9)


def test_loss_of_a_model_worked_by_hand():
    # One sequence of one position, two labels, no attributes but the label's own weight: with w on
    # the right label and -w on the other the loss is log(1 + exp(-2 w)) + lambda w^2, least where
    # 2 / (1 + exp(2 w)) = 2 lambda w; for lambda = 1 / (1 + e) that is w = 1/2.
    reg_lambda = 2 / (1 + np.e)
    crf = LinearCRF(reg_lambda=reg_lambda, all_pairs=True, tol=0)
    crf.fit([[{}], [{}]], [["a"], ["b"]], sample_weight=[1, 0])
    weights = dict(zip(crf.weights()["label"], crf.weights()["weight"], strict=True))
    assert weights == pytest.approx({"a": 0.5, "b": -0.5}, abs=1e-5)
    assert crf.loss_ == pytest.approx(np.log1p(np.exp(-1)) + reg_lambda / 4, rel=1e-9)


def build_loss(crf, X, y, sample_weight=None):
    """The loss that `fit` minimises, and its number of weights."""
    data, rows = crf._read_training(X, y, sample_weight, None)
    layouts = crf._layouts(data, rows)
    loss = LinearLoss(rows, data.targets, *layouts, reg_lambda=crf.reg_lambda, n_threads=2)
    return loss, sum(LinearWeights.sizes(*layouts))


def all_weights(crf):
    """The weights of a model as the loss expects them."""
    weights = crf._weights
    parts = weights.attributes, weights.edges, weights.biases, weights.arcs.ravel()
    return np.concatenate(parts)


@KINDS
@WEIGHTED
def test_gradient_equals_central_differences(parameters, weighted):
    X, y = make_data(n_sequences=6)
    crf = LinearCRF(reg_lambda=0.3, **parameters)
    loss, n_weights = build_loss(crf, X, y, make_weights(weighted, len(X)))
    weights = np.random.default_rng(0).normal(size=n_weights)
    _, gradient = loss(weights)
    step = 1e-5
    for i, slope in enumerate(gradient.copy()):
        ends = []
        for moved in (weights[i] + step, weights[i] - step):
            vector = weights.copy()
            vector[i] = moved
            ends.append(loss(vector)[0])
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope, rel=1e-6, abs=1e-6)


@KINDS
def test_gradient_of_a_large_training_set(parameters):
    # As many copies as no block or batch holds: everything but the penalty is multiplied.
    X, y = make_data(n_sequences=40)
    n_copies = 200_000 // sum(map(len, X))
    crf = LinearCRF(reg_lambda=0, **parameters)
    sample_weight = np.linspace(0, 2, len(X))
    small, n_weights = build_loss(crf, X, y, sample_weight)
    large, _ = build_loss(crf, X * n_copies, y * n_copies, np.tile(sample_weight, n_copies))
    weights = np.random.default_rng(1).normal(size=n_weights)
    (value, gradient), (total, sums) = small(weights), large(weights)
    assert total == pytest.approx(n_copies * value, rel=1e-10)
    np.testing.assert_allclose(sums, n_copies * gradient, rtol=1e-8, atol=1e-8 * n_copies)


@KINDS
def test_gradient_is_zero_at_the_minimum(parameters):
    X, y = make_data(n_sequences=20, seed=2)
    crf = LinearCRF(tol=0, max_iter=300, **parameters).fit(X, y)
    value, gradient = build_loss(crf, X, y)[0](all_weights(crf))
    assert value == pytest.approx(crf.loss_, rel=1e-12)
    np.testing.assert_allclose(gradient, 0, atol=1e-4)


@pytest.mark.parametrize("edges", [False, True])
def test_the_l1_penalty_sets_weights_to_zero_and_its_optimality_conditions_hold(edges):
    X, y = make_data(n_sequences=20, n_features=8, seed=3)
    reg_alpha = 1.5
    crf = LinearCRF(
        reg_lambda=0.1, reg_alpha=reg_alpha, transition_attributes=edges, tol=0, max_iter=500
    ).fit(X, y)
    weights = all_weights(crf)
    _, gradient = build_loss(crf, X, y)[0](weights)
    chosen = weights != 0
    assert 0.05 < chosen.mean() < 0.7
    np.testing.assert_allclose(gradient[chosen], -reg_alpha * np.sign(weights[chosen]), atol=1e-3)
    assert (np.abs(gradient[~chosen]) <= reg_alpha + 1e-3).all()


def test_a_strong_l1_penalty_leaves_nothing():
    X, y = make_data()
    crf = LinearCRF(reg_alpha=1e4).fit(X, y)
    assert not all_weights(crf).any()
    assert crf.loss_ == pytest.approx(sum(map(len, y)) * np.log(3))


@pytest.mark.parametrize("reg_alpha", [0.0, 0.5])
def test_the_loss_falls_with_every_iteration(reg_alpha):
    X, y = make_data(n_sequences=20, seed=4)
    crf = LinearCRF(reg_lambda=0.1, reg_alpha=reg_alpha).fit(X, y)
    losses = np.array(crf.history_["loss"])
    assert (np.diff(losses) <= 1e-12 * losses[0]).all()
    assert losses[0] < sum(map(len, y)) * np.log(3)
    assert crf.loss_ == losses[-1]


@pytest.mark.parametrize("penalty", ["reg_lambda", "reg_alpha"])
def test_a_stronger_penalty_gives_smaller_weights(penalty):
    X, y = make_data(n_sequences=20, seed=5)
    norms = []
    for strength in (0.01, 0.1, 1.0, 10.0):
        crf = LinearCRF(**{"reg_lambda": 0.01, penalty: strength}).fit(X, y)
        weights = all_weights(crf)
        norms.append(np.abs(weights).sum() if penalty == "reg_alpha" else weights @ weights)
    assert all(more > less for more, less in itertools.pairwise(norms))


def test_without_penalties_separable_data_are_learnt_to_the_end():
    X = [[[1.0], [-1.0], [1.0]], [[-1.0], [1.0]]]
    crf = LinearCRF(reg_lambda=0).fit(X, [["p", "n", "p"], ["n", "p"]])
    assert abs(crf.loss_) < 1e-3
    assert [labels.tolist() for labels in crf.predict(X)] == [["p", "n", "p"], ["n", "p"]]
