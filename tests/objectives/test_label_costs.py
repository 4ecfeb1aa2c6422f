"""What mistakes cost, in every form that a user may give."""

import re

import numpy as np
import pandas as pd
import pytest

from hedgerow.labels import Labels
from hedgerow.objectives import LabelCosts

LABELS = Labels(np.array(["A", "B", "C"]))
HAMMING = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ("hamming", HAMMING),
        (np.array("hamming"), HAMMING),
        (1, HAMMING),
        (np.float32(0.5), [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]),
        (0, np.zeros((3, 3)).tolist()),
        ({}, HAMMING),
        ({"B": 5}, [[0, 1, 1], [5, 0, 5], [1, 1, 0]]),
        ({"B": {"A": 5}, "C": {"B": 0, "C": 0.0}}, [[0, 1, 1], [5, 0, 1], [1, 0, 0]]),
        ([[0, 1, 2], (3, 0, 4), np.array([5, 6, 0])], [[0, 1, 2], [3, 0, 4], [5, 6, 0]]),
        (np.triu(np.ones((3, 3)), 1), [[0, 1, 1], [0, 0, 1], [0, 0, 0]]),
    ],
)
def test_forms_of_costs(costs, expected):
    found = LabelCosts.read(costs).among(LABELS)
    assert found.tolist() == [*expected, [0, 0, 0]]


def test_costs_of_labels_that_are_numbers():
    found = LabelCosts.read({7: {3: 2.0}}).among(Labels(np.array([3, 7])))
    assert found.tolist() == [[0, 1], [2, 0], [0, 0]]


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ("zero-one", "label_costs is 'zero-one'; expected 'hamming', a number, a dict {true label"),
        (None, "label_costs is None; expected 'hamming', a number, a dict {true label: cost} or"),
        (True, "label_costs is True; expected a number from 0 to 100000"),
        (-0.5, "label_costs is -0.5; expected a number from 0 to 100000"),
        (float("nan"), "label_costs is nan; expected a number from 0 to 100000"),
        (1e6, "label_costs is 1000000.0; expected a number from 0 to 100000"),
        ({"A": -1}, "label_costs['A'] is -1; expected a number from 0 to 100000"),
        ({"A": "high"}, "label_costs['A'] is 'high'; expected a number from 0 to 100000"),
        ({"A": {"B": float("inf")}}, "label_costs['A']['B'] is inf; expected a number from 0 to"),
        ({"A": {"A": 1}}, "label_costs['A']['A'] is 1; a correct label has no cost"),
        ({("A", "B"): 2}, "label_costs has the key ('A', 'B'); expected true labels as keys, and"),
        ([[0, 1], [1]], "label_costs is a list but not a matrix of numbers; expected 'hamm"),
        ([["0", "x"], ["1", "0"]], "label_costs is a list but not a matrix of numbers; expect"),
        ([0, 1, 1], "label_costs has shape (3,); expected a square matrix"),
        (np.ones((2, 3)), "label_costs has shape (2, 3); expected a square matrix"),
        ([[0, 1], [np.nan, 0]], "label_costs[1][0] is nan; expected a number from 0 to 100000"),
        ([[0, -2], [1, 0]], "label_costs[0][1] is -2.0; expected a number from 0 to 100000"),
        ([[0, 2], [1, 3]], "label_costs[1][1] is 3.0; a correct label has no cost: expected"),
    ],
)
def test_costs_that_make_no_sense(costs, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        LabelCosts.read(costs)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"D": 1}, "label_costs has the unknown label 'D'; known labels: 'A', 'B', 'C'"),
        ({"A": {1: 1}}, "label_costs has the unknown label 1; known labels: 'A', 'B', 'C'"),
        (
            [[0, 1], [1, 0]],
            "label_costs has shape (2, 2), but y has 3 labels; expected shape (3, 3), in the order "
            "'A', 'B', 'C'",
        ),
    ],
)
def test_costs_of_other_labels(costs, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LabelCosts.read(costs).among(LABELS)


def test_what_has_no_order_is_no_matrix():
    with pytest.raises(TypeError, match=r"^label_costs is of type DataFrame; expected numbers"):
        LabelCosts.read(pd.DataFrame([[0, 1], [1, 0]]))
