"""Which objective the parameters of an estimator ask for."""

import re

import pytest

from hedgerow.objectives import (
    Accuracy,
    ExpectedAccuracy,
    Pointwise,
    default_decode,
    read_objective,
    stages,
)


class Mine:
    def value(self, marginals, labels, weights):
        return 0.0

    def gradient(self, marginals, labels, weights):
        return 0 * marginals


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("likelihood", "likelihood"),
        ("max_margin", "max_margin"),
        ("pointwise", Pointwise()),
        ("expected_accuracy", ExpectedAccuracy()),
        ("accuracy", Accuracy(7.0)),
    ],
)
def test_objectives_by_name(name, expected):
    objective = read_objective(name, 7, margin=True)
    assert objective == expected
    whole = name in ("likelihood", "max_margin")
    assert default_decode(objective) == ("viterbi" if whole else "marginal")


def test_an_objective_of_the_user_stays_what_it_is():
    mine = Mine()
    assert read_objective(mine, 15.0, margin=False) is mine
    assert default_decode(mine) == "marginal"
    assert stages(mine) == [mine]


def test_sharpness_rises_to_what_was_asked_for():
    assert [each.sharpness for each in stages(Accuracy(16.0))] == [2.0, 4.0, 8.0, 16.0]
    assert stages(Pointwise()) == [Pointwise()]


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


@pytest.mark.parametrize("sharpness", [-1.0, "high", float("nan"), None])
def test_a_sharpness_that_makes_no_sense(sharpness):
    with pytest.raises(ValueError, match=r"^sharpness is .*; expected a finite number of at least"):
        read_objective("accuracy", sharpness, margin=False)


def test_a_sharpness_of_zero():
    with pytest.raises(ValueError, match=r"^sharpness is 0; expected more than 0$"):
        read_objective("accuracy", 0, margin=False)
