"""Training and prediction where sequences are tree-shaped graphs, with both estimators."""

from dataclasses import replace

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from hedgerow.boosting.curvature import exact
from hedgerow.labels import Labels, Patterns
from hedgerow.objectives import Targets, read_objective
from hedgerow.trellis import forward_backward
from reference.descents import build_loss
from reference.graphs import KINDS, ExactGraph, grow_trees, parents_of, random_graphs

LABELS = np.array(["a", "b", "c"])
OBJECTIVES = [
    "likelihood",
    "pointwise",
    "expected_accuracy",
    "accuracy",
    "f1",
    "softmax_margin",
    "max_margin",
]


class Brier:
    """A custom objective."""

    def value(self, marginals, labels, weights):
        return float(-np.sum(weights * (1 - marginals[np.arange(len(labels)), labels]) ** 2))

    def gradient(self, marginals, labels, weights):
        slopes, rows = np.zeros_like(marginals), np.arange(len(labels))
        slopes[rows, labels] = 2 * weights * (1 - marginals[rows, labels])
        return slopes


@pytest.fixture(autouse=True)
def trees(monkeypatch):
    """Every sequence is a tree-shaped graph."""
    grow_trees(monkeypatch)


def make_data(seed=0, n_sequences=24):
    """Numbers that say little, and labels that are mostly those of their parents."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 9, n_sequences)
    X, y = [], []
    for length in lengths:
        parents, codes = parents_of([length]), rng.integers(0, 3, length)
        for t in [t for t in range(length) if parents[t] >= 0]:
            codes[t] = codes[parents[t]] if rng.random() < 0.8 else codes[t]
        X.append(np.round(codes[:, None] + rng.normal(size=(length, 2)), 1))
        y.append(LABELS[codes].tolist())
    return X, y


def as_items(X):
    return [[{"x": str(round(row[0])), "z": row[1]} for row in rows.tolist()] for rows in X]


@pytest.mark.parametrize("weighting", ["", "sequences", "positions"])
@pytest.mark.parametrize("objective", [*OBJECTIVES, Brier()], ids=[*OBJECTIVES, "custom"])
@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_central_differences(kind, objective, weighting):
    check_slopes(kind, objective, weighting)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_where_labels_are_missing_are_central_differences(kind):
    check_slopes(kind, "likelihood", "missing")


def read(objective):
    crf = LinearCRF(objective=objective, sharpness=2.0)
    return read_objective(crf, margin=True).for_labels(Labels(LABELS))


def check_slopes(kind, objective, weighting):
    rng = np.random.default_rng(3)
    scores = random_graphs(rng, kind)
    codes = rng.integers(0, 3, scores.n_positions).astype(np.int32)
    weights = rng.random(scores.n_positions) if weighting == "positions" else None
    by_sequence = rng.random(scores.n_sequences) if weighting == "sequences" else None
    if weighting == "missing":
        codes[::3] = -1
    trained = read(objective)
    targets = Targets(scores.offsets, codes, scores.trellis, by_sequence, weights, scores.parents)

    def loss(scores):
        return trained.measure(scores, targets, n_threads=1).loss

    found = trained.measure(scores, targets, n_threads=1).slopes()
    for name in ("nodes", "arcs", "edges"):
        array, slopes = getattr(scores, name), getattr(found, name)
        if array is None:
            continue
        for place in map(tuple, np.argwhere(np.isfinite(array))[:: max(1, array.size // 6)]):
            step = np.zeros_like(array)
            step[place] = 1e-5
            up, down = (loss(replace(scores, **{name: array + s})) for s in (step, -step))
            assert (up - down) / 2e-5 == pytest.approx(slopes[place], abs=2e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    "parameters",
    [
        {"order": 0},
        {},
        {"order": 2},
        {"transition_attributes": True},
        {"order": 3},
        {"order": 2, "pattern_attributes": True},
    ],
    ids=str,
)
def test_gradients_of_linear_models_are_central_differences(parameters, objective):
    X, y = make_data(n_sequences=6)
    crf = LinearCRF(**parameters)
    loss, *_ = build_loss(crf, as_items(X), y)
    measure = loss.of(read(objective))
    rng = np.random.default_rng(0)
    weights = 0.3 * rng.normal(size=loss.n_weights)
    _, gradient = measure(weights)
    gradient = gradient.copy()
    direction = rng.normal(size=loss.n_weights)
    ends = [measure(weights + sign * 1e-6 * direction)[0] for sign in (1, -1)]
    assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(gradient @ direction, rel=1e-5, abs=1e-5)


TREES = [
    {"order": 0},
    {},
    {"order": 2},
    {"order": 3, "objective": "pointwise"},
    {"transitions": "trees"},
    {"transitions": "trees", "order": 2},
    {"curvature": "exact"},
    {"curvature": "length", "transition_step": "exact"},
    {"objective": "accuracy"},
    {"newton": False},
    {"direction": "conjugate"},
    {"subsample": 0.5, "constraints": None, "start_labels": ["a", "b", "c"]},
    {"class_weight": "balanced"},
]
LINEAR = [
    {"order": 0},
    {},
    {"order": 2, "pattern_attributes": True},
    {"transition_attributes": True, "objective": "expected_accuracy"},
    {"objective": "max_margin"},
    {"class_weight": "balanced"},
]


@pytest.mark.parametrize("parameters", TREES, ids=str)
def test_tree_models_learn(parameters):
    X, y = make_data()
    crf = TreeCRF(n_rounds=4, min_child_weight=0.0, **parameters).fit(X, y)
    assert np.all(np.diff(crf.history_["loss"]) <= 1e-9)
    check_predictions(crf, X, y)


@pytest.mark.parametrize("parameters", LINEAR, ids=str)
def test_linear_models_learn(parameters):
    X, y = make_data()
    check_predictions(
        LinearCRF(max_iter=15, tol=0, **parameters).fit(as_items(X), y), as_items(X), y
    )


def check_predictions(crf, X, y):
    """Marginals, k best, samples and likelihoods fit together."""
    marginals = crf.predict_marginals(X)
    np.testing.assert_allclose(np.concatenate(marginals).sum(axis=1), 1.0)
    assert crf.score(X, y) > 0.45
    best = crf.predict_k_best(X[:3], k=2)
    for ranked, labels in zip(best, crf.predict(X[:3], decode="viterbi"), strict=True):
        assert list(ranked[0][0]) == list(labels)
        assert ranked[0][1] >= ranked[1][1]
    assert np.isfinite(crf.log_likelihood(X, y)).all()
    assert len(crf.sample(X[:2], n=3)) > 0


def test_a_graph_differs_from_its_chain(monkeypatch):
    X, y = make_data()
    graph = TreeCRF(n_rounds=5).fit(X, y)
    marginals = np.concatenate(graph.predict_marginals(X))
    monkeypatch.undo()
    chains = np.concatenate(graph.predict_marginals(X))  # a model of graphs labels chains too
    assert np.abs(marginals - chains).max() > 0.01


def test_early_stopping_holds_out_whole_graphs_and_refuses_a_single_one():
    X, y = make_data()
    crf = TreeCRF(n_rounds=4, early_stopping_rounds=2).fit(X, y)
    assert crf.best_round_ >= 1
    with pytest.raises(ValueError, match="every cut would separate a position"):
        crf.fit([np.concatenate(X)], [[label for labels in y for label in labels]])


def test_constraints_hold_between_parents_and_children():
    X, y = make_data()
    never = [("a", "c"), ("c", "a")]
    kept = []
    for rows, labels in zip(X, y, strict=True):
        parents = parents_of([len(rows)])
        for t, parent in enumerate(parents.tolist()):
            if parent >= 0 and (labels[parent], labels[t]) in never:
                break
        else:
            kept.append((rows, labels))
    X, y = map(list, zip(*kept, strict=True))
    crf = TreeCRF(n_rounds=2, forbidden=never).fit(X, y)
    for rows, labels in zip(X, crf.predict(X), strict=True):
        parents = parents_of([len(rows)])
        pairs = [(labels[p], labels[t]) for t, p in enumerate(parents.tolist()) if p >= 0]
        assert not set(pairs) & set(never)
    with pytest.raises(ValueError, match="'forbidden' forbids"):
        TreeCRF(n_rounds=1, forbidden=[("b", "b"), ("a", "a"), ("c", "c")]).fit(*make_data())


def test_missing_and_known_labels():
    X, y = make_data()
    partial = [[label if t % 3 else None for t, label in enumerate(labels)] for labels in y]
    crf = TreeCRF(n_rounds=3).fit(X, partial)
    known = [[label if t == 0 else None for t, label in enumerate(labels)] for labels in y]
    predicted = crf.predict(X, known=known)
    assert all(labels[0] == given[0] for labels, given in zip(predicted, known, strict=True))


def test_patterns_run_from_parents_to_children():
    codes = np.array([0, 1, 2, 1, 0], np.int32)
    parents = np.array([-1, 0, 0, 2, 2], np.int32)
    found = Patterns.seen(codes, np.array([0, 5]), 2, parents=parents, n_labels=3)
    assert list(found) == [(0, 1), (0, 2), (2, 0), (2, 1), (0, 2, 0), (0, 2, 1)]


def test_exact_gammas_are_no_larger_than_those_of_mixing_rates():
    scores = random_graphs(np.random.default_rng(1), "order 1")
    bounds = forward_backward(scores, mixing=True).mixing.nodes
    assert (exact(scores, n_threads=1) <= bounds[:, None] * (1 + 1e-6)).all()
    assert ExactGraph(scores.part(slice(1, 2))).log_z < np.inf
