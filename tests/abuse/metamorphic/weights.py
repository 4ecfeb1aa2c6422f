"""Weights of sequences and classes."""

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from abuse.kind import Case, Kind
from abuse.metamorphic.alike import DECIDED, assert_alike
from abuse.trainings import Training, trainings

__all__ = ["KINDS"]


@st.composite
def weighted_trainings(draw: st.DrawFn) -> Case:
    """Trainings in which nothing but weights says how often a sequence counts."""
    case = draw(trainings())
    case["change"] = draw(st.sampled_from(["repeated", "left out", "classes"]))
    # Patterns and attributes are counted without weights, and so are quantiles.
    parameters = case["parameters"] | {"min_pattern_count": draw(st.integers(0, 1))}
    if case["estimator"] == "TreeCRF":
        parameters |= DECIDED | {"max_bins": 255}
    else:
        parameters |= {"min_count": 0, "all_pairs": True}
    if case["change"] == "classes" or case["weights"] == "positions":
        # With weights of positions a margin is as wide as they are, but the hinge counts once.
        parameters["objective"] = parameters["objective"].replace("max_margin", "likelihood")
    parameters.pop("class_weight", None)
    case["parameters"] = parameters
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
    """A sequence of weight 2 is two sequences."""
    weights, sequences = read_weights(training), training.sequences()
    counts = np.random.default_rng(training.case["data"]["seed"]).integers(1, 4, len(weights))
    places = np.repeat(np.arange(len(weights)), counts)
    repeated = training.having(
        [sequences[place] for place in places], [weights[place] for place in places]
    )
    pairs = zip(weights, counts, strict=True)
    weighted = training.having(sequences, [weight * count for weight, count in pairs])
    assert_alike(weighted.fit(), repeated.fit())


def check_left_out(training: Training) -> None:
    """A sequence of weight 0 is not there.

    Its labels, patterns and attributes are those of another one, for they would be counted.
    """
    weights, sequences = read_weights(training), training.sequences()
    places = np.random.default_rng(training.case["data"]["seed"]).integers(0, len(weights), 2)
    others = [(reverse(sequences[place][0]), sequences[place][1]) for place in places]
    nothing = [0.0 * weights[place] for place in places]
    less = training.having(sequences, weights)
    more = training.having(sequences + others, weights + nothing)
    assert_alike(less.fit(), more.fit(), same_cuts=False)


def check_classes(training: Training) -> None:
    """The same weight for all classes is that weight for all sequences."""
    factor = training.case["factor"]
    weights, sequences = read_weights(training), training.sequences()
    labels = {label for _, y in sequences for label in y}
    by_class = training.having(sequences, weights)
    weighted = training.having(sequences, [factor * weight for weight in weights])
    assert_alike(weighted.fit(), by_class.fit(class_weight=dict.fromkeys(labels, factor)))


def read_weights(training: Training) -> list[Any]:
    """Weights of the sequences, or of their rows; 1 if there are none."""
    return [1.0 if weight is None else weight for weight in training.sample_weights()]


def reverse(x: Any) -> Any:
    """The rows of a sequence, the last one first."""
    return x.iloc[::-1] if isinstance(x, pd.DataFrame) else x[::-1]


KINDS = [Kind("metamorphic-weights", weighted_trainings(), check_weights, in_suite=8)]
