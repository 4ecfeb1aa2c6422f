import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, OneHotEncoder, StandardScaler

from hedgerow import LinearCRF, TreeCRF
from hedgerow.preprocessing import SequenceTransformer

RNG = np.random.default_rng(0)
X = [RNG.normal(5, 3, (n, 2)) for n in (3, 1, 4)]
Y = [["a", "b", "a"], ["b"], ["a", "a", "b", "a"]]
ROWS, SCALED = np.concatenate(X), StandardScaler().fit_transform(np.concatenate(X))
GROUPS = np.repeat(["u", "v", "w"], [3, 1, 4])
TABLE = pd.DataFrame({"s": ROWS[:, 0], "walk": GROUPS, "t": ROWS[:, 1]}, index=range(8, 0, -1))


def scaler(**parameters):
    return SequenceTransformer(StandardScaler(), **parameters)


@pytest.mark.parametrize(
    "form",
    [
        list,
        tuple,
        lambda X: [x.tolist() for x in X],
        lambda X: [pd.DataFrame(x, columns=["s", "t"]) for x in X],
        lambda X: [pl.DataFrame(x, schema=["s", "t"]) for x in X],
    ],
)
def test_it_is_fitted_on_the_positions_of_all_sequences(form):
    given = form(X)
    for found in (scaler().fit_transform(given), scaler().fit(given, Y).transform(given)):
        assert [type(part) for part in found] == [np.ndarray] * 3
        assert [len(part) for part in found] == [3, 1, 4]
        np.testing.assert_allclose(np.concatenate(found), SCALED)


def test_one_block():
    for given in (ROWS, ROWS.tolist(), pd.DataFrame(ROWS)):
        np.testing.assert_allclose(scaler().fit_transform(given), SCALED)
    stack = ROWS.reshape(4, 2, 2)
    np.testing.assert_allclose(np.concatenate(scaler().fit_transform(stack)), SCALED)


def test_sparse_sequences_stay_sparse():
    found = SequenceTransformer(MaxAbsScaler()).fit_transform([sparse.csr_array(x) for x in X])
    expected = MaxAbsScaler().fit_transform(ROWS)
    assert all(map(sparse.issparse, found))
    np.testing.assert_allclose(sparse.vstack(found).toarray(), expected)


def test_rows_of_dicts():
    words = [[{"w": "a"}, {"w": "b", "n": 2}], [{"w": "b"}]]
    found = SequenceTransformer(DictVectorizer(sparse=False)).fit_transform(words)
    assert [part.tolist() for part in found] == [[[0, 1, 0], [2, 0, 1]], [[0, 0, 1]]]


@pytest.mark.parametrize("crf", [LinearCRF(), TreeCRF(n_rounds=2)])
def test_a_pipeline_on_lists_is_the_same_as_scaled_rows(crf):
    scaled = np.split(SCALED, [3, 4])
    model = make_pipeline(scaler(), crf).fit(X, Y)
    expected = clone(crf).fit(scaled, Y).predict_marginals(scaled)
    found = model[-1].predict_marginals(model[:-1].transform(X))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs)
    assert model.n_features_in_ == 2


def test_parameters_are_nested():
    transformer = scaler()
    assert transformer.get_params()["transformer__with_mean"] is True
    assert not clone(transformer).set_params(transformer__with_mean=False).transformer.with_mean
    model = make_pipeline(transformer, LinearCRF(max_iter=2, tol=0))
    grid = {"sequencetransformer__transformer__with_mean": [True, False]}
    assert len(GridSearchCV(model, grid, cv=2).fit(X, Y).cv_results_["mean_test_score"]) == 2
    fitted = pickle.loads(pickle.dumps(transformer.fit(X)))
    np.testing.assert_allclose(np.concatenate(fitted.transform(X)), SCALED)
    assert transformer.transformer_ is not transformer.transformer
    assert "<style>" in model._repr_html_()


