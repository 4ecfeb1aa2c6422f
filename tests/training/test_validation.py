"""Held-out data: which sequences, which part of a single one, and training on the others."""

import re

import numpy as np
import pytest

from hedgerow import DataWarning, LinearCRF, _core
from hedgerow.encode import encode
from hedgerow.objectives import Likelihood
from hedgerow.training.labelled import read_labelled
from hedgerow.training.validation import hold_out

Y = [["a", "b"], ["b"], ["a", "a", "b"], ["b", "a"], ["a"], ["b", "b"]]


def divide(y, share=0.34, seed=None, sample_weight=None, X=None, **parameters):
    """Training and held-out positions, as lists of (sequence, position)."""
    if X is None:
        X = [np.array([[s, t] for t in range(len(labels))]) for s, labels in enumerate(y)]
    labelled = read_labelled(
        LinearCRF(**parameters),
        encode(X),
        _core.StringIndex(),
        y,
        sample_weight,
        objective=Likelihood(),
    )
    parts = hold_out(labelled, share, seed)
    return [list(map(tuple, part.sequences.dense.astype(int).tolist())) for part in parts]


def numbers(places):
    return sorted({s for s, _ in places})


@pytest.mark.parametrize("seed", [None, 0, 1, np.int64(2), np.random.RandomState(3)])
def test_whole_sequences_are_held_out(seed):
    learnt, held = divide(Y, seed=seed)
    assert len(numbers(held)) == 2
    assert sorted(learnt + held) == [
        (s, t) for s, labels in enumerate(Y) for t in range(len(labels))
    ]
    assert not set(numbers(learnt)) & set(numbers(held))
    assert learnt == sorted(learnt)  # in the order of the training data
    assert divide(Y, seed=seed) == [learnt, held]


def test_seeds_hold_out_others():
    assert len({tuple(divide(Y, seed=seed)[1]) for seed in range(8)}) > 2


@pytest.mark.parametrize(("share", "n_held"), [(0.1, 1), (0.5, 3), (0.7, 4), (0.99, 5)])
def test_shares_are_rounded_and_leave_something(share, n_held):
    y = [["a", "b"]] * 6
    assert len(numbers(divide(y, share)[1])) == n_held


@pytest.mark.parametrize("seed", range(5))
def test_a_label_that_one_sequence_has_is_learnt(seed):
    learnt, held = divide([*Y, ["a", "new"]], seed=seed)
    assert 6 in numbers(learnt)
    assert len(numbers(held)) == 2


def test_labels_that_each_sequence_has_alone():
    learnt, held = divide([["a"], ["b"], ["c"]])
    assert len(numbers(held)) == 1
    assert len(numbers(learnt)) == 2


@pytest.mark.parametrize("seed", range(3))
def test_sequences_that_do_not_count_are_not_held_out(seed):
    y = [["a", "b"], ["?", "?"], ["b", "a"], ["a", "b"]]
    options = {"seed": seed, "missing_label": "?", "sample_weight": [1, 1, 1, 0]}
    learnt, held = divide(y, **options)
    assert numbers(held) in ([0], [2])
    assert {1, 3} <= set(numbers(learnt))


@pytest.mark.parametrize("X", [[np.array([[0, t] for t in range(10)])], "flat"])
def test_the_end_of_a_lone_sequence_is_held_out(X):
    y = list("aabbabbaab")
    if X == "flat":
        X, y = np.array([[0, t] for t in range(10)]), np.array(y)
    learnt, held = divide([y] if isinstance(X, list) else y, 0.3, X=X)
    assert learnt == [(0, t) for t in range(7)]
    assert held == [(0, t) for t in range(7, 10)]


def test_known_labels_of_a_lone_sequence_are_counted():
    y = [["a", "b", None, None, None, "a", None, "b", "?", "?"], [None]]
    learnt, held = divide(y, 0.5, missing_label="?")
    assert held == [(0, t) for t in range(5, 10)]
    assert (1, 0) in learnt
    learnt, held = divide(y, 0.01, missing_label="?")
    assert held == [(0, t) for t in range(7, 10)]


def test_a_lone_sequence_is_cut_where_constraints_allow():
    y = [["O", "B", "I", "I", "O", "B", "I", "I"]]
    assert divide(y, 0.4, constraints="BIO")[1] == [(0, t) for t in range(5, 8)]
    assert divide(y, 0.1, constraints="BIO")[1] == [(0, t) for t in range(5, 8)]
    assert divide(y, 0.9, end_labels=["I"])[1] == [(0, t) for t in range(3, 8)]
    with pytest.raises(
        ValueError, match="no place in it where the constraints let one sequence end"
    ):
        divide([["B", "I", "I", "I"]], constraints="BIO")


@pytest.mark.filterwarnings("ignore:y has a single label")
@pytest.mark.parametrize(("y", "n_known"), [([["a"]], 1), ([["a", None], [None]], 1)])
def test_too_few_labels(y, n_known):
    message = (
        "validation_fraction is 0.34, but the number of known labels of y with a weight "
        f"above 0 is {n_known}, too few to train on some and hold out others; pass an eval_set "
        "(--dev on the command line), or set early_stopping_rounds=None"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        divide(y)


def test_too_few_sequences_for_the_share():
    message = (
        "validation_fraction is 0.1 and there are 3 training sequences: one of them, 33% of "
        "all, is held out for early stopping and not trained on; pass an eval_set (--dev on "
        "the command line), divide long sequences, or set early_stopping_rounds=None"
    )
    with pytest.warns(DataWarning, match=re.escape(message)):
        divide([["a", "b"]] * 3, 0.1)
    divide([["a", "b"]] * 5, 0.1)


def test_nothing_is_held_out_unless_asked_for():
    crf, X = LinearCRF(), encode([np.zeros((2, 1))])
    labelled = read_labelled(crf, X, _core.StringIndex(), [["a", "b"]], objective=Likelihood())
    assert hold_out(labelled, None, 0) == (labelled, None)
