"""All input formats give the same model, and the output has the format of the input."""

import decimal
from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from hedgerow import LinearCRF, TreeCRF
from reference.estimators import assert_same_model, group_ids, small
from reference.linear import make_data

X, Y = make_data(n_sequences=12, longest=6)
ROWS, LABELS, GROUPS = np.concatenate(X), np.concatenate(Y), group_ids(X)
NAMES = ["x0", "x1", "x2"]


@cache
def fit_plain(estimator):
    return small(estimator).fit(X, Y)


@pytest.fixture
def plain(estimator):
    return fit_plain(estimator)


# X.


def each(form):
    """Sequences one by one in some form."""
    return lambda X: list(map(form, X))


def together(form):
    """The rows of all sequences in some form."""
    return lambda X: form(np.concatenate(X))


def to_pandas(rows, **options):
    return pd.DataFrame(rows, columns=NAMES, **options)


def to_polars(rows):
    return pl.DataFrame(rows, schema=NAMES)


LISTED = {
    "nested lists": each(np.ndarray.tolist),
    "tuple": tuple,
    "lists of rows": each(list),
    "array of objects": lambda X: np.array([*X, None], dtype=object)[:-1],
    "generator": lambda X: (x for x in X),
    "column by column": each(np.asfortranarray),
    "every other row": each(lambda x: np.repeat(x, 2, axis=0)[::2]),
    "pandas": each(to_pandas),
    "pandas without names": each(pd.DataFrame),
    "polars": each(to_polars),
    "csr arrays": each(sparse.csr_array),
    "csc matrices": each(sparse.csc_matrix),
}
FLAT = {
    "flat array": np.concatenate,
    "flat lists": together(np.ndarray.tolist),
    "flat pandas": together(to_pandas),
    "flat polars": together(to_polars),
    "flat coo array": together(sparse.coo_array),
    "dok array": together(sparse.dok_array),
    "bsr array": together(sparse.bsr_array),
    "flat column by column": together(np.asfortranarray),
    "other bytes": together(lambda rows: rows.astype(">f8")),
    "longdouble": together(lambda rows: rows.astype(np.longdouble)),
    "a view": together(lambda rows: rows[::-1][::-1]),
    "no mask": together(lambda rows: np.ma.masked_array(rows, mask=False)),
    "matrix": together(lambda rows: rows.view(np.matrix)),
    "decimals": together(lambda rows: [list(map(decimal.Decimal, row)) for row in rows]),
    "objects": together(lambda rows: rows.astype(object)),
    "pandas of arrow": together(lambda rows: to_pandas(rows).astype("double[pyarrow]")),
    "pandas Float64": together(lambda rows: to_pandas(rows).astype("Float64")),
    "pandas MultiIndex": together(
        lambda rows: pd.DataFrame(rows, columns=pd.MultiIndex.from_product([["x"], NAMES]))
    ),
    "arrow": together(lambda rows: pa.table(dict(zip(NAMES, rows.T, strict=True)))),
}
# Trees are cut elsewhere between the same values.
SPARSE = {"csr arrays", "csc matrices", "flat coo array", "dok array", "bsr array"}


# What becomes of columns is the same for both, until they are attributes or bins.
OF_TREES = ["nested lists", "pandas", "csr arrays", "flat polars", "flat coo array", "objects"]


@pytest.mark.parametrize(
    ("estimator", "form"),
    [*((LinearCRF, form) for form in (*LISTED, *FLAT)), *((TreeCRF, form) for form in OF_TREES)],
)
def test_all_forms_give_the_same_model_to_the_last_bit(estimator, form):
    make, plain = partial(small, estimator), fit_plain(estimator)
    flat = form in FLAT
    change = (LISTED | FLAT)[form]
    more, given = ({"groups": GROUPS}, LABELS) if flat else ({}, Y)
    crf = make().fit(change(X), given, **more)
    assert (crf.loss_, crf.history_) == (plain.loss_, plain.history_)
    if form != "pandas MultiIndex" and not (form in SPARSE and estimator is TreeCRF):
        assert_same_model(crf, plain)
    expected = plain.predict_proba(X)
    labels, marginals = crf.predict(change(X), **more), crf.predict_marginals(change(X), **more)
    if not flat:
        assert isinstance(labels, list)
        assert isinstance(marginals, list)
        assert list(map(len, labels)) == list(map(len, X))
        labels, marginals = np.concatenate(labels), np.concatenate(marginals)
    np.testing.assert_array_equal(labels, np.concatenate(plain.predict(X)))
    np.testing.assert_array_equal(marginals, expected)
    np.testing.assert_array_equal(crf.predict_proba(change(X), **more), expected)
    found = crf.log_likelihood(change(X), given, **more)
    np.testing.assert_array_equal(found, plain.log_likelihood(X, Y))
    assert crf.score(change(X), given, **more) == plain.score(X, Y)
    # A model reads every form of columns, whatever it was fitted on.
    np.testing.assert_array_equal(plain.predict_proba(change(X), **more), expected)
    np.testing.assert_array_equal(crf.predict_proba(X), expected)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_columns_are_matched_by_place_where_one_side_has_no_names(make, plain, library):
    frames = [library.DataFrame(dict(zip("pqr", x.T, strict=True))) for x in X]
    on_frames, expected = make().fit(frames, Y), plain.predict_proba(X)
    np.testing.assert_array_equal(plain.predict_proba(frames), expected)
    np.testing.assert_array_equal(on_frames.predict_proba(X), expected)
    np.testing.assert_array_equal(on_frames.predict_proba(frames), expected)
    watched = make().fit(X, Y, eval_set=(frames, Y))
    assert watched.history_["eval_accuracy"][-1] == plain.score(X, Y, decode="marginal")


