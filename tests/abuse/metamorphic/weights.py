"""Weights of sequences and classes."""

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from abuse.kind import Case, Kind
from abuse.metamorphic.alike import assert_alike, decided
from abuse.training import Part, Training
from abuse.trainings import learn_from_all, trainings

__all__ = ["KINDS"]


@st.composite
def weighted_trainings(draw: st.DrawFn) -> Case:
    """Training runs in which weights are equivalent to repetitions of sequences."""
    case = decided(learn_from_all(draw(trainings())))
    case["change"] = draw(st.sampled_from(["repeated", "left out", "classes"]))
    # Patterns and attributes are counted without weights, and so are quantiles.
    parameters = case["parameters"]
    if "min_pattern_count" in parameters:
        parameters["min_pattern_count"] = min(1, parameters["min_pattern_count"])
    if case["estimator"] == "TreeCRF":
        parameters["max_bins"] = 255
    else:
        parameters |= {"min_count": 0, "all_pairs": True}
    # With weights of positions the margin is scaled, but the hinge counts once.
    uneven = case["change"] == "classes" or case["weights"] == "positions"
    if uneven and parameters["objective"] == "max_margin":
        parameters["objective"] = "likelihood"
    parameters.pop("class_weight", None)
    case["class_weights"] = None
    if case["change"] == "classes":
        case["data"]["unknown"] = 0.0
        case["factor"] = draw(st.sampled_from([1.0, 2.0, 0.25, 3.0, 0.1]))
    return case


def check_weights(case: Case) -> None:
    """See what is checked of each change."""
    training = Training.of(case)
    checks = {"repeated": check_repeated, "left out": check_left_out, "classes": check_classes}
    checks[case["change"]](training)


def check_repeated(training: Training) -> None:
    """A sequence of weight 2 is equivalent to two sequences."""
    parts = weighted_parts(training)
    counts = np.random.default_rng(training.case["data"]["seed"]).integers(1, 4, len(parts))
    repeated = [part for part, count in zip(parts, counts, strict=True) for _ in range(count)]
    weighted = list(map(multiply, parts, counts))
    assert_alike(training.having(weighted).fit(), training.having(repeated).fit())


def check_left_out(training: Training) -> None:
    """A sequence of weight 0 has no effect.

    Its labels, patterns and attributes also occur in another sequence, since they are counted.
    """
    parts = weighted_parts(training)
    places = np.random.default_rng(training.case["data"]["seed"]).integers(0, len(parts), 2)
    others = [multiply(parts[place]._replace(x=reverse(parts[place].x)), 0.0) for place in places]
    less, more = training.having(parts), training.having(parts + others)
    assert_alike(less.fit(), more.fit(), same_cuts=False)


def check_classes(training: Training) -> None:
    """The same weight for all classes is equivalent to that weight for all sequences."""
    factor = training.case["factor"]
    parts = weighted_parts(training)
    labels = {label for part in parts for label in part.labels}
    by_class = training.having(parts)
    weighted = training.having([multiply(part, factor) for part in parts])
    assert_alike(weighted.fit(), by_class.fit(class_weight=dict.fromkeys(labels, factor)))


def weighted_parts(training: Training) -> list[Part]:
    """The sequences, with weight 1 if they have none."""
    return [part._replace(weight=1.0) if part.weight is None else part for part in training.parts()]


def multiply(part: Part, factor: float) -> Part:
    """The same sequence with another weight."""
    return part._replace(weight=part.weight * factor)


def reverse(x: Any) -> Any:
    """The rows of a sequence, the last one first."""
    return x.iloc[::-1] if isinstance(x, pd.DataFrame) else x[::-1]


KINDS = [Kind("metamorphic-weights", weighted_trainings(), check_weights, in_suite=4)]
