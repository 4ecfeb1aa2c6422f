"""The loss is the one that the documentation defines, and its gradient is right."""

import numpy as np
import pytest
from sklearn.base import clone

from hedgerow import LinearCRF
from hedgerow.objectives import Accuracy, ExpectedAccuracy, Pointwise, read_objective
from reference.descents import build_loss
from reference.linear import NaiveModel, hide, make_data, strength_by_length, to_dicts

TRIPLES = [("a", "b"), ("c", "c"), ("a", "b", "c"), ("b", "b", "b"), ("a", "c", "a", "b")]
EDGES, ORDER_2 = {"transition_attributes": True}, {"order": 2}
PATTERNS = {"pattern_attributes": True}
FORBIDDEN = {"forbidden": [("a", "a"), ("c", "b")]}
BY_CLASS, BALANCED = {"class_weight": {"a": 3.0, "c": 0.5}}, {"class_weight": "balanced"}
# Parameters; of partial labels some are missing.
ALL_KINDS = {
    "plain": {},
    "all_pairs": {"all_pairs": True},
    "edges": EDGES,
    "edges-all_pairs": {**EDGES, "all_pairs": True},
    "class_weight": BY_CLASS,
    "class_weight-edges": {**BALANCED, **EDGES},
    "order-0": {"order": 0},
    "order-0-edges": {"order": 0, **EDGES},
    "order-2": ORDER_2,
    "order-3": {"order": 3},
    "label_patterns": {"label_patterns": TRIPLES},
    "min_pattern_count": {"min_pattern_count": 1},
    "order-2-edges": {**ORDER_2, **EDGES},
    "patterns": PATTERNS,
    "order-2-patterns": {**ORDER_2, **PATTERNS},
    "order-3-patterns-all_pairs": {"order": 3, **PATTERNS, "all_pairs": True},
    "label_patterns-patterns": {"label_patterns": TRIPLES, **PATTERNS},
    "order-2-forbidden-patterns": {**ORDER_2, **FORBIDDEN, **PATTERNS},
    "order-2-patterns-class_weight": {**ORDER_2, **PATTERNS, **BALANCED},
    "partial-order-3-patterns": {"order": 3, **PATTERNS},
    "order-2-class_weight": {**ORDER_2, **BY_CLASS},
    "order-2-edges-class_weight": {**ORDER_2, **EDGES, **BALANCED},
    "forbidden": FORBIDDEN,
    "order-2-forbidden": {**ORDER_2, **FORBIDDEN},
    "order-2-forbidden-edges": {**ORDER_2, **FORBIDDEN, **EDGES},
    "forbidden-class_weight": {**FORBIDDEN, "class_weight": {"b": 2.0}},
    "pattern_lambda": {**ORDER_2, "pattern_lambda": [0.0, 0.3]},
    "partial": {},
    "partial-order-0": {"order": 0},
    "partial-all_pairs": {"all_pairs": True},
    "partial-edges": EDGES,
    "partial-order-2": ORDER_2,
    "partial-order-2-edges": {**ORDER_2, **EDGES},
    "partial-order-2-forbidden": {**ORDER_2, **FORBIDDEN},
}


def kinds(*names):
    cases = [(ALL_KINDS[name], name.startswith("partial")) for name in names]
    return pytest.mark.parametrize(("parameters", "partial"), cases, ids=names)


KINDS = kinds(*ALL_KINDS)
SOME_KINDS = ["class_weight-edges", "order-0", "order-2-forbidden", "partial-order-2-edges"]
# Sequences count alike in one, and differ in all others.
EQUAL = {"all_pairs": True}


def make_labelled(parameters, partial, **options):
    """Data whose labels keep to the constraints, and lack some labels if they are to."""
    X, y = make_data(**options)
    forbidden = parameters.get("forbidden", [])
    y = [obey(labels, forbidden) for labels in y]
    return X, hide(y) if partial else y


