"""The feature template of the examples: attributes of words."""

import sys

import numpy as np
import pytest

from reference.pages import ROOT


@pytest.fixture(scope="module")
def features():
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        import text_features
    finally:
        del sys.path[0]
    return text_features


def sentence(features, text):
    return [features.Token(word, "X", "O") for word in text.split()]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("I-PER I-PER O", "B-PER E-PER O"),  # IOB1
        ("B-PER I-PER B-PER", "B-PER E-PER S-PER"),
        ("I-PER B-PER I-LOC", "S-PER S-PER S-LOC"),
        ("B-LOC I-LOC I-LOC I-PER", "B-LOC I-LOC E-LOC S-PER"),
        ("O", "O"),
    ],
)
def test_labels_become_bioes(features, labels, expected):
    assert features.to_bioes(labels.split()) == expected.split()


def test_shapes(features):
    assert features.long_shape("Lyon-12") == "Aaaa-00"
    assert features.short_shape("Lyon-12") == "Aa-0"


def test_neighbours_beyond_the_ends_are_outside(features):
    found = set(features.words(sentence(features, "Paris"), 0))
    assert {"word0=Paris", "lower0=paris", "word-1=<outside>", "word1=<outside>"} <= found


def test_repetition_sees_the_longer_name_elsewhere(features):
    document = [sentence(features, "Clinton spoke ."), sentence(features, "then Bill Clinton left")]
    found = set(features.describe(document, ["repetition"])[0][0])
    assert {"again-1=Bill", "again+1=left", "again_first=Bill", "again_run=last/2"} <= found


def test_acronyms_are_those_of_names_in_the_document(features):
    document = [sentence(features, "the United Nations met"), sentence(features, "UN peace")]
    assert "acronym" in features.describe(document, ["repetition"])[1][0]


def test_a_second_look_leaves_out_the_word_itself(features):
    document = [sentence(features, "Weber left"), sentence(features, "Weber spoke")]
    classes = ["O", "S-LOC", "S-PER"]
    first, second = np.array([[0, 1, 0], [1, 0, 0]]), np.array([[0, 0, 1], [1, 0, 0]])
    found = features.second_look(document, [first, second], classes)
    assert found[0] == [["elsewhere=PER", "elsewhere_PER=4"], []]
    assert found[1] == [["elsewhere=LOC", "elsewhere_LOC=4"], []]
