"""The objective of each round of boosting."""

from hedgerow.boosting.schedule import LIKELIHOOD, ROUNDS_PER_STAGE, Schedule
from hedgerow.objectives import Accuracy, OfMarginals, Pointwise

SOFT, SHARP = OfMarginals(Accuracy(1.0)), OfMarginals(Accuracy(2.0))


def test_without_stages_all_rounds_are_for_the_likelihood():
    schedule = Schedule()
    assert {schedule.objective_of(number) for number in range(200)} == {LIKELIHOOD}
    assert not any(map(schedule.changes_after, range(200)))


def test_warm_rounds_come_first_then_one_stage_after_the_other():
    schedule = Schedule(3, [SOFT, SHARP])
    found = [schedule.objective_of(number) for number in range(3 + 3 * ROUNDS_PER_STAGE)]
    assert found[:3] == [LIKELIHOOD] * 3
    assert found[3 : 3 + ROUNDS_PER_STAGE] == [SOFT] * ROUNDS_PER_STAGE
    assert found[3 + ROUNDS_PER_STAGE :] == [SHARP] * 2 * ROUNDS_PER_STAGE
    changes = [schedule.changes_after(number) for number in range(len(found))]
    assert changes == [True] * (3 + ROUNDS_PER_STAGE) + [False] * 2 * ROUNDS_PER_STAGE


def test_a_single_objective_from_the_first_round_on():
    pointwise = OfMarginals(Pointwise())
    schedule = Schedule(0, [pointwise])
    assert schedule.objective_of(0) == schedule.objective_of(999) == pointwise
    assert not schedule.changes_after(0)
