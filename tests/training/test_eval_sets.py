"""Eval sets: reading them, and metrics from their scores."""

import re

import numpy as np
import pytest
from scipy.special import expit

from hedgerow import LinearCRF, _core
from hedgerow.decoding import DECODERS
from hedgerow.encode import encode
from hedgerow.objectives import Accuracy, ExpectedAccuracy, Likelihood, OfMarginals, Pointwise
from hedgerow.training.eval_sets import EvalSet, read_eval_sets
from hedgerow.training.labelled import read_labelled
from hedgerow.training.training_set import TrainingSet
from reference.scores import scores_of, targets_of

X = [np.zeros((2, 1)), np.zeros((1, 1)), np.zeros((3, 1))]
Y = [["a", "b"], ["b"], ["b", "a", "a"]]


def encode_raw(raw):
    return encode(raw.X, raw.groups)


def read(eval_set, reader=encode_raw, **parameters):
    objective = Likelihood()
    crf, index = LinearCRF(**parameters), _core.StringIndex()
    labelled = read_labelled(crf, encode(X), index, Y, objective=objective)
    data = TrainingSet.learn(crf, labelled, objective=objective)
    return read_eval_sets(eval_set, data, reader, missing_label="?", objective=objective)


def test_labels_are_read_as_in_training():
    (found,) = read((X[:2], [["b", "?"], ["a"]]))
    assert found.name == "eval"
    assert found.targets.codes.tolist() == [1, -1, 0]
    assert found.targets.offsets.tolist() == found.sequences.offsets.tolist() == [0, 2, 3]
    assert found.targets.n_labels == 2


def test_groups_go_to_the_reader():
    (found,) = read((np.zeros((3, 1)), ["b", "a", "a"], [7, 7, 3]))
    assert found.sequences.flat
    assert found.targets.offsets.tolist() == [0, 2, 3]


ONE, TWO = (X, Y), (X[:1], Y[:1])


@pytest.mark.parametrize(
    ("eval_set", "names"),
    [
        (None, []),
        (ONE, ["eval"]),
        ([X, Y], ["eval"]),
        ([ONE], ["eval"]),
        ([ONE, TWO], ["eval_0", "eval_1"]),
        ([ONE, (np.zeros((3, 1)), ["b", "a", "a"], [7, 7, 3])], ["eval_0", "eval_1"]),
        ({"dev": ONE, "test": TWO}, ["dev", "test"]),
    ],
)
def test_several_sets_have_names(eval_set, names):
    assert [found.name for found in read(eval_set)] == names


@pytest.mark.parametrize(
    ("eval_set", "message"),
    [
        ((X, [[1, 2], [2], [1] * 3]), "in eval_set: unknown label 1 at y[0][0]"),
        ((X[:1], [["b", "b"]]), "in eval_set: y[0][1] is 'b' after 'b', which the parameter"),
        ((X[:1], [["?", None]]), "in eval_set: every label of y is missing; at least one is"),
        ((X, Y, [1]), "in eval_set: groups is for one flat X"),
        ((X,), "eval_set is of type tuple of length 1; expected (X, y), or (X, y, groups) for a"),
        (5, "eval_set is of type int; expected (X, y), or (X, y, groups) for a flat X, or a"),
        ({"dev": 5}, "eval_set (dev) is of type int; expected (X, y)"),
        ([], "eval_set is []; expected (X, y)"),
        ({}, "eval_set is {}; expected (X, y)"),
        ({"": ONE}, "eval_set has the name ''; expected a non-empty, printable string"),
        ({"\udcff": ONE}, "eval_set has the name '\\udcff'; expected a non-empty, printable"),
        ({1: ONE}, "eval_set has the name 1; expected a non-empty, printable string"),
        ([TWO, (X[:1], [[1, 2]])], "in eval_set (eval_1): unknown label 1 at y[0][0]"),
        ({"dev": (X[:1], [[1, 2]])}, "in eval_set (dev): unknown label 1 at y[0][0]"),
    ],
)
def test_eval_sets_that_make_no_sense(eval_set, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        read(eval_set, forbidden=[("b", "b")])


@pytest.mark.parametrize("eval_set", [(TWO, TWO), [list(TWO), list(TWO)], [TWO, list(TWO)]])
def test_several_sets_in_the_wrong_form(eval_set):
    message = r"If these are several sets, pass them as a list of tuples, \[\(X, y\), \(X, y\)\]$"
    with pytest.raises((TypeError, ValueError), match=message):
        read(eval_set)


def test_errors_of_the_reader_keep_their_kind():
    def reader(raw):
        raise TypeError(f"X is {raw.X!r}")

    with pytest.raises(TypeError, match=r"^in eval_set: X is 5$"):
        read((5, Y), reader)


@pytest.mark.parametrize(
    ("objective", "loss"),
    [
        (Likelihood(), -np.log(3 / 4 * 1 / 5 * 1 / 2)),
        (OfMarginals(Pointwise()), -np.log(3 / 4 * 1 / 5 * 1 / 2)),
        (OfMarginals(ExpectedAccuracy()), -(3 / 4 + 1 / 5 + 1 / 2)),
        (OfMarginals(Accuracy(2.0)), -expit([1.0, -1.2, 0.0]).sum()),
    ],
)
@pytest.mark.parametrize("decode", DECODERS)
def test_figures_worked_by_hand(objective, loss, decode):
    # Without arcs the labels are independent: those that are known have the probabilities 3/4, 1/5
    # and 1/2, and the first and the last of them are also the best.
    offsets, codes = np.array([0, 2, 4]), np.array([0, 1, -1, 0], np.int32)
    found = EvalSet("dev", None, targets_of(offsets, codes, 2), objective, decode)
    nodes = np.log([[3.0, 1.0], [4.0, 1.0], [1.0, 9.0], [1.0, 1.0]])
    potentials = scores_of(nodes, np.zeros((2, 2)), offsets)
    figures = found.measure([potentials], 1)
    assert figures == pytest.approx({"dev_loss": loss / 3, "dev_accuracy": 2 / 3})


@pytest.mark.parametrize("unknown", [[], [1, 4]])
@pytest.mark.parametrize("objective", [Likelihood(), OfMarginals(Accuracy(4.0))])
@pytest.mark.parametrize("decode", DECODERS)
def test_figures_do_not_depend_on_how_sequences_are_cut_into_parts(unknown, objective, decode):
    offsets = np.array([0, 2, 3, 6, 10])
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=10).astype(np.int32)
    codes[unknown] = -1
    found = EvalSet("dev", None, targets_of(offsets, codes, 2), objective, decode)
    whole = scores_of(rng.normal(size=(10, 2)), rng.normal(size=(2, 2)), offsets)
    parts = (whole.part(cut) for cut in (slice(0, 1), slice(1, 3), slice(3, 4)))
    assert found.measure(parts, 1) == pytest.approx(found.measure([whole], 1))
