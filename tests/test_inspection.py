import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import inspection
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hedgerow import LinearCRF, TreeCRF
from hedgerow.inspection import permutation_importance
from hedgerow.preprocessing import SequenceTransformer
from hedgerow.scorers import make_position_scorer

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 3)).round(1)
LABELS = np.where(ROWS[:, 1] > 0, "up", "down")
GROUPS = np.repeat(np.arange(8), 5)
X, Y = np.split(ROWS, 8), np.split(LABELS, 8)
TABLE = pd.DataFrame(ROWS, columns=["a", "b", "c"]).assign(walk=GROUPS)[["a", "walk", "b", "c"]]
CRF = TreeCRF(n_rounds=5, min_child_weight=0, max_depth=2, n_jobs=1).fit(X, Y)


def shuffled(model, X, y, **options):
    return permutation_importance(model, X, y, n_repeats=2, random_state=0, **options)


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x,
        lambda x: pd.DataFrame(x, columns=["a", "b", "c"], index=range(len(x), 0, -1)),
        lambda x: pl.DataFrame(x, schema=["a", "b", "c"]),
    ],
)
def test_forms_of_x(form):
    found = shuffled(CRF, [form(x) for x in X], Y)
    assert found.importances.shape == (3, 2)
    assert found.importances_mean.argmax() == 1
    np.testing.assert_allclose(found.importances_mean, found.importances.mean(axis=1))
    np.testing.assert_allclose(found.importances_std, found.importances.std(axis=1))
    flat = shuffled(CRF, form(ROWS), LABELS, groups=GROUPS)
    np.testing.assert_array_equal(flat.importances, found.importances)
    assert found.feature_names in (["a", "b", "c"], ["x0", "x1", "x2"])


def test_a_feature_is_shuffled_over_all_rows():
    expected = inspection.permutation_importance(CRF, ROWS, LABELS, n_repeats=9, random_state=0)
    found = permutation_importance(CRF, ROWS, LABELS, n_repeats=9, random_state=1)
    np.testing.assert_allclose(found.importances_mean, expected.importances_mean, atol=0.1)


def test_sparse_matrices_and_dicts():
    given = [sparse.csr_array(np.maximum(x, 0)) for x in X]
    crf = TreeCRF(n_rounds=5, min_child_weight=0, n_jobs=1).fit(given, Y)
    dense = shuffled(crf, [each.toarray() for each in given], Y)
    np.testing.assert_array_equal(shuffled(crf, given, Y).importances, dense.importances)
    dicts = [[{"b": b} if b > 0 else {"a": "x"} for b in x[:, 1]] for x in X]
    linear = LinearCRF(n_jobs=1).fit(dicts, Y)
    found = shuffled(linear, dicts, Y)
    assert found.feature_names == ["a", "b"]
    assert (found.importances > 0).any()


@pytest.mark.parametrize("to_frame", [lambda table: table, pl.from_pandas])
def test_the_group_column_is_left_alone(to_frame):
    table = to_frame(TABLE)
    crf = TreeCRF(group_column="walk", n_rounds=5, min_child_weight=0, n_jobs=1).fit(table, LABELS)
    found = shuffled(crf, table, LABELS)
    assert found.feature_names == ["a", "b", "c"]
    assert found.importances_mean.argmax() == 1
    scaler = SequenceTransformer(StandardScaler(), group_column="walk")
    pipe = make_pipeline(scaler, crf).fit(table, LABELS)
    assert shuffled(pipe, table, LABELS).feature_names == ["a", "b", "c"]


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_features_without_names_are_named_as_in_the_model(form):
    table = form(np.column_stack([GROUPS, ROWS]))
    crf = TreeCRF(group_column=0, n_rounds=5, min_child_weight=0, n_jobs=1).fit(table, LABELS)
    found = shuffled(crf, table, LABELS)
    assert found.feature_names == ["x0", "x1", "x2"]
    assert set(crf.importances()["feature"]) <= set(found.feature_names)
    assert found.importances_mean.argmax() == 1


def test_groups_instead_of_the_group_column():
    crf = TreeCRF(group_column="walk", n_rounds=5, min_child_weight=0, n_jobs=1).fit(TABLE, LABELS)
    features = TABLE.drop(columns="walk")
    found = shuffled(crf, features, LABELS, groups=TABLE["walk"])
    np.testing.assert_array_equal(found.importances, shuffled(crf, TABLE, LABELS).importances)
    with pytest.raises(ValueError, match="to fit and to predict, or pass the argument groups"):
        shuffled(crf, features, LABELS)
    with pytest.raises(ValueError, match=r"X\[0\] has .*, or fit with group_column=None"):
        shuffled(crf, [features], [LABELS])


def test_the_function_of_scikit_learn_leads_to_this_one():
    crf = TreeCRF(group_column="walk", n_rounds=1, n_jobs=1).fit(TABLE, LABELS)
    message = (
        r"sort X and y by column 'walk' first \(stably, to keep the order within a group\). "
        "If this happens in sklearn.inspection.permutation_importance, which shuffles that column "
        "too, use hedgerow.inspection.permutation_importance"
    )
    with pytest.raises(ValueError, match=message):
        inspection.permutation_importance(crf, TABLE, LABELS, random_state=0)


def test_scores():
    macro = make_position_scorer(f1_score, average="macro")
    several = shuffled(CRF, X, Y, scoring=["f1_macro", "accuracy"])
    assert list(several) == ["f1_macro", "accuracy"]
    by_callable = shuffled(CRF, X, Y, scoring=macro)
    np.testing.assert_array_equal(several["f1_macro"].importances, by_callable.importances)
    np.testing.assert_array_equal(several["accuracy"].importances, shuffled(CRF, X, Y).importances)
    named = shuffled(CRF, X, Y, scoring={"F": macro, "own": None})
    np.testing.assert_array_equal(named["F"].importances, by_callable.importances)
    weighted = shuffled(CRF, X, Y, sample_weight=np.arange(8))
    assert (weighted.importances != shuffled(CRF, X, Y).importances).any()


@pytest.mark.parametrize(
    ("X", "options", "error", "message"),
    [
        (X, {"scoring": 3}, TypeError, "scoring is 3; expected the name of a scorer such as"),
        (X, {"n_repeats": 0}, ValueError, "n_repeats is 0; expected an integer of at least 1"),
        ([[["w"], ["v"]]], {}, TypeError, "X holds lists of attribute names, which have no"),
    ],
)
def test_mistakes(X, options, error, message):
    with pytest.raises(error, match=message):
        permutation_importance(CRF, X, Y, **options)