def obey(labels, forbidden):
    """Put another label in the place of each that makes a forbidden pair."""
    labels = labels.copy()
    for t in range(1, len(labels)):
        if (labels[t - 1], labels[t]) in forbidden:
            labels[t] = next(k for k in "cab" if (labels[t - 1], k) not in forbidden)
    return labels


def make_weights(parameters, n_sequences):
    return None if parameters == EQUAL else np.linspace(0, 2, n_sequences)


def weights_by_label(crf, y):
    if isinstance(crf.class_weight, dict):
        return {**dict.fromkeys("abc", 1.0), **crf.class_weight}
    labels = [label for sequence in y for label in sequence]
    return {label: len(labels) / (3 * labels.count(label)) for label in "abc"}


def naive_likelihood(crf, X, y, sample_weight):
    """What the documentation says about it."""
    naive, total = NaiveModel(crf), 0.0
    by_sequence = np.ones(len(X)) if sample_weight is None else sample_weight
    for positions, labels, weight in zip(to_dicts(X), y, by_sequence, strict=True):
        by_position = None
        if crf.class_weight is not None:
            by_label = weights_by_label(crf, y)
            by_position = [by_label[label] for label in labels]
        total += weight * naive.log_likelihood(positions, labels, by_position)
    return total


@KINDS
def test_the_loss_is_the_one_defined(parameters, partial):
    X, y = make_labelled(parameters, partial, seed=4)
    sample_weight = make_weights(parameters, len(X))
    crf = LinearCRF(reg_lambda=0.7, max_iter=10, tol=0, **parameters).fit(X, y, sample_weight)
    likelihood = naive_likelihood(crf, X, y, sample_weight)
    strength_of = strength_by_length(crf.pattern_lambda, y, [])
    expected = NaiveModel(crf).penalty(0.7, 0, strength_of) - likelihood
    assert crf.loss_ == pytest.approx(expected, rel=1e-9)


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


def loss_of(crf, X, y, sample_weight=None, objective="likelihood"):
    """The loss that `fit` minimises, and its number of weights."""
    objective = read_objective(clone(crf).set_params(objective=objective), margin=True)
    loss, data, *_ = build_loss(crf, X, y, sample_weight, objective)
    return loss.of(objective.for_labels(data.labels)), loss.n_weights


def all_weights(crf):
    """The weights of a model as the loss expects them."""
    weights = crf._weights
    own = weights.attributes, weights.edges, weights.biases
    return np.concatenate([*own, crf.model_.pattern_weights])


@KINDS
def test_gradient_equals_central_differences(parameters, partial):
    check_gradient("likelihood", parameters, partial)


@KINDS
def test_gradient_of_objectives_of_the_marginals(parameters, partial):
    check_gradient(Pointwise(), parameters, partial)


@kinds("plain", *SOME_KINDS)
@pytest.mark.parametrize("objective", [ExpectedAccuracy(), Accuracy(4.0)], ids=str)
def test_gradient_of_accuracies(objective, parameters, partial):
    check_gradient(objective, parameters, partial)


@kinds(*(name for name in ALL_KINDS if not name.startswith("partial")))
def test_gradient_of_the_margin_where_it_has_one(parameters, partial):
    check_gradient("max_margin", parameters, partial)


