"""Other names of the labels."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from abuse.kind import Case, Kind
from abuse.metamorphic.alike import assert_alike, decided
from abuse.metamorphic.answers import Answers, answers, assert_same_answers
from abuse.training import LABELS, Training, mark_of
from abuse.trainings import trainings

__all__ = ["KINDS"]

# Names in the same order.
RISING: list[list[Any]] = [
    ["A", "AA", "B-x", "a long name of a label"],
    [-(2**62), -1, 0, 2**62],
    [0, 1, 2, 3],
    ["", " ", "0", "ß"],
]


@st.composite
def renamed_trainings(draw: st.DrawFn) -> Case:
    """Trainings, and other names of their labels; those of a scheme keep their prefixes."""
    case = draw(trainings())
    case["mixed"] = draw(st.booleans())
    if case["constrained"] == "scheme":
        types = {"x": "a-long type", "y": "é"}
        if case["mixed"]:
            types = {"x": "é", "y": "a-long type"}
        labels = LABELS[case["data"]["labels"]]
        case["names"] = [label[:2] + types.get(label[2:], "") for label in labels]
        return case
    case["names"] = draw(st.sampled_from(RISING))
    if case["mixed"]:
        case["names"] = draw(st.permutations(case["names"]))
    return case


def check_labels(case: Case) -> None:
    """Names in the same order change nothing; in another order, only rounding changes."""
    names = dict(zip(LABELS[case["data"]["labels"]], case["names"], strict=True))
    mark = mark_of(case["data"])
    if mark is not None:
        names[mark] = "?" if isinstance(case["names"][0], str) else -9
    if case["mixed"]:
        check_mixed(Training.of(decided(case)), names)
        return
    training = Training.of(case)
    renamed, parameters = rename_all(training, names)
    first, second = training.fit(), renamed.fit(**parameters)
    assert first.loss_ == second.loss_
    assert first.history_ == second.history_
    expected = answers(first, training)
    assert_same_answers(answers(second, renamed), translate(expected, names))


def check_mixed(training: Training, names: dict[Any, Any]) -> None:
    if training.case["parameters"]["objective"] in ("max_margin", "accuracy"):
        return  # of equally good labellings or labels, the first is chosen, with its slopes
    renamed, parameters = rename_all(training, names)
    first, second = training.fit(), renamed.fit(**parameters)
    assert_alike(first, second, lambda label: names[as_python(label)])


def as_python(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def rename_all(training: Training, names: dict[Any, Any]) -> tuple[Training, dict[str, Any]]:
    """The same training with other names of the labels, and its parameters that name them."""

    def rename(value: Any) -> Any:
        """A label, or a list, tuple or dict of them; None stays what it is."""
        if isinstance(value, list | tuple):
            return type(value)(map(rename, value))
        if isinstance(value, dict):
            return {
                rename(label): rename(weight) if isinstance(weight, dict) else weight
                for label, weight in value.items()
            }
        return None if value is None else names[as_python(value)]

    renamed = training.changed(
        lambda part: part._replace(y=rename(list(part.y)), labels=rename(part.labels))
    )
    kept = ("constraints", "group_column")  # these name no labels
    parameters = training.label_parameters().items()
    found = {name: rename(value) for name, value in parameters if name not in kept}
    monotone = training.column_parameters().get("monotone_constraints")
    if monotone is not None:
        found["monotone_constraints"] = {
            column: rename(directions) for column, directions in monotone.items()
        }
    return renamed, found


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


KINDS = [Kind("metamorphic-labels", renamed_trainings(), check_labels, in_suite=3)]
