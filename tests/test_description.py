"""Descriptions of parameters: equal if and only if the values are; others are refused."""

import json
from collections import namedtuple
from dataclasses import dataclass, field
from functools import partial
from math import inf, nan
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.metrics import f1_score

from hedgerow.description import describe, show
from hedgerow.objectives import Accuracy, Pointwise
from reference.trainings import Brier

HERE = __name__


class Power(Brier):
    def __init__(self, power):
        self.power = power


class OtherPower(Power):
    pass


class Searchable(BaseEstimator, Brier):
    def __init__(self, power=1):
        self.power = power
        self.calls = []


@dataclass
class Mixed(Brier):
    first: object
    second: object = None
    cache: object = field(default=None, compare=False)

    def __post_init__(self):
        self.lock = object()


@dataclass(frozen=True)
class Slotted(Brier):
    __slots__ = ("power",)
    power: float


class More(Mixed):
    """A subclass of a dataclass that is not a dataclass itself."""


def describe_alike(*values):
    """The description of values that all have the same, as it comes back from a file."""
    texts = {json.dumps(describe("objective", value), allow_nan=False) for value in values}
    described, *others = map(json.loads, texts)
    assert all(other == described for other in others)
    return described


def test_what_differs_has_another_description():
    different = [
        "likelihood",
        "pointwise",
        Brier(),
        *map(Power, (1, 2, "1", None, [], [1, 2], [2, 1], [[1], 2])),
        *map(Power, ({}, {"a": 1}, {1: 1}, {"1": 1}, "nan", nan, inf, -inf, [inf])),
        *map(Power, (np.arange(3), np.arange(3.0), np.array([0, 1, 3]), np.zeros((3, 0)))),
        *map(Power, ([np.arange(3)], {"a": np.arange(3)})),
        *map(Power, (Pointwise(), Accuracy(1.0), Accuracy(2.0))),
        OtherPower(1),
        Searchable(1),
        Mixed(1),
        Mixed(1, 2),
        Mixed(Mixed(1), 2),
        Slotted(1.0),
        Pointwise(),
        Accuracy(1.0),
    ]
    texts = [json.dumps(describe("objective", each), allow_nan=False) for each in different]
    assert len(set(texts)) == len(different)
    shown = [show(json.loads(text)) for text in texts]
    assert len(set(shown)) == len(different)


@pytest.mark.parametrize(
    "values",
    [
        (Power(1), Power(1.0), Power(np.int8(1)), Power(np.float64(1))),
        (Power([1, "a"]), Power((1.0, np.str_("a")))),
        (Power(["a", "b"]), Power({"b", "a"}), Power(pd.Series(["a", "b"]))),
        (Power({"a": 1, "b": (2,)}), Power({"b": [2], np.str_("a"): 1})),
        (Power(nan), Power(np.float32("nan"))),
        (Power(np.arange(6).reshape(2, 3)), Power(np.arange(6).reshape(2, 3, order="C").copy("F"))),
        (Searchable(2), Searchable(2.0)),
        (Mixed(1, cache=object()), Mixed(1, cache=3)),
        (Accuracy(2), Accuracy(2.0)),
    ],
)
def test_what_is_the_same_has_the_same_description(values):
    describe_alike(*values)


def test_descriptions_are_told_in_words():
    mixed = Mixed({"a": [1, None], 2: nan}, Accuracy(2.0))
    accuracy = "hedgerow.objectives.labelwise.Accuracy(sharpness=2.0)"
    assert show(describe("objective", mixed)) == (
        f"{HERE}.Mixed(first={{2: nan, 'a': [1, None]}}, second={accuracy})"
    )
    assert show(describe("class_weight", {"b": 2.0, "a": 1})) == "{'a': 1, 'b': 2.0}"
    assert show(describe("objective", Power(describe_alike))) == (
        f"{HERE}.Power(power={HERE}.describe_alike)"
    )
    array = show(describe("objective", Power(np.zeros((2, 3)))))
    assert array.startswith(f"{HERE}.Power(power=array(")
    assert array.endswith(", shape=[2, 3]))")


def test_a_seed_is_described_and_what_seeds_are_drawn_from_by_its_class():
    assert describe("random_state", np.int64(3)) == 3
    assert describe("random_state", None) is None
    states = [describe("random_state", np.random.RandomState(seed)) for seed in (0, 1)]
    assert states[0] == states[1] == "a numpy.random.mtrand.RandomState"


class Slots(Brier):
    __slots__ = ("power",)


def test_partial_functions_are_described_by_their_arguments():
    macro, micro = (partial(f1_score, average=average) for average in ("macro", "micro"))
    described = describe("eval_metric", macro)
    assert described == describe("eval_metric", partial(f1_score, average="macro"))
    assert described != describe("eval_metric", micro)
    assert "f1_score" in show(described)
    assert "macro" in show(described)
    json.dumps(described)


class BelowSlots(Slots):
    pass


class Weights(dict, Brier):
    pass


class Named(namedtuple("Named", "power"), Brier):
    pass


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (Power(lambda p: p), r"objective.power is a function that has no name, or uses"),
        (Power(np.log), r"objective.power is of type ufunc; expected numbers"),
        (Power(Power(1)), r"objective.power is of type Power; expected numbers"),
        (Power([1, {"a": object()}]), r"objective.power\[1\]\['a'\] is of type object; expected"),
        (Power(iter([1])), r"objective.power is of type list_iterator, which can be read only"),
        (Power({(1, 2): 3}), r"objective.power has the key \(1, 2\) of type tuple"),
        (Power(np.array([object()])), r"objective.power\[0\] is of type object; expected"),
        (Mixed(print), r"objective.first is of type builtin_function_or_method; expected"),
        (Mixed(Mixed(print)), r"objective.first.first is of type builtin_function_or_method"),
        (More(1), r"objective.lock is of type object; expected"),
        (Slots(), r"objective is a Slots, whose attributes do not hold its whole state"),
        (BelowSlots(), r"objective is a Slots, whose attributes do not hold its whole state"),
        (Weights(a=1), r"objective is a dict, whose attributes do not hold its whole state"),
        (Named(1), r"objective is a tuple, whose attributes do not hold its whole state"),
        (
            SimpleNamespace(value=print, gradient=print),
            r"objective is a SimpleNamespace, whose attributes do not hold its whole state",
        ),
    ],
)
def test_objects_that_cannot_be_told_apart_are_refused(objective, message):
    name = f"objective is a .*{type(objective).__name__}, which a checkpoint cannot compare"
    with pytest.raises(TypeError, match=f"{name}: {message}.*; make it a dataclass whose"):
        describe("objective", objective)
