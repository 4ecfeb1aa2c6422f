"""The same data in any form give the same model, and the answer has the form of the question."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from hedgerow import LinearCRF
from reference.linear import make_data, to_dicts

LIBRARIES = pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])


def named(library, x):
    return library.DataFrame({f"x{j}": column for j, column in enumerate(np.asarray(x).T)})


def group_ids(X):
    return np.repeat(np.arange(len(X)), list(map(len, X)))


# Each form: X as columns, and whether it is flat.
COLUMN_FORMS = {
    "nested lists": (lambda X: [x.tolist() for x in X], False),
    "tuple": (tuple, False),
    "lists of rows": (lambda X: [list(x) for x in X], False),
    "array of objects": (lambda X: np.array([*X, None], dtype=object)[:-1], False),
    "generator": (lambda X: (x for x in X), False),
    "column by column": (lambda X: [np.asfortranarray(x) for x in X], False),
    "every other row": (lambda X: [np.repeat(x, 2, axis=0)[::2] for x in X], False),
    "pandas": (lambda X: [named(pd, x) for x in X], False),
    "pandas without names": (lambda X: [pd.DataFrame(x) for x in X], False),
    "polars": (lambda X: [named(pl, x) for x in X], False),
    "csr arrays": (lambda X: [sparse.csr_array(x) for x in X], False),
    "csc matrices": (lambda X: [sparse.csc_matrix(x) for x in X], False),
    "flat array": (np.concatenate, True),
    "flat lists": (lambda X: np.concatenate(X).tolist(), True),
    "flat pandas": (lambda X: named(pd, np.concatenate(X)), True),
    "flat polars": (lambda X: named(pl, np.concatenate(X)), True),
    "flat coo array": (lambda X: sparse.coo_array(np.concatenate(X)), True),
}


def weights_by_name(crf):
    """All weights, by everything else that the tables say about them."""
    weights = {}
    for table in (crf.weights(), crf.transitions()):
        keys = zip(*(table[name].tolist() for name in table if name != "weight"), strict=True)
        weights |= dict(zip(keys, table["weight"].tolist(), strict=True))
    assert len(weights) == crf.n_weights_
    return weights


@pytest.fixture(scope="module")
def data():
    return make_data(n_sequences=12)


@pytest.fixture(scope="module")
def plain(data):
    return LinearCRF().fit(*data)


@pytest.mark.parametrize("form", COLUMN_FORMS)
def test_all_forms_of_columns_give_the_same_model_to_the_last_bit(data, plain, form):
    X, y = data
    change, flat = COLUMN_FORMS[form]
    extra = {"groups": group_ids(X)} if flat else {}
    given = np.concatenate(y) if flat else y
    crf = LinearCRF().fit(change(X), given, **extra)
    assert crf.loss_ == plain.loss_
    assert weights_by_name(crf) == weights_by_name(plain)
    labels, marginals = crf.predict(change(X), **extra), crf.predict_marginals(change(X), **extra)
    if not flat:
        assert isinstance(labels, list)
        assert isinstance(marginals, list)
        assert list(map(len, labels)) == list(map(len, X))
        labels, marginals = np.concatenate(labels), np.concatenate(marginals)
    np.testing.assert_array_equal(labels, np.concatenate(plain.predict(X)))
    np.testing.assert_array_equal(marginals, plain.predict_proba(X))
    np.testing.assert_array_equal(crf.predict_proba(change(X), **extra), plain.predict_proba(X))
    found = crf.log_likelihood(change(X), given, **extra)
    np.testing.assert_array_equal(found, plain.log_likelihood(X, y))
    assert crf.score(change(X), given, **extra) == plain.score(X, y)


def test_dicts_of_numbers_give_the_same_model(data, plain):
    X, y = data
    crf = LinearCRF().fit(to_dicts(X), y)
    assert crf.loss_ == pytest.approx(plain.loss_, rel=1e-9)
    assert weights_by_name(crf) == pytest.approx(weights_by_name(plain), rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(crf.predict_proba(to_dicts(X)), plain.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("form", COLUMN_FORMS)
def test_a_model_reads_every_form_of_columns_whatever_it_was_fitted_on(data, plain, form):
    X, _ = data
    change, flat = COLUMN_FORMS[form]
    extra = {"groups": group_ids(X)} if flat else {}
    np.testing.assert_array_equal(plain.predict_proba(change(X), **extra), plain.predict_proba(X))


@LIBRARIES
def test_columns_are_matched_by_place_where_one_side_has_no_names(data, library):
    X, y = data
    frames = [library.DataFrame(dict(zip("pqr", x.T, strict=True))) for x in X]
    on_frames, on_arrays = LinearCRF().fit(frames, y), LinearCRF().fit(X, y)
    np.testing.assert_array_equal(on_arrays.predict_proba(frames), on_arrays.predict_proba(X))
    np.testing.assert_array_equal(on_frames.predict_proba(X), on_frames.predict_proba(frames))
    watched = LinearCRF().fit(X, y, eval_set=(frames, y))
    assert watched.history_["eval_accuracy"][-1] == on_arrays.score(X, y)


def test_a_stack_of_sequences_of_equal_length():
    X, y = make_data(n_sequences=10, longest=4)
    X, y = zip(*((x, labels) for x, labels in zip(X, y, strict=True) if len(x) == 4), strict=True)
    assert len(X) > 1
    in_list, in_stack = LinearCRF().fit(X, y), LinearCRF().fit(np.array(X), np.array(y))
    assert weights_by_name(in_stack) == weights_by_name(in_list)
    for crf, form in ((in_list, list(X)), (in_stack, np.array(X))):
        labels, marginals = crf.predict(form), crf.predict_marginals(form)
        assert isinstance(labels, list)
        assert [part.shape for part in labels] == [(4,)] * len(X)
        assert [part.shape for part in marginals] == [(4, 3)] * len(X)
        assert crf.predict_proba(form).shape == (4 * len(X), 3)


def test_a_flat_x_without_groups_is_one_sequence():
    X, y = make_data(n_sequences=4)
    rows, labels = np.concatenate(X), np.concatenate(y)
    flat, listed = LinearCRF().fit(rows, labels), LinearCRF().fit([rows], [labels])
    assert weights_by_name(flat) == weights_by_name(listed)
    assert flat.predict(rows).shape == labels.shape
    assert flat.log_likelihood(rows, labels).shape == (1,)


def test_groups_by_any_kind_of_id(data, plain):
    X, y = data
    rows, labels = np.concatenate(X), np.concatenate(y)
    numbers = group_ids(X)
    for groups in (
        [f"sequence {number}" for number in numbers],
        pd.Series(numbers[::-1].max() - numbers),
        pl.Series(numbers),
    ):
        assert LinearCRF().fit(rows, labels, groups=groups).loss_ == plain.loss_


@pytest.mark.parametrize(
    "change",
    [
        lambda y: [np.array(labels) for labels in y],
        lambda y: [np.array(labels, dtype=object) for labels in y],
        lambda y: [pd.Series(labels) for labels in y],
        lambda y: [pl.Series(labels) for labels in y],
        lambda y: tuple(map(tuple, y)),
        lambda y: (labels for labels in y),
    ],
)
def test_forms_of_labels(data, plain, change):
    X, y = data
    assert weights_by_name(LinearCRF().fit(X, change(y))) == weights_by_name(plain)


@pytest.mark.parametrize(
    ("names", "dtype"),
    [
        (["low", "mid", "high"], np.dtype("<U4")),
        ([-1, 0, 700], np.dtype(np.int64)),
        (np.array([3, 1, 2], dtype=np.uint8), np.dtype(np.uint8)),
        ([True, False], np.dtype(np.bool_)),
    ],
    ids=["str", "int", "uint8", "bool"],
)
def test_labels_come_back_as_they_were(names, dtype):
    X, y = make_data(labels=range(len(names)))
    if isinstance(names, np.ndarray):
        y = [names[labels] for labels in y]
    else:
        y = [[names[label] for label in labels] for labels in y]
    crf = LinearCRF(reg_lambda=0.01).fit(X, y)
    assert crf.classes_.dtype == dtype
    assert crf.classes_.tolist() == sorted(np.asarray(names).tolist())
    for decode in ("viterbi", "marginal"):
        assert all(labels.dtype == dtype for labels in crf.predict(X, decode=decode))
    assert crf.transitions()["from"].dtype == dtype
    assert crf.score(X, y) > 0.6


def test_marginal_decoding_takes_the_likeliest_label_of_each_position(data, plain):
    X, _ = data
    expected = plain.classes_[plain.predict_proba(X).argmax(axis=1)]
    np.testing.assert_array_equal(np.concatenate(plain.predict(X, decode="marginal")), expected)


def test_negative_numbers_count():
    # Both labels have the same absolute values; only the sign tells them apart.
    x = np.array([2.0, -2.0, -1.0, 1.0, -3.0, 3.0])
    y = np.where(x < 0, "minus", "plus")
    for X in ([x[:, None]], [[{"value": value} for value in x]]):
        crf = LinearCRF(reg_lambda=0.1).fit(X, [y])
        assert crf.score(X, [y]) == 1.0


def test_only_some_positions_with_a_negative_feature():
    X = [[[0.0], [-0.5], [0.0], [-0.5], [-0.5], [0.0], [0.0]]]
    y = [["rest", "dip", "rest", "dip", "dip", "rest", "rest"]]
    assert LinearCRF(reg_lambda=0.01).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.bool_])
def test_numbers_of_any_kind(dtype):
    X, y = make_data()
    X = [(x > 0).astype(dtype) for x in X]
    same = LinearCRF().fit([x.astype(np.float64) for x in X], y)
    assert weights_by_name(LinearCRF().fit(X, y)) == weights_by_name(same)


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
@LIBRARIES
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


def test_text_columns_alone_and_categories():
    words = [pd.DataFrame({"word": sequence}) for sequence in WORDS]
    dicts = [[{"word": word} if word else {} for word in sequence] for sequence in WORDS]
    expected = weights_by_name(LinearCRF().fit(dicts, TAGS))
    categories = [frame.astype({"word": "category"}) for frame in words]
    for frames in (words, categories):
        found = weights_by_name(LinearCRF().fit(frames, TAGS))
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


@LIBRARIES
def test_unknown_words_of_a_text_column_are_ignored(library):
    crf = LinearCRF().fit(as_frames(library), TAGS)
    unknown = [library.DataFrame({"word": ["woman"], "size": [0.5]})]
    missing = [library.DataFrame({"word": ["woman", None], "size": [0.5, 0.5]})[1:]]
    np.testing.assert_array_equal(crf.predict_proba(unknown), crf.predict_proba(missing))


def test_features_are_described_as_scikit_learn_does(data):
    X, y = data
    crf = LinearCRF().fit([named(pd, x) for x in X], y)
    assert crf.n_features_in_ == 3
    assert crf.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    crf.fit(X, y)
    assert crf.n_features_in_ == 3
    assert not hasattr(crf, "feature_names_in_")
    crf.fit(to_dicts(X), y)
    assert not hasattr(crf, "n_features_in_")


def test_text_that_is_not_valid_unicode():
    frame = pd.DataFrame({"c": ["\ud800"]}, dtype=object)
    with pytest.raises(ValueError, match=r"ud800', which is not valid Unicode .* repair or remove"):
        LinearCRF().fit(frame, ["a"])
