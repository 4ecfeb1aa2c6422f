"""Dicts and text columns are attributes, and their numbers count with their signs."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hedgerow import LinearCRF
from hedgerow.shown import with_plain_tables


def weights_by_name(crf):
    """All weights, by everything else that the tables say about them."""
    weights = {}
    plain = with_plain_tables(crf)
    for table in (plain.weights(), plain.transition_weights()):
        keys = zip(*(table[name].tolist() for name in table if name != "weight"), strict=True)
        weights |= dict(zip(keys, table["weight"].tolist(), strict=True))
    assert len(weights) == crf.n_weights_
    return weights


@pytest.mark.parametrize(
    "values", [[2.0, -2.0, -1.0, 1.0, -3.0, 3.0], [0.0, -0.5, 0.0, -0.5, -0.5, 0.0, 0.0]]
)
def test_negative_numbers_count(values):
    # Only the sign tells the labels apart, also where most numbers are zero.
    x = np.array(values)
    y = np.where(x < 0, "minus", "plus")
    for X in ([x[:, None]], [[{"value": value} for value in x]]):
        assert LinearCRF(reg_lambda=0.01).fit(X, [y]).score(X, [y]) == 1.0


# Text columns.

WORDS = [["the", "old", "man"], ["man"], ["the", "man", None], ["old", "old"]]
SIZES = [[1.5, 0.0, -2.0], [1.0], [0.5, 3.0, 1.0], [2.0, 1.0]]
TAGS = [["D", "A", "N"], ["N"], ["D", "N", "A"], ["A", "N"]]


def as_dicts():
    return [
        [{"word": w, "size": z} if w else {"size": z} for w, z in zip(words, sizes, strict=True)]
        for words, sizes in zip(WORDS, SIZES, strict=True)
    ]


def as_frames(library):
    return [
        library.DataFrame({"word": words, "size": sizes})
        for words, sizes in zip(WORDS, SIZES, strict=True)
    ]


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_text_columns_equal_strings_in_dicts(library, edges):
    on_dicts = LinearCRF(transition_attributes=edges).fit(as_dicts(), TAGS)
    on_frames = LinearCRF(transition_attributes=edges).fit(as_frames(library), TAGS)
    assert set(on_frames.attributes_) == {"size", "word:man", "word:old", "word:the"}
    assert on_frames.loss_ == pytest.approx(on_dicts.loss_, rel=1e-9)
    expected = pytest.approx(weights_by_name(on_dicts), rel=1e-6, abs=1e-9)
    assert weights_by_name(on_frames) == expected
    for found, same in zip(
        on_frames.predict(as_frames(library)), on_dicts.predict(as_dicts()), strict=True
    ):
        np.testing.assert_array_equal(found, same)


def test_text_that_is_not_valid_unicode():
    frame = pd.DataFrame({"c": ["\ud800", "a"]}, dtype=object)
    with pytest.raises(ValueError, match=r"ud800', which is not valid Unicode .* repair or remove"):
        LinearCRF().fit(frame, ["a", "b"])
