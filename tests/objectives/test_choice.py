"""Which objective the parameters of an estimator ask for."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from hedgerow.labels import Labels
from hedgerow.objectives import (
    F1,
    Accuracy,
    ExpectedAccuracy,
    Likelihood,
    MaxMargin,
    OfMarginals,
    Pointwise,
    SoftmaxMargin,
    read_objective,
)


class Mine:
    def value(self, marginals, labels, weights):
        return 0.0

    def gradient(self, marginals, labels, weights):
        return 0 * marginals


def read(objective, sharpness=7, margin=True, **more):
    parameters = {"sharpness": sharpness, "label_costs": "hamming"} | more
    parameters = {"f1_labels": None, "f1_average": "macro"} | parameters
    return read_objective(SimpleNamespace(objective=objective, **parameters), margin=margin)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pointwise", Pointwise()),
        ("expected_accuracy", ExpectedAccuracy()),
        ("accuracy", Accuracy(7.0)),
        ("f1", F1()),
    ],
)
def test_functions_of_the_marginals_by_name(name, expected):
    objective = read(name)
    assert isinstance(objective, OfMarginals)
    assert objective.objective == expected
    assert objective.decode == "marginal"


@pytest.mark.parametrize(
    ("name", "kind", "decode"),
    [
        ("likelihood", Likelihood, None),
        ("softmax_margin", SoftmaxMargin, None),
        ("max_margin", MaxMargin, "viterbi"),
    ],
)
def test_objectives_of_whole_labellings_by_name(name, kind, decode):
    objective = read(name)
    assert isinstance(objective, kind)
    assert objective.decode == decode
    assert objective.stages() == [objective]


def test_an_objective_of_the_user_stays_what_it_is():
    mine = Mine()
    objective = read(mine, margin=False)
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
        read(objective, margin=False)


@pytest.mark.parametrize("sharpness", [-1.0, 0, "high", float("nan"), None])
def test_a_sharpness_that_makes_no_sense(sharpness):
    message = rf"^sharpness is {sharpness!r}; expected a finite number greater than 0$"
    with pytest.raises(ValueError, match=message):
        read("accuracy", sharpness)


@pytest.mark.parametrize("name", ["softmax_margin", "max_margin"])
def test_costs_by_label_become_costs_by_code(name):
    objective = read(name, label_costs={"b": {"a": 3}})
    assert objective.by_code is None
    found = objective.for_labels(Labels(np.array(["a", "b"])))
    assert found.by_code.tolist() == [[0, 1], [3, 0], [0, 0]]
    assert found.for_labels(Labels(np.array(["a", "b"]))).by_code.tolist() == found.by_code.tolist()


def test_labels_of_f1_become_codes():
    objective = read("f1", f1_labels=["b"], f1_average="micro")
    assert objective.objective == F1(("b",), "micro")
    assert objective.for_labels(Labels(np.array(["a", "b"]))).objective.codes == (1,)
    given = read(F1(("a",))).for_labels(Labels(np.array(["a", "b"])))
    assert given.objective.codes == (0,)


def test_costs_are_checked_whatever_the_objective():
    with pytest.raises(
        ValueError, match=r"^label_costs is -1; expected a number from 0 to 100000$"
    ):
        read("likelihood", label_costs=-1)
