"""Scores of chunks: when they make sense, and with labels that are missing."""

import pytest

from hedgerow.metrics.known_chunks import look_like_chunks, score_known_chunks


@pytest.mark.parametrize(
    ("labels", "answer"),
    [
        (["O", "B-NP", "I-NP"], True),
        (["S-x", "E-x", "L-x", "U-x"], True),
        (["O"], False),
        (["B-", "O"], False),
        (["B-NP", "NN"], False),
        ([1, 2], False),
        ([], False),
    ],
)
def test_labels_that_look_like_chunks(labels, answer):
    assert look_like_chunks(labels) is answer


def test_positions_without_a_label_are_left_out():
    scores = score_known_chunks([["B-NP", None, "O"]], [["B-NP", "B-VP", "O"]])
    assert (scores.n_true, scores.n_predicted, scores.f1) == (1, 1, 1.0)
