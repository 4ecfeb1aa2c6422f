"""Which objective the parameters of an estimator ask for."""

import re

import pytest

from hedgerow.objectives import (
    Accuracy,
    ExpectedAccuracy,
    Likelihood,
    MaxMargin,
    OfMarginals,
    Pointwise,
    read_objective,
)


class Mine:
    def value(self, marginals, labels, weights):
        return 0.0

    def gradient(self, marginals, labels, weights):
        return 0 * marginals


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pointwise", Pointwise()),
        ("expected_accuracy", ExpectedAccuracy()),
        ("accuracy", Accuracy(7.0)),
    ],
)
def test_functions_of_the_marginals_by_name(name, expected):
    objective = read_objective(name, 7, margin=True)
    assert isinstance(objective, OfMarginals)
    assert objective.objective == expected
    assert objective.decode == "marginal"


@pytest.mark.parametrize(
    ("name", "kind", "decode"),
    [("likelihood", Likelihood, None), ("max_margin", MaxMargin, "viterbi")],
)
def test_objectives_of_whole_labellings_by_name(name, kind, decode):
    objective = read_objective(name, 7, margin=True)
    assert isinstance(objective, kind)
    assert objective.decode == decode
    assert objective.stages() == [objective]


def test_an_objective_of_the_user_stays_what_it_is():
    mine = Mine()
    objective = read_objective(mine, 15.0, margin=False)
    assert objective.objective is mine
    assert objective.stages() == [objective]


def test_sharpness_rises_to_what_was_asked_for():
    stages = OfMarginals(Accuracy(16.0)).stages()
    assert [stage.objective.sharpness for stage in stages] == [2.0, 4.0, 8.0, 16.0]


@pytest.mark.parametrize(
    ("objective", "error", "message"),
    [
        ("Accuracy", ValueError, "objective is 'Accuracy'; expected 'likelihood', 'pointwise', "),
        ("max_margin", ValueError, "objective is 'max_margin', which only LinearCRF can be "),
        (None, TypeError, "objective is None; expected a name, such as 'accuracy', or an object"),
        (
            Mine,
            TypeError,
            "the methods value and gradient, see hedgerow.objectives.Objective; pass",
        ),
        (print, TypeError, "objective is <built-in function print>; expected a name"),
    ],
)
def test_objectives_that_make_no_sense(objective, error, message):
    with pytest.raises(error, match=re.escape(message)):
        read_objective(objective, 15.0, margin=False)


@pytest.mark.parametrize("sharpness", [-1.0, 0, "high", float("nan"), None])
def test_a_sharpness_that_makes_no_sense(sharpness):
    message = rf"^sharpness is {sharpness!r}; expected a finite number greater than 0$"
    with pytest.raises(ValueError, match=message):
        read_objective("accuracy", sharpness, margin=False)
