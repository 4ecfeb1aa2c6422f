"""A window is columns copied from neighbours; text and categories are split in one go."""

import numpy as np
import pandas as pd
import pytest

from hedgerow import TreeCRF
from reference.boosting import assert_same_model
from reference.linear import make_data

OPTIONS = {"n_rounds": 6, "max_depth": 3, "min_child_weight": 0.1, "n_jobs": 1}
X, Y = make_data(n_sequences=20, longest=6)


def fit(X, y=Y, **options):
    return TreeCRF(**(OPTIONS | options)).fit(X, y)


# A window.


def copy_window(x, before, after):
    """Columns of a position and its neighbours, NaN beyond the ends."""
    parts = []
    for offset in range(-before, after + 1):
        moved = np.full(x.shape, np.nan)
        for t in range(len(x)):
            if 0 <= t + offset < len(x):
                moved[t] = x[t + offset]
        parts.append(moved)
    # All offsets of a column side by side: of equal splits the first is taken.
    return np.stack(parts, axis=2).reshape(len(x), -1)


# A copied column cannot tell what is missing from what is outside.
@pytest.mark.parametrize(
    ("window", "gaps"),
    [*((window, False) for window in (0, 1, (2, 0), (3, 1), (0, 9))), (0, True)],
)
def test_a_window_equals_copied_columns(window, gaps):
    given = X
    if gaps:
        rng = np.random.default_rng(0)
        given = [np.where(rng.random(x.shape) < 0.2, np.nan, x) for x in X]
    before, after = window if isinstance(window, tuple) else (window, window)
    copied = [copy_window(x, before, after) for x in given]
    crf, same = fit(given, window=window), fit(copied)
    assert crf.history_ == same.history_
    np.testing.assert_array_equal(crf.predict_proba(given), same.predict_proba(copied))
    ours, theirs = crf._trees.forest, same._trees.forest
    splits = ours.columns >= 0
    place = ours.columns * (before + after + 1) + ours.offsets + before
    np.testing.assert_array_equal(place[splits], theirs.columns[splits])
    assert crf.feature_importances_.sum() == pytest.approx(1)
    for alone in given[:3]:  # the next sequence is out of sight
        part = np.concatenate(same.predict_marginals([copy_window(alone, before, after)]))
        np.testing.assert_array_equal(crf.predict_proba([alone]), part)


def test_the_forms_of_a_window():
    assert_same_model(fit(X, window=(2, 2)), fit(X, window=2))
    assert_same_model(fit(X, window=[1, 2]), fit(X, window=(np.int64(1), np.uint8(2))))


def test_a_window_wider_than_any_sequence():
    crf = fit(X, window=255)
    assert crf.importances()["offset"].max() < 6
    assert fit([x[:1] for x in X], [y[:1] for y in Y], window=3).score(X, Y) > 0


# Text and categories.


def make_text(n_categories, n_rows=200, seed=0):
    """Words, and labels that depend on their numbers."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_categories, n_rows)
    words = [f"w{code:04d}" for code in codes]
    return words, np.where(codes % 3 == 0, "p", np.where(codes % 3 == 1, "q", "r")), codes


def test_a_category_is_split_in_one_go():
    words, labels, codes = make_text(12)
    text = fit(pd.DataFrame({"word": words}), labels, order=0, n_rounds=1, max_depth=1)
    number = fit(codes[:, None], labels, order=0, n_rounds=1, max_depth=1)
    assert text.loss_ < number.loss_
    assert text.history_["accuracy"][0] == 1


def test_a_column_of_a_thousand_words_is_an_attribute_for_each():
    words, labels, _ = make_text(1000, n_rows=3000)
    frame = pd.DataFrame({"noise": np.arange(3000) % 7, "word": words})
    crf = fit(frame, labels, order=0, max_depth=None, max_leaves=50, n_rounds=4, max_step=None)
    dicts = [{"noise": n % 7, f"word={word}": 1} for n, word in enumerate(words)]
    same = fit([dicts], [labels], order=0, max_depth=None, max_leaves=50, n_rounds=4, max_step=None)
    assert crf.history_["loss"] == pytest.approx(same.history_["loss"], rel=1e-6)
    assert crf.feature_importances_.shape == (2,)
    assert crf.feature_importances_[1] > 0.9
    names = set(crf.importances()["feature"])
    assert names - {"noise"} <= {f"word={word}" for word in words}


def test_dicts_of_strings_numbers_and_flags():
    items = [
        [{"w": "the", "n": 1.5, "up": False}, {"w": "old", "n": 0, "up": True}, {"w": "man"}],
        [{"w": "man", "up": True}, {}],
    ]
    y = [["D", "A", "N"], ["N", "A"]]
    crf = fit(items, y, min_child_weight=0, n_rounds=30)
    assert crf.score(items, y) == 1
    assert set(crf.importances()["feature"]) <= {"w:the", "w:old", "w:man", "n", "up"}
    new = crf.predict_proba([[{"w": "woman", "other": 3.0}, {"w": "man"}]])
    np.testing.assert_array_equal(new, crf.predict_proba([[{}, {"w": "man"}]]))
