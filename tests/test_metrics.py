import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.metrics import ChunkScores, chunk_scores
from reference.conlleval import count_chunks


def n_chunks(labels):
    """Number of chunks by type of one labelling."""
    scores = chunk_scores([labels], [labels])
    assert scores.n_true == scores.n_predicted == scores.n_correct
    return {kind: score.n_true for kind, score in scores.by_type.items()}


def agree(one, other):
    """Whether two labellings of one sequence have the same chunks."""
    scores = chunk_scores([one.split()], [other.split()])
    return scores.n_true == scores.n_predicted == scores.n_correct


def test_an_example_worked_by_hand():
    y_true = [["B-NP", "I-NP", "B-VP", "O", "B-NP"], ["O", "B-PP", "B-NP", "I-NP"]]
    y_pred = [["B-NP", "I-NP", "B-NP", "O", "B-NP"], ["B-PP", "I-PP", "B-NP", "B-NP"]]
    # True: NP 0-1, VP 2, NP 4; PP 1, NP 2-3. Predicted: NP 0-1, NP 2, NP 4; PP 0-1, NP 2, NP 3.
    scores = chunk_scores(y_true, y_pred)
    assert (scores.n_true, scores.n_predicted, scores.n_correct) == (5, 6, 2)
    assert (scores.precision, scores.recall) == (2 / 6, 2 / 5)
    assert scores.f1 == pytest.approx(2 * (2 / 6) * (2 / 5) / (2 / 6 + 2 / 5))
    assert list(scores.by_type) == ["NP", "PP", "VP"]
    assert scores.by_type["NP"] == ChunkScores(2 / 5, 2 / 3, 4 / 8, 3, 5, 2, {})
    assert scores.by_type["PP"] == ChunkScores(0.0, 0.0, 0.0, 1, 1, 0, {})
    assert scores.by_type["VP"] == ChunkScores(0.0, 0.0, 0.0, 1, 0, 0, {})


def test_everything_right_and_everything_wrong():
    labels = [["B-X", "I-X", "O"], ["B-Y"]]
    perfect = chunk_scores(labels, labels)
    assert (perfect.precision, perfect.recall, perfect.f1) == (1.0, 1.0, 1.0)
    nothing = chunk_scores(labels, [["O", "O", "B-X"], ["O"]])
    assert (nothing.precision, nothing.recall, nothing.f1) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("y_true", "y_pred"),
    [([], []), ([[]], [[]]), ([["O", "O"]], [["O", "O"]])],
)
def test_nothing_to_find(y_true, y_pred):
    assert chunk_scores(y_true, y_pred) == ChunkScores(0.0, 0.0, 0.0, 0, 0, 0, {})


def test_a_side_without_chunks():
    scores = chunk_scores([["B-X", "O"]], [["O", "O"]])
    assert (scores.precision, scores.recall, scores.f1, scores.n_true) == (0.0, 0.0, 0.0, 1)
    scores = chunk_scores([["O", "O"]], [["B-X", "O"]])
    assert (scores.precision, scores.recall, scores.f1, scores.n_predicted) == (0.0, 0.0, 0.0, 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("B-X I-X O B-X", "I-X I-X O I-X"),  # IOB2 and IOB1
        ("B-X I-X B-X I-X", "I-X I-X B-X I-X"),
        ("B-X B-Y I-Y", "I-X I-Y I-Y"),
        ("B-X I-X I-X O B-Y", "B-X I-X L-X O U-Y"),  # IOB2 and BILOU
        ("B-X I-X B-X B-X I-X", "B-X L-X U-X B-X L-X"),
        ("B-X I-X I-X O B-Y", "B-X I-X E-X O S-Y"),  # IOB2 and IOBES
        ("B-X I-X B-X", "I-X E-X I-X"),  # IOB2 and IOE
    ],
)
def test_the_same_chunks_in_two_schemes(one, other):
    assert agree(one, other)
    assert agree(other, one)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("I-X", {"X": 1}),
        ("O I-X I-X", {"X": 1}),
        ("B-X I-Y", {"X": 1, "Y": 1}),
        ("I-X I-Y I-X", {"X": 2, "Y": 1}),
        ("L-X", {"X": 1}),
        ("L-X L-X", {"X": 2}),
        ("E-X I-X", {"X": 2}),
        ("U-X I-X", {"X": 2}),
        ("U-X U-X S-X", {"X": 3}),
        ("B-X U-X", {"X": 2}),
        ("I-X B-X O O I-Y L-Y", {"X": 2, "Y": 1}),
        ("B I I B O", {"": 2}),
        ("B-A-B I-A-B", {"A-B": 1}),
    ],
)
def test_labellings_that_break_their_scheme(labels, expected):
    assert n_chunks(labels.split()) == expected


def test_chunks_end_with_their_sequence():
    together = chunk_scores([["B-X", "I-X"]], [["B-X", "I-X"]])
    apart = chunk_scores([["B-X"], ["I-X"]], [["B-X"], ["I-X"]])
    assert (together.n_true, apart.n_true) == (1, 2)


def test_labels_may_come_as_arrays_and_from_generators():
    y = [["B-X", "O"], ["B-Y", "I-Y"]]
    expected = chunk_scores(y, y)
    arrays = [np.array(labels) for labels in y]
    assert chunk_scores(arrays, y) == expected
    assert chunk_scores(iter(y), (labels for labels in arrays)) == expected
    assert chunk_scores(np.array(y), np.array(y, dtype=object)) == expected


def test_wrong_lengths():
    message = "y_true has 2 sequences but y_pred has 1"
    with pytest.raises(ValueError, match=message):
        chunk_scores([["O"], ["O"]], [["O"]])
    message = "sequence 1 has 1 labels in y_true but 2 in y_pred"
    with pytest.raises(ValueError, match=message):
        chunk_scores([["O"], ["O"]], [["O"], ["O", "O"]])


@pytest.mark.parametrize("flat", [["B-X", "O"], np.array(["B-X", "O"])])
def test_flat_labels(flat):
    message = "sequence 0 is a string; expected lists of labels: wrap flat labels, [y_true], or"
    with pytest.raises(TypeError, match=re.escape(message)):
        chunk_scores(flat, flat)
    assert chunk_scores([flat], [flat]).n_correct == 1


labels = st.sampled_from(["O", *(f"{tag}-{kind}" for tag in "BILEUS" for kind in "XY")])
pairs = st.lists(st.lists(st.tuples(labels, labels), max_size=8), max_size=3)


@settings(max_examples=500, deadline=None)
@given(pairs)
def test_counts_equal_those_of_the_evaluation_script(pairs):
    y_true = [[true for true, _ in sequence] for sequence in pairs]
    y_pred = [[predicted for _, predicted in sequence] for sequence in pairs]
    scores = chunk_scores(y_true, y_pred)
    expected = count_chunks(y_true, y_pred)
    found = {
        kind: [score.n_true, score.n_predicted, score.n_correct]
        for kind, score in scores.by_type.items()
    }
    assert found == expected
    totals = np.sum([*expected.values(), [0, 0, 0]], axis=0).tolist()
    assert [scores.n_true, scores.n_predicted, scores.n_correct] == totals