@pytest.mark.parametrize(("kind", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output(kind, frame):
    given = [pd.DataFrame(x, columns=["s", "t"]) for x in X]
    fitted = scaler().set_output(transform=kind).fit(given)
    with sklearn.config_context(transform_output=kind):
        in_general = scaler().fit_transform(given)
    for found in (fitted.transform(given), in_general):
        assert [type(part) for part in found] == [frame] * 3
        assert [list(part.columns) for part in found] == [["s", "t"]] * 3
        np.testing.assert_allclose(np.concatenate([part.to_numpy() for part in found]), SCALED)
    assert fitted.get_feature_names_out().tolist() == ["s", "t"]
    assert fitted.feature_names_in_.tolist() == ["s", "t"]
    assert isinstance(fitted.set_output(transform="default").transform(given)[0], np.ndarray)
    assert fitted.set_output() is fitted


@pytest.mark.parametrize("to_frame", [lambda table: table, pl.from_pandas])
@pytest.mark.parametrize("kind", [None, "pandas", "polars"])
def test_the_group_column_stays_as_it_is(to_frame, kind):
    table = to_frame(TABLE)
    transformer = scaler(group_column="walk").set_output(transform=kind)
    for found in (transformer.fit_transform(table), transformer.fit(table).transform(table)):
        assert type(found) is {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(
            kind, type(table)
        )
        assert list(found.columns) == ["walk", "s", "t"]
        assert found["walk"].to_list() == GROUPS.tolist()
        np.testing.assert_allclose(found[["s", "t"]].to_numpy(), SCALED)
    assert transformer.get_feature_names_out().tolist() == ["walk", "s", "t"]
    names = transformer.get_feature_names_out(["s", "walk", "t"])
    assert names.tolist() == ["walk", "s", "t"]
    model = make_pipeline(transformer, LinearCRF(group_column="walk")).fit(table, np.concatenate(Y))
    assert model.predict(table).shape == (8,)


@pytest.mark.parametrize(("place", "order"), [(0, [2, 0, 1]), (-1, [0, 1, 2]), (1, [0, 2, 1])])
def test_a_group_column_by_number(place, order):
    codes = np.repeat([0.0, 1.0, 2.0], [3, 1, 4])
    whole = np.column_stack([ROWS, codes])[:, order]
    expected = np.column_stack([SCALED, codes])[:, order]
    transformer = scaler(group_column=place)
    np.testing.assert_allclose(transformer.fit_transform(whole), expected)
    np.testing.assert_allclose(transformer.inverse_transform(expected), whole)
    found = SequenceTransformer(MaxAbsScaler(), group_column=place).fit_transform(
        sparse.csr_array(whole)
    )
    np.testing.assert_allclose(found.toarray()[:, place], codes)
    assert transformer.n_features_in_ == 3
    assert len(transformer.get_feature_names_out()) == 3


def test_columns_by_name():
    inner = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["c"]), (PCA(1), ["s", "t"])
    )
    table = TABLE.assign(c=list("xyxyxyzz"))
    found = SequenceTransformer(inner, group_column="walk").fit_transform(table)
    assert found.columns[0] == "walk"
    assert found.shape == (8, 5)


def test_a_transformer_without_names():
    twice = FunctionTransformer(lambda rows: np.hstack([rows, rows]))
    found = SequenceTransformer(twice, group_column="walk").fit_transform(TABLE)
    assert list(found.columns) == ["walk", "x0", "x1", "x2", "x3"]


def test_inverse_transform():
    fitted = scaler().fit(X)
    back = fitted.inverse_transform(fitted.transform(X))
    np.testing.assert_allclose(np.concatenate(back), ROWS)
    assert not hasattr(SequenceTransformer(FeatureHasher()), "inverse_transform")


@pytest.mark.parametrize("gap", [None, np.nan])
def test_transformers_that_learn_from_labels_see_those_that_are_known(gap):
    gaps = [[*Y[0][:2], gap], *Y[1:]]
    select = SequenceTransformer(SelectKBest(k=1))
    for found in (select.fit_transform(X, gaps), select.fit(X, gaps).transform(X)):
        assert [part.shape for part in found] == [(3, 1), (1, 1), (4, 1)]
    known = np.delete(ROWS, 2, axis=0), np.delete(np.concatenate(Y), 2)
    np.testing.assert_allclose(select.transformer_.scores_, SelectKBest(k=1).fit(*known).scores_)
    words = [[{"w": 1.0, "v": 3.0}, {"v": 2.0}, {"w": 2.0}, {"w": 1.0, "v": 5.0}, {"v": 2.0}]]
    chain = SequenceTransformer(make_pipeline(DictVectorizer(), SelectKBest(k=1)))
    assert chain.fit_transform(words, [["a", "b", "a", "b", gap]])[0].shape == (5, 1)
    np.testing.assert_allclose(np.concatenate(scaler().fit_transform(X, gaps)), SCALED)


@pytest.mark.parametrize(
    ("transformer", "given", "labels", "error", "message"),
    [
        (
            SequenceTransformer("passthrough"),
            X,
            None,
            TypeError,
            "transformer is 'passthrough'; exp",
        ),
        (scaler(group_column=1.5), X, None, ValueError, "group_column is 1.5; expected the name"),
        (
            scaler(group_column="w"),
            TABLE,
            None,
            ValueError,
            "; pass X with this column to fit and to transform, or set the parameter to None",
        ),
        (scaler(group_column=0), [[{"a": 1}]], None, ValueError, "sequences of X are lists, which"),
        (scaler(), X, Y[:2], ValueError, "y has 4 labels but X has 8 positions; pass one label"),
        (scaler(), 3, None, TypeError, "X is of type int; expected a list of 2-D arrays"),
        (scaler(), [], None, ValueError, "X is empty; expected at least one sequence"),
        (scaler(), [X[0], X[1].tolist()], None, TypeError, r"X mixes forms: X\[0\] is an arra"),
        (scaler(), [X[0], X[1][:0]], None, ValueError, r"X\[1\] is empty; a sequence needs at"),
        (scaler(), [X[0], "ab"], None, TypeError, r"X\[1\] is a str, not a sequence; expected"),
        (
            SequenceTransformer(OneHotEncoder(), group_column="walk"),
            TABLE,
            None,
            ValueError,
            "OneHotEncoder returns a sparse matrix, which cannot contain the group column 'walk'",
        ),
        (
            SequenceTransformer(PCA(1), group_column=2),
            np.column_stack([ROWS, np.zeros(8)]),
            None,
            ValueError,
            "group_column is 2, but the transformer returns 1 column, so the column cannot keep",
        ),
    ],
)
def test_what_cannot_be_transformed(transformer, given, labels, error, message):
    with pytest.raises(error, match=message):
        transformer.fit_transform(given, labels)


def test_it_must_be_fitted_first():
    with pytest.raises(NotFittedError):
        scaler().transform(X)
    with pytest.raises(NotFittedError):
        scaler().get_feature_names_out()


def test_parents_stay_as_they_are():
    table = TABLE.assign(head=np.concatenate([np.arange(len(x)) for x in X]))
    transformer = scaler(group_column="walk", parents_column="head")
    found = transformer.fit_transform(table)
    assert found.columns[:2].tolist() == ["walk", "head"]
    assert transformer.get_feature_names_out().tolist() == found.columns.tolist()
    assert found["head"].tolist() == table["head"].tolist()
    plain = scaler(group_column="walk").fit_transform(TABLE)
    assert found.drop(columns="head").equals(plain)
    crf = LinearCRF(group_column="walk", parents_column="head", parents_format="conllu")
    model = make_pipeline(transformer, crf).fit(table, np.concatenate(Y))
    assert len(model.predict(table)) == len(table)
    rows = np.column_stack([ROWS, np.repeat([0, 1, 2], [3, 1, 4]), table["head"]])
    numbered = SequenceTransformer(MaxAbsScaler(), group_column=-2, parents_column=-1)
    np.testing.assert_array_equal(numbered.fit_transform(rows)[:, -2:], rows[:, -2:])
    with pytest.raises(
        ValueError, match=r"parents_column is 'head', .*pass the parents to the CRF"
    ):
        scaler(parents_column="head").fit([[{"a": 1}]])
