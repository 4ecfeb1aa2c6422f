"""Directions of rounds: conjugate gradients, and slopes of the loss along any direction."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hedgerow import TreeCRF
from hedgerow.boosting import booster as rules
from hedgerow.boosting import direction
from hedgerow.boosting.schedule import Schedule
from hedgerow.exact_sums import ExactTotal
from hedgerow.objectives import Slopes, Targets
from hedgerow.objectives.training_objective import Measured, TrainingObjective
from hedgerow.trellis import Posteriors, Scores, forward_backward
from reference.boosting import advance, assert_same_model, make_booster
from reference.linear import hide, make_data
from reference.model_files import to_chunks

X, Y = make_data(n_sequences=10, longest=5, seed=4)
CHUNKS = list(map(to_chunks, Y))
WEIGHTS = np.linspace(0.3, 2.0, len(X))
USUAL = {"n_jobs": 1, "min_child_weight": 0.0, "warm_rounds": 0, "random_state": 0}
# Labels, weights of sequences, and parameters.
CASES = {
    "likelihood": (Y, None, {}),
    "weights": (Y, WEIGHTS, {"order": 2, "pattern_lambda": 0.7}),
    "weights of positions": (Y, None, {"class_weight": {"a": 3.0, "b": 0.5}}),
    "some known": (hide(Y), WEIGHTS, {"order": 3}),
    "a scheme": (CHUNKS, None, {"constraints": "BIO", "pattern_lambda": 2.0}),
    "pointwise": (Y, WEIGHTS, {"objective": "pointwise", "pattern_lambda": 0.7}),
    "accuracy": (Y, None, {"objective": "accuracy", "order": 2}),
    "labels asked about": (Y, WEIGHTS, {"transitions": "trees", "pattern_lambda": 0.7}),
    "labels asked about, order 2": (
        hide(Y),
        None,
        {"transitions": "trees", "order": 2, "newton": False},
    ),
    "labels asked about, accuracy": (
        Y,
        WEIGHTS,
        {"transitions": "trees", "objective": "expected_accuracy"},
    ),
}


def make_case(name, **parameters):
    y, weights, more = CASES[name]
    return make_booster(TreeCRF(**USUAL | more | parameters), X, y, weights)


# Slopes.


@pytest.mark.parametrize("name", CASES)
def test_slopes_along_a_direction_are_those_of_the_loss(name):
    booster = make_case(name, direction="conjugate", learning_rate=0.5)
    for _ in range(3):
        booster.advance()
    way, step = booster.direction, 1e-3 if "trees" in CASES[name][2].values() else 1e-5
    slopes = booster.iterate.derive()
    trees = booster.trees.grow(booster.n_done)
    way.turn(trees, booster._pattern_step(slopes), slopes)
    assert way.slope < 0

    def loss(size):
        return way.try_size(size).loss

    for size in (0.0, 0.8):
        expected = (loss(size + step) - loss(size - step)) / (2 * step)
        slope = way.try_size(size).slope
        assert slope == pytest.approx(expected, rel=1e-3, abs=1e-3 * abs(way.slope))
        if size == 0:
            assert way.slope == pytest.approx(slope, rel=1e-5)


# Where the loss is a quadratic function and trees can be anything.


@dataclass(eq=False)
class Quadratic(TrainingObjective):
    """The sum of a/2 (u - b)^2 over all scores of nodes."""

    curvatures: Any
    best: Any
    decode = None
    needs_warm_start = False
    has_unit_slopes = True

    def measure(self, scores, targets, *, n_threads, out=None, mixing=False):
        slopes = self.curvatures * (scores.nodes - self.best)
        loss = 0.5 * float((slopes * (scores.nodes - self.best)).sum())
        posteriors = forward_backward(scores, out=out, n_threads=n_threads)
        return OfQuadratic(ExactTotal(loss, 0.0), targets, scores, posteriors, slopes)

    def evaluate(self, parts, targets, *, decode, n_threads):
        raise NotImplementedError


@dataclass(eq=False)
class OfQuadratic(Measured):
    total: ExactTotal
    targets: Targets
    scores: Scores
    posteriors: Posteriors
    by_nodes: Any

    def probabilities(self):
        return self.posteriors.marginals

    def arc_slopes(self):
        return np.zeros_like(self.posteriors.arc_sums)

    def slopes(self, out=None):
        return Slopes(self.by_nodes.copy(), self.arc_slopes(), None, self.targets.bound)


@pytest.mark.parametrize("n_eigenvalues", [1, 2, 3, 5])
def test_a_quadratic_loss_is_lowest_after_as_many_rounds_as_it_has_eigenvalues(
    n_eigenvalues, monkeypatch
):
    # With exact steps, and a leaf for each position whose value is minus its slope.
    monkeypatch.setattr(rules, "FLAT", 1e-9)
    monkeypatch.setattr(rules, "SEARCH_TRIALS", 40)
    n, rng = 12, np.random.default_rng(n_eigenvalues)
    x, y = [np.arange(n, dtype=float)[:, None]], [["a", "b", "c"] * 4]
    eigenvalues = np.linspace(1.0, 4.0, n_eigenvalues)
    curvatures = eigenvalues[np.arange(3 * n) % n_eigenvalues].reshape(n, 3)
    loss = Quadratic(curvatures, rng.normal(size=(n, 3)))
    left = {}
    for way in ("steepest", "conjugate"):
        crf = TreeCRF(
            **USUAL | {"max_leaves": n, "reg_lambda": 0.0, "max_step": None},
            newton=False,
            trim=0.0,
            order=0,
            direction=way,
            line_search=True,
        )
        booster = make_booster(crf, x, y)
        booster.schedule = Schedule(0, [loss])
        booster.iterate.turn_to(loss)
        before = booster.iterate.loss
        for _ in range(n_eigenvalues):
            advance(booster)
        left[way] = booster.iterate.loss / before
    assert left["conjugate"] < 1e-7  # values of leaves are float32
    assert n_eigenvalues == 1 or left["steepest"] > 1e-5


# Carries.


def train(**parameters):
    return TreeCRF(**USUAL | {"n_rounds": 8} | parameters).fit(X, Y)


@pytest.mark.parametrize("transitions", ["weights", "trees"])
@pytest.mark.parametrize("objective", ["likelihood", "accuracy"])
def test_without_a_carry_a_direction_is_the_steepest(transitions, objective, monkeypatch):
    monkeypatch.setattr(direction, "MAX_CONJUGATE_ROUNDS", -1)
    options = {"transitions": transitions, "objective": objective, "learning_rate": 0.7}
    conjugate = train(**options, direction="conjugate")
    assert_same_model(conjugate, train(**options, line_search=True))


def carries_of(booster, n_rounds):
    for _ in range(n_rounds):
        assert booster.advance()
    return np.array([part.carry for part in booster.rounds.parts[1:]])


def test_a_direction_starts_anew_from_time_to_time(monkeypatch):
    monkeypatch.setattr(direction, "MAX_CONJUGATE_ROUNDS", 3)
    carries = carries_of(make_case("weights", direction="conjugate", max_depth=1), 12)
    assert (carries >= 0).all()
    in_turn = [len(run) for run in "".join("01"[int(c > 0)] for c in carries).split("0")]
    assert max(in_turn) == 3


def test_a_direction_along_which_the_loss_hardly_falls_is_not_carried_on(monkeypatch):
    monkeypatch.setattr(direction, "LEAST_DESCENT", 100.0)
    assert not carries_of(make_case("weights", direction="conjugate"), 5).any()


def test_exact_weights_and_other_objectives_begin_anew():
    exact = {"transition_step": "exact"}
    booster = make_case("some known", direction="conjugate", max_depth=1, trim=0, **exact)
    carries = carries_of(booster, 12)
    assert carries[1:8].any()
    assert carries[8] == 0  # the eighth round moved the weights to where they are best
    changing = make_case("accuracy", direction="conjugate", warm_rounds=4, max_depth=1)
    carries = carries_of(changing, 5)
    assert carries[1:4].any()
    assert carries[4] == 0


def test_where_a_conjugate_direction_fails_the_trees_alone_are_tried(monkeypatch):
    booster = make_case("weights", direction="conjugate", max_depth=1)
    take, failed = booster.step_rule.take, []

    def fail_if_carried(iterate, way, **more):
        if way.carry > 0:
            failed.append(way.carry)
            return None
        return take(iterate, way, **more)

    monkeypatch.setattr(booster.step_rule, "take", fail_if_carried)
    assert not carries_of(booster, 8).any()
    steepest = make_case("weights", line_search=True, learning_rate=1.0, max_depth=1)
    carries_of(steepest, 8)
    assert failed
    assert booster.iterate.loss == steepest.iterate.loss


def test_scores_in_training_are_those_of_the_model():
    booster = make_case("weights", direction="conjugate", max_depth=1)
    assert carries_of(booster, 8).any()
    booster.keep()
    forest = booster.rounds.kept_forest()
    assert len(np.unique(forest.tree_weights)) > 3
    nodes = booster.trees.scores.nodes
    walked = np.zeros_like(nodes)
    forest.add_scores(booster.trees.scores.binned.bins, walked, walked, 1)
    np.testing.assert_allclose(walked, nodes, rtol=1e-12, atol=1e-12)


# Whole trainings.

WAYS = [{"line_search": True}, {"direction": "conjugate"}]
OTHERS = make_data(n_sequences=10, longest=5, seed=9)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transitions", ["weights", "trees"])
def test_the_best_round_may_be_an_earlier_one(way, transitions):
    options = way | {"transitions": transitions, "n_rounds": 30}
    crf = TreeCRF(**USUAL | options | {"early_stopping_rounds": 3})
    crf.fit(X, Y, eval_set=OTHERS)
    assert 1 <= crf.best_round_ == crf.n_rounds_ < len(crf.history_["loss"])
    shorter = TreeCRF(**USUAL | options | {"n_rounds": crf.best_round_}).fit(X, Y)
    assert_same_model(crf, shorter)
    # Figures of the eval set are those of the model that is kept.
    loss = crf.history_["eval_loss"][crf.best_round_ - 1]
    n_positions = sum(map(len, OTHERS[0]))
    assert loss == pytest.approx(-crf.log_likelihood(*OTHERS).sum() / n_positions, rel=1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("more", [{}, {"transitions": "trees", "subsample": 0.6, "order": 2}])
def test_any_number_of_threads_gives_the_same_model(way, more):
    first, second = (train(**way | more | {"n_jobs": n}) for n in (1, 3))
    assert_same_model(first, second)


@pytest.mark.parametrize("first", [{}, *WAYS])
@pytest.mark.parametrize("second", [{}, *WAYS])
def test_a_model_may_be_the_start_of_one_trained_in_another_way(first, second):
    usual = {"max_depth": 1, "pattern_lambda": None}
    init = train(**usual | first)
    crf = TreeCRF(**USUAL | usual | {"n_rounds": 4} | second).fit(X, Y, init=init)
    assert crf.n_rounds_ == 12
    losses = crf.history_["loss"]
    assert (np.diff(losses) <= 0).all()
    before, after = init._trees.forest, crf._trees.forest
    weights = after.tree_weights[: before.n_trees]
    np.testing.assert_array_equal(weights, before.tree_weights)
    expected = -crf.log_likelihood(X, Y).sum() / sum(map(len, X))
    assert crf.loss_ == pytest.approx(expected, rel=1e-9)


def test_learning_rates():
    steps = {
        rate: train(line_search=True, learning_rate=rate, n_rounds=1, order=0)
        for rate in (1.0, 0.5)
    }
    whole, half = (steps[rate]._trees.forest for rate in (1.0, 0.5))
    np.testing.assert_array_equal(whole.columns, half.columns)
    moved = [np.abs(each.tree_weights[0] * each.values).max() for each in (whole, half)]
    assert moved[1] == pytest.approx(0.5 * moved[0], rel=0.2)
    assert steps[1.0].loss_ < steps[0.5].loss_ < np.log(3)


def test_monotone_constraints_hold_along_conjugate_directions():
    crf = train(direction="conjugate", monotone_constraints={0: {"a": 1}}, n_rounds=12)
    rows = np.zeros((20, 3))
    rows[:, 0] = np.linspace(-3, 3, 20)
    marginals = crf.predict_proba([row[None] for row in rows])
    odds = marginals[:, [0]] / marginals[:, 1:]
    assert (crf._trees.forest.tree_weights >= 0).all()
    assert (np.diff(odds, axis=0) >= -1e-12).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"direction": "newton"}, r"direction is 'newton'; expected 'steepest' or 'conjugate'"),
        ({"line_search": "labels"}, r"line_search is 'labels'; expected None, True or False"),
    ],
)
def test_other_ways_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        train(**parameters)