def test_a_stack_of_sequences_of_equal_length(make):
    X = np.stack([ROWS[:4], ROWS[4:8], ROWS[8:12]])
    y = np.stack([LABELS[:4], LABELS[4:8], LABELS[8:12]])
    in_list, in_stack = make().fit(list(X), y.tolist()), make().fit(X, y)
    assert_same_model(in_stack, in_list)
    for crf, form in ((in_list, list(X)), (in_stack, X)):
        labels, marginals = crf.predict(form), crf.predict_marginals(form)
        assert isinstance(labels, list)
        assert [part.shape for part in labels] == [(4,)] * len(X)
        assert [part.shape for part in marginals] == [(4, 3)] * len(X)
        assert crf.predict_proba(form).shape == (4 * len(X), 3)


def test_a_flat_x_without_groups_is_one_sequence(make):
    flat, listed = make().fit(ROWS, LABELS), make().fit([ROWS], [LABELS])
    assert_same_model(flat, listed)
    assert flat.predict(ROWS).shape == LABELS.shape
    assert flat.log_likelihood(ROWS, LABELS).shape == (1,)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
@pytest.mark.parametrize("n_words", [12, 300], ids=["few", "many"])
def test_unknown_words_of_a_text_column_are_missing(make, library, n_words):
    codes = np.random.default_rng(0).integers(0, n_words, 900)
    frame = library.DataFrame({"word": [f"w{code}" for code in codes], "size": codes % 3})
    crf = make().fit(frame, np.array(["p", "q", "r"])[codes % 3])
    for size in range(3):
        unknown = library.DataFrame({"word": ["new"], "size": [size]})
        missing = library.DataFrame({"word": ["new", None], "size": [size, size]})[1:]
        np.testing.assert_array_equal(crf.predict_proba(unknown), crf.predict_proba(missing))


# Groups.


# Labels.


@pytest.mark.parametrize(
    "names",
    [
        np.array(["low", "mid", "high"]),
        np.array([-1, 0, 700]),
        np.array([3, 1, 2], dtype=np.uint8),
        np.array([True, False]),
    ],
    ids=["str", "int", "uint8", "bool"],
)
def test_labels_come_back_as_they_were(make, names):
    X, y = make_data(labels=range(len(names)), n_sequences=16)
    y = [names[labels] for labels in y]
    crf = make(reg_lambda=0.01).fit(X, y)
    assert crf.classes_.dtype == names.dtype
    assert crf.classes_.tolist() == sorted(names.tolist())
    for decode in ("viterbi", "marginal"):
        assert all(labels.dtype == names.dtype for labels in crf.predict(X, decode=decode))
    assert crf.transition_weights()["from"].dtype == names.dtype
    assert crf.score(X, y) > 0.6
    listed = make(reg_lambda=0.01).fit(X, [labels.tolist() for labels in y])
    assert listed.classes_.tolist() == crf.classes_.tolist()
    assert listed.loss_ == crf.loss_


def test_columns_in_another_order(make):
    words = np.array(["u", "v"])
    frame = pd.DataFrame(ROWS, columns=["a", "b", "c"]).assign(
        w=words[np.arange(len(ROWS)) % 2], d=ROWS[:, 0] > 0, v=words[np.arange(len(ROWS)) // 2 % 2]
    )
    crf = make().fit(frame, LABELS, groups=GROUPS)
    expected = crf.predict_proba(frame, groups=GROUPS)
    turned = frame[["v", "c", "w", "d", "a", "b"]]
    np.testing.assert_array_equal(crf.predict_proba(turned, groups=GROUPS), expected)
    parts = [turned[:4], turned[4:]]
    twins = [frame[:4], frame[4:]]
    np.testing.assert_array_equal(crf.predict_proba(parts), crf.predict_proba(twins))
    by_column = make(group_column="v").fit(frame.sort_values("v", kind="stable"), LABELS)
    np.testing.assert_array_equal(
        by_column.predict(turned.sort_values("v", kind="stable")),
        by_column.predict(frame.sort_values("v", kind="stable")),
    )
    polars = pl.DataFrame(turned.to_dict("list"))
    np.testing.assert_array_equal(crf.predict_proba(polars, groups=GROUPS), expected)
    message = "column 'e' of this X is not in the training X; pass the columns used in training"
    with pytest.raises(ValueError, match=message):
        crf.predict(turned.assign(e=1), groups=GROUPS)
