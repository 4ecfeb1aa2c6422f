"""Other names of the labels."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from abuse.kind import Case, Kind
from abuse.metamorphic.alike import DECIDED, assert_alike
from abuse.metamorphic.answers import Answers, answers, assert_same_answers
from abuse.trainings import LABELS, Training, trainings

__all__ = ["KINDS"]

# Names that stand in the same order.
RISING: list[list[Any]] = [
    ["A", "AA", "B-x", "a long name of a label"],
    [-(2**62), -1, 0, 2**62],
    [0, 1, 2, 3],
    ["", " ", "0", "ß"],
]


@st.composite
def renamed_trainings(draw: st.DrawFn) -> Case:
    """Trainings, and other names of their labels."""
    case = draw(trainings())
    case["names"] = draw(st.sampled_from(RISING))
    case["mixed"] = draw(st.booleans())
    if case["mixed"]:
        case["names"] = draw(st.permutations(case["names"]))
    return case


def check_labels(case: Case) -> None:
    """Names in the same order change nothing; in another order, what rounding changes."""
    training = Training.of(case)
    names = dict(zip(LABELS[case["data"]["labels"]], case["names"], strict=True))
    sequences = [(x, [rename(names, label) for label in y]) for x, y in training.sequences()]
    renamed = training.having(sequences, training.sample_weights())
    if case["mixed"]:
        check_mixed(training, renamed, names)
        return
    first, second = training.fit(), renamed.fit()
    assert first.loss_ == second.loss_
    assert first.history_ == second.history_
    expected = answers(first, training)
    assert_same_answers(answers(second, renamed), translate(expected, names))


def check_mixed(training: Training, renamed: Training, names: dict[Any, Any]) -> None:
    if training.case["parameters"]["objective"] in ("max_margin", "accuracy"):
        return  # of labellings, or labels, that score the same they take the first, and its slopes
    changes = DECIDED if training.case["estimator"] == "TreeCRF" else {}
    constraints = training._constraints()
    moved = {name: rename_all(names, value) for name, value in constraints.items()}
    first, second = training.fit(**changes), renamed.fit(**changes | moved)
    assert_alike(first, second, lambda label: names[as_python(label)])


def as_python(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def rename(names: dict[Any, Any], label: Any) -> Any:
    """None stays what it is."""
    return None if label is None else names[as_python(label)]


def rename_all(names: dict[Any, Any], value: Any) -> Any:
    """In a list of labels, or of pairs of them."""
    return [
        tuple(rename(names, label) for label in member)
        if isinstance(member, tuple)
        else rename(names, member)
        for member in value
    ]


def translate(given: Answers, names: dict[Any, Any]) -> Answers:
    """Labels in other names."""

    def translate_array(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind == "f":
            return array
        members = [names[label] for label in array.ravel().tolist()]
        return np.array(members, dtype=object).reshape(array.shape)

    return {
        name: [[translate_array(array) for array in part] for part in parts]
        for name, parts in given.items()
    }


KINDS = [Kind("metamorphic-labels", renamed_trainings(), check_labels, in_suite=8)]
