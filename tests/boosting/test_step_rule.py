"""The step size of a round with a line search."""

from dataclasses import replace

import numpy as np
import pytest

from hedgerow import TreeCRF
from hedgerow.boosting import booster as rules
from reference.boosting import make_booster
from reference.linear import make_data

X, Y = make_data(n_sequences=10, longest=5, seed=4)


def make_case(**parameters):
    usual = {"n_jobs": 1, "line_search": True, "min_child_weight": 0.0, "learning_rate": 1.0}
    return make_booster(TreeCRF(**usual | parameters), X, Y)


def turn(booster):
    """Take the direction of the next round."""
    slopes = booster.iterate.derive()
    trees = booster.trees.grow(booster.n_done)
    booster.direction.turn(trees, booster._pattern_step(slopes), slopes)
    return booster.direction


def take(booster, **more):
    return booster.step_rule.take(booster.iterate, booster.direction, **{"exact": False} | more)


@pytest.mark.parametrize("objective", ["likelihood", "pointwise"])
def test_the_loss_is_about_the_lowest_along_the_direction(objective):
    booster = make_case(objective=objective, max_step=None, warm_rounds=0, max_depth=1)
    way, scores = turn(booster), booster.trees.scores.nodes.copy()
    losses = [way.try_size(size).loss for size in np.linspace(0, 20, 401)]
    size = take(booster)
    assert size > 0
    np.testing.assert_array_equal(booster.trees.scores.nodes, scores + size * way.scores.nodes)
    gained = losses[0] - booster.iterate.loss
    assert gained > 0.95 * (losses[0] - min(losses))


def test_the_last_evaluation_is_that_of_the_next_round():
    booster = make_case(max_depth=1)
    measure, found = booster.trees.measure, []

    def spy(*arguments):
        found.append(measure(*arguments))
        return found[-1]

    booster.trees.measure = spy
    for _ in range(4):
        found.clear()
        assert booster.advance()
        # Those of the search alone, and none is repeated.
        assert 1 <= len({each.loss for each in found}) == len(found) < rules.SEARCH_TRIALS
        assert booster.iterate.measured is found[-1]


def test_no_score_moves_further_than_some_steps():
    booster = make_case(max_step=0.01)
    way = turn(booster)
    size = take(booster)
    assert size * way.scores.largest() == pytest.approx(rules.MAX_STEPS * 0.01)


def test_a_direction_that_leads_upwards_is_not_taken():
    booster = make_case()
    way, before = turn(booster), booster.iterate.loss
    for array in (*way.scores.arrays, way.weights):
        array *= -1
    way.slope *= -1
    assert take(booster) is None
    # With a slope that is wrong the loss does not rise either.
    way.slope *= -1
    assert take(booster) is None
    booster.iterate.measure_again(0)
    assert booster.iterate.loss == before


def test_a_step_that_is_not_found_in_time_is_the_lowest_that_was_tried(monkeypatch):
    monkeypatch.setattr(rules, "FLAT", 0.0)
    monkeypatch.setattr(rules, "SEARCH_TRIALS", 2)
    booster = make_case(max_step=None)
    before = booster.iterate.loss
    turn(booster)
    assert take(booster) > 0
    assert booster.iterate.loss < before


def test_shorter_steps_by_a_learning_rate():
    whole, half = make_case(), make_case()
    for booster in (whole, half):
        turn(booster)
    half.step_rule.settings = replace(half.settings, learning_rate=0.5)
    size, shorter = take(whole), take(half)
    assert shorter == pytest.approx(0.5 * size, rel=0.3)


def test_exact_weights_lower_the_loss_further():
    plain, exact = make_case(), make_case()
    losses = []
    for booster in (plain, exact):
        turn(booster)
        assert take(booster, exact=booster is exact) > 0
        losses.append(booster.iterate.loss)
    assert losses[1] < losses[0]