def check_gradient(objective, parameters, partial):
    X, y = make_labelled(parameters, partial, n_sequences=6, seed=1)
    crf = LinearCRF(reg_lambda=0.3, **parameters)
    loss, n_weights = loss_of(crf, X, y, make_weights(parameters, len(X)), objective)
    rng = np.random.default_rng(0)
    weights = rng.normal(size=n_weights)
    gradient = loss(weights)[1].copy()
    # Along a few directions: a weight whose slope is wrong shows in all of them.
    for direction in rng.normal(size=(6, n_weights)):
        ends = [loss(weights + step * direction)[0] for step in (1e-5, -1e-5)]
        found = (ends[0] - ends[1]) / 2e-5
        assert found == pytest.approx(gradient @ direction, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    "objective",
    ["likelihood", Pointwise(), Accuracy(4.0), "f1", "softmax_margin", "max_margin"],
)
@kinds("plain", "class_weight", "order-2")
def test_a_sequence_of_weight_two_counts_as_two(parameters, partial, objective):
    X, y = make_labelled(parameters, partial, n_sequences=10)
    crf = LinearCRF(reg_lambda=0.1, **parameters)
    weighted, n_weights = loss_of(crf, X, y, [2.0] * 4 + [1.0] * 6, objective)
    copied, _ = loss_of(crf, X + X[:4], y + y[:4], None, objective)
    weights = np.random.default_rng(1).normal(size=n_weights)
    (value, gradient), (total, sums) = weighted(weights), copied(weights)
    assert value == pytest.approx(total, rel=1e-10)
    np.testing.assert_allclose(gradient, sums, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("objective", ["likelihood", Accuracy(4.0)], ids=str)
@kinds("plain", "class_weight-edges", "order-2-class_weight", "partial-order-2-forbidden")
def test_gradient_of_a_large_training_set(parameters, partial, objective, monkeypatch):
    # As many copies as no block or batch holds: everything but the penalty is multiplied. A block
    # has 4096 positions, and a batch so many that it has several blocks.
    monkeypatch.setattr("hedgerow.linear.weights.BATCH_BYTES", 1 << 19)
    X, y = make_labelled(parameters, partial, n_sequences=40, longest=60)
    n_copies = 25_000 // sum(map(len, X))
    crf = LinearCRF(reg_lambda=0, **parameters)
    sample_weight = np.linspace(0, 2, len(X))
    small, n_weights = loss_of(crf, X, y, sample_weight, objective)
    copied = X * n_copies, y * n_copies, np.tile(sample_weight, n_copies)
    large, _ = loss_of(crf, *copied, objective)
    weights = np.random.default_rng(1).normal(size=n_weights)
    (value, gradient), (total, sums) = small(weights), large(weights)
    assert total == pytest.approx(n_copies * value, rel=1e-10)
    np.testing.assert_allclose(sums, n_copies * gradient, rtol=1e-8, atol=1e-8 * n_copies)


@pytest.mark.parametrize("objective", ["likelihood", "max_margin", Accuracy(4.0)], ids=str)
@kinds("plain", "class_weight-edges", "order-2-class_weight")
def test_the_same_bits_for_any_size_of_batches(parameters, partial, objective, monkeypatch):
    X, y = make_labelled(parameters, partial, n_sequences=40, longest=60)
    found = []
    for n_bytes in (1 << 10, 1 << 13, 1 << 22):
        monkeypatch.setattr("hedgerow.linear.weights.BATCH_BYTES", n_bytes)
        loss, n_weights = loss_of(LinearCRF(**parameters), X, y, None, objective)
        value, gradient = loss(np.random.default_rng(1).normal(size=n_weights))
        found.append((value, gradient.tobytes()))
    assert found[0] == found[1] == found[2]


@kinds("plain", *SOME_KINDS)
def test_gradient_is_zero_at_the_minimum(parameters, partial):
    X, y = make_labelled(parameters, partial, n_sequences=20, seed=2)
    crf = LinearCRF(tol=0, max_iter=300, **parameters).fit(X, y)
    value, gradient = loss_of(crf, X, y)[0](all_weights(crf))
    assert value == pytest.approx(crf.loss_, rel=1e-12)
    np.testing.assert_allclose(gradient, 0, atol=1e-4)


@pytest.mark.parametrize("parameters", [{}, {"transition_attributes": True}, {"order": 2}], ids=str)
def test_the_l1_penalty_sets_weights_to_zero_and_its_optimality_conditions_hold(parameters):
    X, y = make_data(n_sequences=20, n_features=8, seed=3)
    reg_alpha = 1.5
    crf = LinearCRF(reg_lambda=0.1, reg_alpha=reg_alpha, tol=0, max_iter=500, **parameters)
    crf.fit(X, y)
    weights = all_weights(crf)
    _, gradient = loss_of(crf, X, y)[0](weights)
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
