"""Rounds of boosting: slopes, steps, and a loss that never increases."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import TreeCRF, _core
from hedgerow.boosting.booster import MAX_TRIALS, PATTERN_TRIALS
from hedgerow.boosting.context_training import train_trees
from hedgerow.boosting.curvature import measure_curvature, temper
from hedgerow.boosting.rounds import Rounds
from hedgerow.boosting.running_scores import Binned
from hedgerow.boosting.settings import Settings
from hedgerow.boosting.tree_training import PatternSlopes
from hedgerow.trees.forest import Forest
from reference.boosting import advance, assert_same_forest, make_booster
from reference.linear import hide, make_data
from reference.model_files import to_chunks
from reference.problems import central_differences

X, Y = make_data(n_sequences=8, longest=4, seed=2)
CHUNKS = list(map(to_chunks, Y))
HIDDEN = hide(Y)
WEIGHTS = np.linspace(0.3, 2.0, len(X))
# Labels, weights of sequences, and parameters.
OBJECTIVES = ["likelihood", "pointwise", "expected_accuracy", "accuracy"]
CASES = {
    "plain": (Y, None, {}),
    "sequence weights": (Y, WEIGHTS, {}),
    "class weights": (Y, None, {"class_weight": {"a": 3.0, "b": 0.5}}),
    "both weights": (Y, WEIGHTS, {"class_weight": {"a": 3.0, "b": 0.5}}),
    "some known": (HIDDEN, None, {}),
    "some known, weights": (HIDDEN, WEIGHTS, {}),
    "a scheme": (CHUNKS, None, {"constraints": "BIO"}),
    "ends": (Y, None, {"forbidden": [("c", "c"), ("a", "a")], "start_labels": ["b", "c"]}),
    "a scheme, some known": (hide(CHUNKS), WEIGHTS, {"constraints": "BIO"}),
    "a scheme, class weights": (CHUNKS, None, {"constraints": "BIO", "class_weight": "balanced"}),
}
# P(b at 0) depends on the score of what may follow it, whatever the weight of that position.
NO_WEIGHT = {"no weight": (Y, None, {"class_weight": {"a": 0.0}})}


def spread(orders, *choices):
    """All choices, each with one of the orders in turn."""
    rows = enumerate(product(*choices))
    return [(*row, orders[(number + number // len(orders)) % len(orders)]) for number, row in rows]


def make_case(name, **parameters):
    y, weights, more = (CASES | NO_WEIGHT)[name]
    crf = TreeCRF(**{"n_jobs": 1, "warm_rounds": 0, **more, **parameters})
    return make_booster(crf, X, y, weights)


def stir(booster, seed=0):
    """Give a booster random scores and weights."""
    rng = np.random.default_rng(seed)
    trees = booster.trees
    trees.proposed = trees.scores.twin()  # the scores are not those of the rounds any more
    nodes_of(booster)[...] += rng.normal(size=nodes_of(booster).shape)
    booster.iterate.weights = rng.normal(size=booster.iterate.weights.shape)
    measure_again(booster)
    return booster


def nodes_of(booster):
    """Scores of the nodes of the training sequences, which may be changed."""
    return booster.trees.scores.nodes


def measure_again(booster):
    booster.iterate.measure_again(booster.n_done)


def loss_of(booster):
    """Its loss and penalty, from its scores and weights as they are now."""
    (scores,) = booster.score_training()
    penalty = (booster.iterate.penalties * booster.iterate.weights**2).sum() / 2
    loss = booster.iterate.objective.measure(scores, booster.targets, n_threads=1).loss
    return loss + booster.iterate.unit * penalty


def slopes_of(booster, array):
    """Derivatives of the loss with respect to each score or weight."""
    return central_differences(lambda: loss_of(booster), array, 1e-5)


def examples_of(booster, monkeypatch):
    """Slopes and curvatures (N, K) that the next trees will be grown from, 0 where there are none.

    The booster does its round.
    """
    slopes, curvatures = np.zeros((2, *nodes_of(booster).shape))
    grow = _core.grow_trees

    def spy(data, examples, *rest):
        for label in range(booster.targets.n_labels):
            positions, gradients, bounds = examples.of_output(label)
            slopes[positions, label] = gradients
            curvatures[positions, label] = bounds
        if booster.trees.learner.opposite:
            slopes[:, 0], curvatures[:, 0] = -slopes[:, 1], curvatures[:, 1]
        return grow(data, examples, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(_core, "grow_trees", spy)
        booster.advance()
    return slopes, curvatures


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", [*CASES, *NO_WEIGHT])
def test_trees_are_grown_from_the_slopes_of_the_loss(name, order, monkeypatch):
    booster = stir(make_case(name, order=order, trim=0))
    expected = slopes_of(booster, nodes_of(booster))
    slopes, _ = examples_of(booster, monkeypatch)
    np.testing.assert_allclose(slopes, expected, atol=1e-6)


@pytest.mark.parametrize(("name", "objective", "order"), spread([0, 1, 2], CASES, OBJECTIVES[1:]))
def test_trees_are_grown_from_the_slopes_of_any_objective(name, objective, order, monkeypatch):
    booster = stir(make_case(name, objective=objective, order=order, trim=0))
    expected = slopes_of(booster, nodes_of(booster))
    steps = booster.iterate.derive().slopes
    by_pattern = slopes_of(booster, booster.iterate.weights)
    slopes, _ = examples_of(booster, monkeypatch)
    units = booster.targets.weights
    by_unit = slopes if units is None else slopes / units[:, None]
    assert np.abs(by_unit).max() == pytest.approx(1)
    unit = np.abs(expected).max() / np.abs(slopes).max()
    np.testing.assert_allclose(slopes * unit, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(steps * unit, by_pattern, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "objective", "order"), spread([0, 1, 2, 3], CASES, OBJECTIVES))
def test_slopes_of_pattern_weights_are_those_of_the_loss(name, objective, order):
    booster = stir(make_case(name, objective=objective, order=order))
    booster.trees.proposed.nodes[...] = nodes_of(booster)
    expected = slopes_of(booster, booster.iterate.weights)
    candidate, slopes = booster.iterate.try_weights(booster.iterate.weights, learn=False)
    np.testing.assert_allclose(slopes, expected, atol=1e-6)
    assert candidate.loss == pytest.approx(loss_of(booster), rel=1e-12)


@pytest.mark.parametrize("name", ["plain", "sequence weights"])
def test_independent_positions_curve_as_in_logitboost(name, monkeypatch):
    booster = stir(make_case(name, order=0, trim=0))
    odds = np.exp(nodes_of(booster))
    p = odds / odds.sum(axis=1, keepdims=True)
    weights = booster.targets.weights
    by_position = np.ones(len(p)) if weights is None else weights
    slopes, curvatures = examples_of(booster, monkeypatch)
    expected = np.where(slopes != 0, by_position[:, None] * 2 * p * (1 - p), 0)
    np.testing.assert_allclose(curvatures, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["mixing", "exact", "length"])
def test_dependent_positions_curve_more(kind, monkeypatch):
    booster = stir(make_case("plain", curvature=kind, learning_rate=1.0, trim=0))
    p = booster.iterate.measured.posteriors.marginals.copy()
    _, curvatures = examples_of(booster, monkeypatch)
    gammas = curvatures / (p * (1 - p))
    lengths = np.diff(booster.targets.offsets)
    longest = 2 * np.repeat(lengths, lengths)
    assert (gammas >= 2 - 1e-5).all()
    assert (gammas <= longest[:, None] * (1 + 1e-5)).all()
    assert (gammas > 2.001).any()
    if kind == "length":
        np.testing.assert_allclose(gammas, np.tile(longest[:, None], 3), rtol=1e-5)


@pytest.mark.parametrize("rate", [0.01, 0.6, 1.0, 2.0])
def test_a_learning_rate_takes_over_what_gamma_is_for(rate):
    gammas = np.array([2.0, 4.0, 5.0, 8.0, 100.0])
    tempered = temper(gammas, rate)
    assert (tempered <= gammas).all()
    assert (tempered >= np.minimum(4.0, gammas)).all()
    # No step is longer than the bound allows, and each decreases the loss.
    assert (min(rate, 1.0) / tempered <= np.maximum(1 / gammas, min(rate, 1.0) / 4)).all()
    assert (tempered > min(rate, 1.0) * gammas / 2).all()


def test_first_order_boosting_has_no_curvature(monkeypatch):
    booster = stir(make_case("sequence weights", newton=False, trim=0))
    weights = booster.targets.weights
    _, curvatures = examples_of(booster, monkeypatch)
    np.testing.assert_allclose(curvatures, np.tile(weights[:, None], 3), rtol=1e-6)


# The loss.

OPTIONS = st.fixed_dictionaries(
    {
        "objective": st.sampled_from(OBJECTIVES),
        "learning_rate": st.sampled_from([0.1, 0.3, 1.0]),
        "order": st.integers(0, 3),
        "newton": st.booleans(),
        "curvature": st.sampled_from(["mixing", "exact", "length"]),
        "transition_step": st.sampled_from(["auto", "bound", "exact"]),
        "trim": st.sampled_from([0.0, 0.01, 0.2]),
        "max_depth": st.sampled_from([1, 3, None]),
        "min_child_weight": st.sampled_from([0.0, 1.0]),
        "reg_lambda": st.sampled_from([0.0, 1.0]),
        "max_step": st.sampled_from([None, 0.5]),
        "subsample": st.sampled_from([0.5, 1.0]),
        "sampling_method": st.sampled_from(["uniform", "gradient_based"]),
        "stratified": st.booleans(),
        "negative_weight": st.sampled_from(["unbiased", "none", "balanced"]),
        "window": st.sampled_from([0, 1]),
        "transitions": st.sampled_from(["weights", "trees"]),
        "direction": st.sampled_from(["steepest", "conjugate"]),
        "line_search": st.sampled_from([None, True, False]),
    }
)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(list(CASES)), OPTIONS)
def test_no_round_raises_the_loss(name, options):
    if options["transitions"] == "trees":
        options |= {"order": max(1, options["order"])}
    booster = make_case(name, random_state=0, **options)
    for _ in range(6):
        loss, weights = booster.iterate.measured.loss, booster.iterate.weights
        if advance(booster) is None:
            break
        after = booster.iterate.loss
        assert after <= loss + booster.iterate.penalty(weights) < np.inf
        assert after == pytest.approx(loss_of(booster), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("newton", "order", "learning_rate"), spread([0.1, 0.3, 1.0], [True, False], range(4))
)
def test_no_round_raises_the_loss_by_default(order, newton, learning_rate):
    X, y = make_data(n_sequences=30, longest=10, seed=order)
    crf = TreeCRF(n_rounds=15, order=order, newton=newton, learning_rate=learning_rate, n_jobs=1)
    crf.fit(X, y)
    losses = [np.log(3), *crf.history_["loss"]]
    assert (np.diff(losses) <= 0).all()
    assert crf.loss_ < 0.8 * np.log(3)
    expected = -crf.log_likelihood(X, y).sum() / sum(map(len, X))
    assert crf.loss_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("transition_step", ["bound", "exact"])
def test_steps_that_are_too_long_are_halved(transition_step):
    options = {"transition_step": transition_step, "trim": 0, "max_step": None}
    booster = make_case("plain", learning_rate=256.0, **options)
    before, trees = booster.iterate.measured.loss, advance(booster)
    assert booster.iterate.measured.loss < before
    once = advance(make_case("plain", learning_rate=1.0, **options))
    np.testing.assert_array_equal(trees.columns, once.columns)
    moves = once.values != 0
    ratios = np.unique(trees.values[moves] / once.values[moves])
    assert ratios.tolist() == [256.0]
    (weight,) = np.unique(trees.tree_weights)
    assert 256.0 * weight in 2.0 ** np.arange(-3, 8)


def pattern_curvatures(booster):
    """Those of the weights, and how often each pattern is the longest one that ends."""
    (scores,) = booster.score_training()
    options = {"weights": booster.targets.mean_weights, "n_threads": 1}
    posteriors = booster.iterate.measured.posteriors
    sums = booster.iterate.measured.arc_sums
    mixing = measure_curvature("mixing", scores, booster.grammar, posteriors, sums, **options)
    expected = booster.trellis.pattern_sums(booster.iterate.measured.arc_sums)
    counts = booster._bound.tree.own(expected)
    found = booster.iterate.derive().curvatures
    weights = 1.0 if booster.targets.weights is None else booster.targets.weights
    ends = (mixing.edges > 0) * weights
    return found * ends.sum() / np.sum(ends * mixing.edges), counts


@pytest.mark.parametrize("name", ["plain", "sequence weights"])
def test_patterns_curve_as_far_as_their_labels_are_uncertain(name):
    booster = make_case(name, order=2, learning_rate=1.0)
    curvatures, counts = pattern_curvatures(booster)
    np.testing.assert_allclose(curvatures, counts * 2 / 3)  # of three labels, all as probable
    nodes_of(booster)[...] += 30.0 * np.eye(3)[np.arange(len(nodes_of(booster))) % 3]
    measure_again(booster)
    curvatures, counts = pattern_curvatures(booster)
    assert counts.sum() > 1
    assert (curvatures < 1e-9).all()


# How often the step of the trees is halved.
TREE_HALVINGS = MAX_TRIALS - PATTERN_TRIALS


def grow(booster):
    """The trees of a round of first-order boosting."""
    gradients = booster.iterate.measured.slopes().nodes
    return booster.trees.learner.grow(gradients, np.ones((len(gradients), 1), np.float32), 0)


def move(booster, trees):
    """Take a step along trees alone; returns its size, or None if no step was short enough."""
    still = np.zeros_like(booster.iterate.weights)
    booster.direction.turn(trees, still, PatternSlopes(still, still, 1.0))
    size = booster.step_rule.take(booster.iterate, booster.direction, exact=False)
    if size is None:
        booster.iterate.measure_again(booster.n_done + 1)
    return size


def test_a_round_that_cannot_help_changes_nothing():
    booster = stir(make_case("plain", trim=0))
    scores, weights = nodes_of(booster).copy(), booster.iterate.weights.copy()
    loss = booster.iterate.measured.loss
    marginals = booster.iterate.measured.posteriors.marginals.copy()
    worse = grow(booster).scaled(-1.0)
    assert move(booster, worse) is None
    assert booster.iterate.measured.loss == loss
    np.testing.assert_array_equal(nodes_of(booster), scores)
    np.testing.assert_array_equal(booster.iterate.weights, weights)
    np.testing.assert_array_equal(booster.iterate.measured.posteriors.marginals, marginals)


def test_the_shortest_step_that_is_tried():
    # The first step is 2^n times too long: backtracking succeeds if enough halvings are left.
    booster = stir(make_case("plain", trim=0, learning_rate=0.01))
    trees = grow(booster)
    state = nodes_of(booster).copy(), booster.iterate.measured.loss
    for n, found in ((TREE_HALVINGS - 1, True), (TREE_HALVINGS + 12, False)):
        assert (move(booster, trees.scaled(2.0**n)) is not None) == found
        if found:
            assert booster.iterate.measured.loss < state[1]
            nodes_of(booster)[...] = state[0]
            measure_again(booster)


@pytest.mark.filterwarnings("ignore:y has a single label")
def test_nothing_left_to_learn():
    booster = make_booster(TreeCRF(n_jobs=1), X, [["a"] * len(labels) for labels in Y])
    assert advance(booster) is None
    assert booster.n_done == 0
    trimmed = make_case("plain", order=0, trim=1.0)
    figures = trimmed.figures()
    assert advance(trimmed) is None
    assert trimmed.figures() == figures


def test_a_draw_that_teaches_nothing_is_a_round_all_the_same():
    # The next round may draw something better.
    booster = make_case("plain", order=0, trim=1.0, subsample=0.5, random_state=0)
    trees = advance(booster)
    assert booster.n_done == 1
    assert not trees.values.any()
    assert trees.n_rounds == 1


def others_like(booster):
    """The training sequences as an evaluation set."""
    targets = booster.targets
    return Binned(booster.trees.scores.binned.bins, targets.offsets, targets.parents, [])


def test_training_goes_on_from_the_sums_of_the_trees():
    booster = make_case("ends", order=2, learning_rate=1.0, min_child_weight=0)
    forest = Forest.join(3, [advance(booster) for _ in range(5)])
    rounds = Rounds.begin(forest, booster.iterate.weights, booster.settings.sampling.seed)
    data = booster.trees.learner.data
    again = type(booster)(
        booster.scoring,
        others_like(booster),
        lambda bound, scores: train_trees(booster.training, booster.settings, bound, scores, data),
        booster.training,
        booster.settings,
        booster.schedule,
        rounds,
        99,
    )
    np.testing.assert_array_equal(nodes_of(again), nodes_of(booster))
    assert again.iterate.measured.loss == booster.iterate.measured.loss
    assert again.n_done == 5
    for _ in range(3):
        assert_same_forest(advance(again), advance(booster))


def test_other_sequences_are_scored_round_by_round():
    booster = make_case("ends", order=2, learning_rate=1.0, min_child_weight=0)
    others = others_like(booster)
    for n_rounds in (0, 1, 3):
        for _ in range(n_rounds):
            assert booster.advance()
        (scores,) = booster.score(others)
        np.testing.assert_array_equal(scores.nodes, nodes_of(booster))
        arcs = booster.trellis.arc_scores(booster.iterate.weights)
        np.testing.assert_array_equal(scores.arcs, arcs)


def count_right(booster):
    return booster.figures()["accuracy"] * booster.targets.n_known


def test_how_many_are_right():
    booster = stir(make_case("plain"))
    marginals = booster.iterate.measured.posteriors.marginals
    right = (marginals.argmax(axis=1) == booster.targets.codes).sum()
    assert count_right(booster) == pytest.approx(right)
    weighted = stir(make_case("class weights"))
    plain = stir(make_case("plain"))
    assert count_right(weighted) == count_right(plain)  # by probability, not by weighted counts
    partial = stir(make_case("some known"))
    codes = partial.targets.codes
    known = codes >= 0
    right = partial.iterate.measured.posteriors.marginals.argmax(axis=1) == codes
    assert count_right(partial) == pytest.approx(right[known].sum())


def test_settings_know_whether_anything_is_drawn():
    assert not Settings.read(TreeCRF(), 3).draws
    for change in (
        {"subsample": 0.5},
        {"colsample_bytree": 0.5},
        {"colsample_bynode": 0.9},
        {"stratified": True},
    ):
        assert Settings.read(TreeCRF(**change), 3).draws
