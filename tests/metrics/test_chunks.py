import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.metrics import ChunkScores, Scores, chunk_scores
from reference.conlleval import count_chunks
from reference.strict_chunks import count_strictly


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
    assert scores.by_type["NP"] == Scores(2 / 5, 2 / 3, 4 / 8, 3, 5, 2)
    assert scores.by_type["PP"] == Scores(0.0, 0.0, 0.0, 1, 1, 0)
    assert scores.by_type["VP"] == Scores(0.0, 0.0, 0.0, 1, 0, 0)


def test_everything_right_and_everything_wrong():
    labels = [["B-X", "I-X", "O"], ["B-Y"]]
    perfect = chunk_scores(labels, labels)
    assert (perfect.precision, perfect.recall, perfect.f1) == (1.0, 1.0, 1.0)
    nothing = chunk_scores(labels, [["O", "O", "B-X"], ["O"]])
    assert (nothing.precision, nothing.recall, nothing.f1) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("y_true", "y_pred"), [([], []), ([[]], [[]]), ([["O", "O"]], [["O", "O"]])]
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
    message = "sequence 1 has 1 label in y_true but 2 in y_pred"
    with pytest.raises(ValueError, match=message):
        chunk_scores([["O"], ["O"]], [["O"], ["O", "O"]])


@pytest.mark.parametrize("label", ["walk", 1, None])
def test_labels_that_are_no_chunks(label):
    message = f"label {label!r} does not mark chunks; expected 'O', or a prefix such as B or I, a"
    with pytest.raises(ValueError, match=message):
        chunk_scores([["B-X", "O"]], [["B-X", label]])
    assert chunk_scores([["B", "I", "O"]], [["B", "O", "M-X"]]).n_predicted == 2


@pytest.mark.parametrize("flat", [["B-X", "O"], np.array(["B-X", "O"])])
def test_flat_labels(flat):
    message = "sequence 0 is a string; expected lists of labels: wrap flat labels, [y_true], or"
    with pytest.raises(TypeError, match=re.escape(message)):
        chunk_scores(flat, flat)
    assert chunk_scores([flat], [flat]).n_correct == 1


@st.composite
def labellings(draw, prefixes):
    """Two labellings of a few sequences with these prefixes, which agree here and there."""
    labels = np.array(["O", *(f"{tag}-{kind}" for tag in prefixes for kind in "XY")])
    lengths, agreed = draw(st.lists(st.integers(0, 8), max_size=2)), draw(st.floats(0, 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y_true = [rng.choice(labels, length) for length in lengths]
    y_pred = [np.where(rng.random(len(y)) < agreed, y, rng.choice(labels, len(y))) for y in y_true]
    return [y.tolist() for y in y_true], [y.tolist() for y in y_pred]


def assert_counts(scores, expected):
    found = {
        kind: [score.n_true, score.n_predicted, score.n_correct]
        for kind, score in scores.by_type.items()
    }
    assert found == expected
    totals = np.sum([*expected.values(), [0, 0, 0]], axis=0).tolist()
    assert [scores.n_true, scores.n_predicted, scores.n_correct] == totals


@settings(max_examples=100, deadline=None)
@given(labellings("BILEUS"))
def test_counts_equal_those_of_the_evaluation_script(both):
    assert_counts(chunk_scores(*both), count_chunks(*both))


@pytest.mark.parametrize(
    ("scheme", "prefixes"), [("IOB2", "BI"), ("IOE2", "IE"), ("IOBES", "BIES"), ("BILOU", "BILU")]
)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_strict_counts_equal_those_of_patterns(scheme, prefixes, data):
    both = data.draw(labellings(prefixes))
    assert_counts(chunk_scores(*both, scheme=scheme), count_strictly(*both, scheme))


@pytest.mark.parametrize(
    ("scheme", "labels", "n_found"),
    [
        ("IOB2", "I-X I-X O B-X I-Y", 1),
        ("IOB2", "B-X B-X I-X", 2),
        ("IOE2", "I-X E-X E-X I-X", 2),
        ("IOE2", "I-X I-Y E-Y", 1),
        ("IOBES", "B-X O S-X B-X E-X", 2),
        ("IOBES", "B-X B-X E-X I-X E-X", 1),
        ("BILOU", "B-X I-X U-X L-X B-Y L-Y", 2),
    ],
)
def test_strict_chunks_by_hand(scheme, labels, n_found):
    assert chunk_scores([labels.split()], [labels.split()], scheme=scheme).n_true == n_found


@pytest.mark.parametrize(("name", "other"), [("BIO", "IOB2"), ("BIOES", "IOBES")])
def test_schemes_have_the_names_of_constraints_too(name, other):
    y = [["B-X", "I-X", "I-X", "O"]]
    assert chunk_scores(y, y, scheme=name) == chunk_scores(y, y, scheme=other)


def test_labellings_that_keep_to_their_scheme_are_the_same_leniently_and_strictly():
    y_true = [["B-X", "I-X", "E-X", "O", "S-Y"], ["S-X", "B-Y", "E-Y"]]
    y_pred = [["B-X", "E-X", "O", "O", "S-Y"], ["S-X", "B-Y", "E-Y"]]
    assert chunk_scores(y_true, y_pred, scheme="IOBES") == chunk_scores(y_true, y_pred)


def test_wrong_schemes():
    message = "scheme is 'IOB3'; expected one of 'IOB2', 'IOE2', 'IOBES', 'BILOU', or leave it out"
    with pytest.raises(ValueError, match=message):
        chunk_scores([["O"]], [["O"]], scheme="IOB3")
    message = "label 'S-X' does not fit scheme 'IOB2'; expected 'O', or one of B, I, alone or with"
    with pytest.raises(ValueError, match=message):
        chunk_scores([["O", "B-X"]], [["S-X", "O"]], scheme="IOB2")
