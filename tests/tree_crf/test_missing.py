"""TreeCRF with missing values, with all methods."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import hedgerow
from hedgerow import TreeCRF
from hedgerow.trees.missing import METHODS
from reference.estimators import assert_same_training
from reference.fitted_model import assert_enumerated, read_model
from reference.linear import make_data, to_dicts
from reference.trainings import saved

X, Y = make_data(n_sequences=25, longest=6)
OTHERS = [method for method in METHODS if method != "learned"]


def erase(X, share=0.25, seed=0):
    rng = np.random.default_rng(seed)
    return [np.where(rng.random(x.shape) < share, np.nan, x) for x in X]


def to_frames(X):
    """A column of numbers, one of few numbers, and one of categories."""
    return [
        pd.DataFrame(
            {
                "p": x[:, 0],
                "q": np.round(x[:, 1]),
                "r": [None if np.isnan(v) else f"v{round(v)}" for v in x[:, 2]],
            }
        )
        for x in X
    ]


GAPS = erase(X)


def make(missing, **parameters):
    parameters = {"n_rounds": 4, "min_child_weight": 0.1, "window": 1} | parameters
    return TreeCRF(missing=missing, **parameters)


@pytest.mark.parametrize("method", OTHERS)
@pytest.mark.parametrize("transitions", ["weights", "trees"])
@pytest.mark.parametrize("form", [list, to_frames, to_dicts])
def test_without_missing_values_all_ways_are_the_same(method, transitions, form):
    x = form(X)
    usual, other = (make(m, transitions=transitions).fit(x, Y) for m in ("learned", method))
    assert other.history_ == usual.history_
    np.testing.assert_array_equal(other.predict_proba(x), usual.predict_proba(x))
    one, two = usual._trees.forest.arrays(), other._trees.forest.arrays()
    for name in ("columns", "offsets", "cuts", "outside_left", "values", "gains", "weights"):
        np.testing.assert_array_equal(two[name], one[name])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", [list, to_frames])
def test_answers_are_those_of_the_table_of_trees(method, form):
    x = form(GAPS)
    crf = make(method).fit(x, Y)
    new = form(erase(X[:3], 0.5, seed=1))
    model = read_model(crf, x)
    assert_enumerated(crf, model, new)
    for sequence in new:
        explanation = crf.explain(sequence, 0)
        table = explanation.to_table()
        assert table["contribution"].sum() == pytest.approx(explanation.log_odds)


@pytest.mark.parametrize("method", METHODS)
def test_sparse_matrices_and_threads(method):
    gaps = [np.where(np.abs(x) < 0.7, 0.0, x) for x in GAPS]
    sparse = [scipy.sparse.csr_array(x) for x in gaps]
    one = make(method, n_jobs=1, window=(2, 1)).fit(sparse, Y)
    two = make(method, n_jobs=3, window=(2, 1)).fit(sparse, Y)
    assert_same_training(one, two)
    if method != "impute":  # the most frequent number of a sparse column is taken to be 0
        np.testing.assert_allclose(
            make(method, window=(2, 1)).fit(gaps, Y).predict_proba(gaps),
            one.predict_proba(sparse),
            rtol=1e-9,
        )


def test_positions_outside_are_not_missing():
    # The first label depends on whether a position is the first one; values are missing anywhere.
    rng = np.random.default_rng(0)
    x = [np.where(rng.random((6, 1)) < 0.4, np.nan, 1.0) for _ in range(40)]
    y = [["first", *["other"] * 5] for _ in x]
    crf = TreeCRF(n_rounds=5, window=(1, 0), order=0).fit(x, y)
    root = {name: column[0] for name, column in crf.trees(label="first").items()}
    assert root["question"] == "x0[-1] is not outside"
    assert (root["missing"], root["outside"]) == ("left", "right")
    assert crf.score(x, y) == 1.0
    assert "outside" in str(crf.explain(x[0], 0))


def test_a_copy_of_a_column_takes_its_place():
    x = [np.column_stack([x, x[:, 0]]) for x in X]
    crf = make("surrogate").fit(x, Y)
    gone = [np.where(np.arange(x.shape[1]) == 0, np.nan, x) for x in x]
    np.testing.assert_array_equal(crf.predict_proba(gone), crf.predict_proba(x))
    table = crf.trees()
    (roots,) = np.nonzero((table["node"] == 0) & (table["feature"] == "x0"))
    assert len(roots)
    for root in roots:
        assert table["surrogates"][root][0] == table["question"][root].replace("x0", "x3")
    explained = crf.explain(gone[0], 2).features
    assert "x3" in explained["feature"].tolist()
    assert "x0" not in explained["feature"].tolist()


def test_imputing_is_as_if_values_had_been_imputed_before():
    crf = make("impute", max_bins=8).fit(GAPS, Y)
    fills = crf._trees.columns.fills
    known = np.concatenate(GAPS)
    medians = [np.median(column[~np.isnan(column)]) for column in known.T]
    for column, (median, fill) in enumerate(zip(medians, fills, strict=True)):
        cuts = crf._trees.columns.cuts_of(column)
        assert abs(1 + np.sum(cuts <= median) - fill) <= 1  # the lower one of two in the middle
    # A value of the bin that is imputed.
    values = []
    for column, fill in enumerate(fills):
        cuts = [-1e9, *crf._trees.columns.cuts_of(column), 1e9]
        values.append((cuts[fill - 1] + cuts[fill]) / 2)
    filled = [np.where(np.isnan(x), values, x) for x in GAPS]
    np.testing.assert_array_equal(crf.predict_proba(filled), crf.predict_proba(GAPS))


def test_more_values_missing_than_in_training():
    for method in METHODS:
        crf = make(method).fit(X, Y)
        assert np.isfinite(crf.predict_proba(GAPS)).all()


def test_the_file_says_how_missing_values_are_treated(tmp_path):
    for method in METHODS:
        crf = make(method).fit(GAPS, Y)
        again = hedgerow.load(saved(crf, tmp_path))
        assert again._trees.columns.missing == again.missing == method
        np.testing.assert_array_equal(again.predict_proba(GAPS), crf.predict_proba(GAPS))


def test_another_way_than_that_of_init_is_refused():
    init = make("impute").fit(GAPS, Y)
    message = (
        "missing is 'learned', but the trees of init, which are kept, were trained with missing"
    )
    with pytest.raises(ValueError, match=message):
        make("learned").fit(GAPS, Y, init=init)


@pytest.mark.parametrize("method", METHODS)
def test_trees_on_labels_before(method):
    crf = make(method, transitions="trees").fit(GAPS, Y)
    table = crf.trees()
    is_label = table["feature"] == "label[-1]"
    assert is_label.any()
    assert set(table["missing"][is_label]) <= {"left", "right"}
    model = read_model(crf, GAPS)
    for x in erase(X[:2], 0.5, seed=1):
        expected = model.enumerate(x, None).marginals
        np.testing.assert_allclose(crf.predict_marginals([x])[0], expected, atol=1e-6)


def test_fractions_with_trees_on_labels_before(tmp_path):
    def train(n_rounds=4, **more):
        return make("fractional", transitions="trees", order=2, n_rounds=n_rounds, **more)

    crf = train().fit(GAPS, Y)
    assert_same_training(crf, train(n_jobs=3).fit(GAPS, Y))
    resumed = train(2).fit(GAPS, Y, init=train(2).fit(GAPS, Y))
    loaded = hedgerow.load(saved(crf, tmp_path))
    for other in (resumed, loaded):
        np.testing.assert_array_equal(other.predict_proba(GAPS), crf.predict_proba(GAPS))
    table = crf.trees()
    assert set(table["missing"][table["feature"] == "x0"]) == {"both"}
    position = int(np.argmax(np.isnan(GAPS[0]).any(axis=1)))
    explanation = crf.explain(GAPS[0], position)
    assert explanation.to_table()["contribution"].sum() == pytest.approx(explanation.log_odds)
    known = [None] * len(GAPS[0])
    known[position] = "a"
    assert crf.predict([GAPS[0]], known=[known])[0][position] == "a"


@pytest.mark.parametrize("method", METHODS)
def test_a_monotone_column_stays_monotone(method):
    labels = [np.where(np.array(y) == "a", "up", "down") for y in Y]
    crf = make(method, n_rounds=8, window=0, order=0, monotone_constraints={0: {"up": 1}})
    crf.fit(GAPS, labels)
    for rest in ([0.3, np.nan], [np.nan, np.nan], [-1.0, 0.5]):
        line = [[value, *rest] for value in np.linspace(-3, 3, 40)]
        rising = crf.predict_proba(np.array(line))[:, list(crf.classes_).index("up")]
        assert (np.diff(rising) >= -1e-12).all()


def test_surrogates_keep_to_groups_of_columns():
    crf = make("surrogate", interaction_constraints=[[0, 1], [2]]).fit(GAPS, Y)
    groups = {"x0": "x0 x1", "x1": "x0 x1", "x2": "x2"}
    table = crf.trees()
    for feature, surrogates in zip(table["feature"], table["surrogates"], strict=True):
        for text in surrogates:
            assert text[:2] in groups[feature]
