"""Explanations: additive, and every part equals enumeration."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from abuse.explanations import check_explanation
from hedgerow import DataWarning, LinearCRF, TreeCRF
from reference.estimators import assert_same, group_ids, refuses
from reference.fitted_model import read_model
from reference.linear import hide, keeps_rules, keeps_scheme, make_data, make_legal_data, to_dicts
from reference.tree_tables import KINDS, make_sequences

TREES = {"n_rounds": 4, "max_depth": 3, "min_child_weight": 0.1, "n_jobs": 1}
X, Y = make_data(n_sequences=16, longest=5, seed=1)
BIO_X, BIO_Y = make_legal_data(partial(keeps_scheme, "BIO"), ("O", "B-x", "I-x"), n_sequences=16)
KINDS_OF_MODEL = {
    "no order": {"order": 0},
    "first order": {},
    "pairs that occur": {"min_pattern_count": 4},
    "second order": {"order": 2},
    "third order": {"order": 3},
    "few patterns": {"label_patterns": [("a", "b", "a"), ("c", "c")]},
    "ends": {"start_labels": ["a", "b"], "end_labels": ["a", "c"]},
    "forbidden": {"forbidden": [("a", "b"), ("c", "c")], "order": 2},
    "pair attributes": {"transition_attributes": True},
    "pair attributes, second order": {"transition_attributes": True, "order": 2},
    "pair attributes by prefix": {"transition_attributes": "x1"},
    "pattern attributes": {"pattern_attributes": True},
    "pattern attributes, third order": {"pattern_attributes": True, "order": 3},
    "BIO": {"constraints": "BIO"},
    "BIO, second order": {"constraints": "BIO", "order": 2},
    "for accuracy": {"objective": "accuracy"},
}
OF_TREES = ["first order", "few patterns", "forbidden", "BIO, second order", "for accuracy"]
MODELS = [*((LinearCRF, kind) for kind in KINDS_OF_MODEL), *((TreeCRF, kind) for kind in OF_TREES)]


def fit(estimator, options):
    """A model, and what it was trained on: only what the constraints allow, if there are any."""
    data = (BIO_X, BIO_Y) if "constraints" in options else (X, Y)
    if "start_labels" in options or "forbidden" in options:
        keep = [i for i, y in enumerate(Y) if keeps_rules(y, **options)]
        data = [X[i] for i in keep], [Y[i] for i in keep]
    if estimator is TreeCRF:
        return TreeCRF(**TREES, window=1, **options).fit(*data), *data
    return LinearCRF(tol=0, max_iter=15, **options).fit(*data), *data


@pytest.mark.parametrize("with_known", [False, True], ids=["nothing known", "some known"])
@pytest.mark.parametrize(("estimator", "kind"), MODELS)
def test_every_part_is_what_listing_all_labellings_gives(estimator, kind, with_known):
    crf, X, y = fit(estimator, KINDS_OF_MODEL[kind])
    model = read_model(crf, X)
    longest = sorted(range(len(X)), key=lambda i: -len(X[i]))[:2]
    for i in (*longest, 1):
        x, known = X[i], None
        if with_known:
            known = [None if t == 1 else k for t, k in enumerate(hide(y, share=0.5)[i])]
        exact = model.enumerate(x, known)
        predicted = model.codes(crf.predict([x], known=known and [known])[0].tolist())
        for t in np.flatnonzero(np.count_nonzero(exact.marginals, axis=1) > 1).tolist():
            found = crf.explain(x, t, known=known)
            assert (found.position, found.length) == (t, len(x))
            check_explanation(model, exact, x, predicted, found, 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_changes_on_the_way_down_belong_to_the_features_asked_about(kind):
    X, y = make_sequences(kind, seed=3)
    crf = TreeCRF(**TREES, window=(1, 2)).fit(X, y)
    model = read_model(crf, X)
    for x, labels in zip(X[:2], y, strict=False):
        for t in range(len(labels)):
            found = crf.explain(x, t, "q", "r")
            bias, parts = model.contributions(x, t, "q", "r")
            assert found.bias == pytest.approx(bias)
            columns = (column.tolist() for column in found.feature_table.values())
            rows = list(zip(*columns, strict=True))
            assert {row[:2]: pytest.approx(row[3]) for row in rows} == parts
            sizes = [abs(row[3]) for row in rows]
            assert sizes == sorted(sizes, reverse=True)
            for feature, offset, value, _ in rows:
                assert value == model.value(x, t + offset, feature)


def test_an_attribute_contributes_its_value_times_its_weight():
    items = [[{"w": "a", "n": 2.0}, {"w": "b"}, {"w": "new", "n": -1.0}]] * 3
    crf = LinearCRF().fit([x[:2] for x in items], [["p", "q"]] * 3)
    weights = read_model(crf, items).node_weights
    found = crf.explain(items[0], 2, "q", "p")
    assert found.features["feature"].tolist() == ["n"]
    assert found.features["value"].tolist() == [-1.0]
    assert found.features["offset"].tolist() == [0]
    expected = -(weights.get(("n", "q"), 0.0) - weights["n", "p"])
    assert found.features["contribution"].item() == pytest.approx(expected)
    assert found.bias == pytest.approx(weights["(bias)", "q"] - weights["(bias)", "p"])


def test_the_label_and_its_rival_can_be_chosen():
    crf = LinearCRF().fit(X, Y)
    found, turned = crf.explain(X[0], 1, "a", "c"), crf.explain(X[0], 1, "c", "a")
    assert (found.label, found.against, turned.label, turned.against) == ("a", "c", "c", "a")
    assert found.log_odds == pytest.approx(-turned.log_odds)
    predicted = crf.predict([X[0]])[0][1]
    other = next(k for k in "abc" if k != predicted)
    assert crf.explain(X[0], 1, other).against == predicted


def test_odds_beyond_what_a_probability_can_hold():
    crf = LinearCRF().fit(X, Y)
    far = crf.explain(X[0] * 1e6, 2)
    assert (far.prob, far.prob_against) == (1.0, 0.0)
    assert far.log_odds > 1000
    assert far.to_table()["contribution"].sum() == pytest.approx(far.log_odds)
    rivals = [crf.explain(X[0] * 1e6, 2, against=k).log_odds for k in "abc" if k != far.label]
    assert far.log_odds == min(rivals)


def test_text():
    x = pd.DataFrame({"speed": [0.5, np.nan, 3.25], "kind": ["a", "b", "a"]})
    y = ["slow", "slow", "fast"]
    crf = TreeCRF(n_rounds=5, window=1, min_child_weight=0.01).fit([x] * 9, [y] * 9)
    found = crf.explain(x, 1)
    lines = str(found).splitlines()
    assert lines[0] == (
        f"position 1: slow (probability {found.prob:.4g}) against fast ({found.prob_against:.4g})"
    )
    assert lines[2].split() == ["contribution", "feature", "offset", "value"]
    for position, shown in ((0, "outside"), (2, "missing")):  # what stands before them
        before = str(crf.explain(x, position)).splitlines()
        assert any(line.split()[1:] == ["speed", "-1", shown] for line in before)
    transitions = [line.split("transition ")[1] for line in lines if "transition" in line]
    assert transitions == ["slow -> [slow]", "[slow] -> fast"]
    assert [line.split(maxsplit=1)[1] for line in lines[-3:]] == [
        "uncertainty about labels before", "uncertainty about labels after", "= log-odds",
    ]  # fmt: skip
    assert lines[-1].split()[0] == f"{found.log_odds:+.4f}"
    assert repr(found) == (
        f"Explanation(position=1, label='slow', against='fast', log_odds={found.log_odds:.4f})"
    )
    assert "uncertainty about labels before" not in str(crf.explain(x, 0))
    assert "uncertainty about labels after" not in str(crf.explain(x, 2))


@pytest.mark.parametrize(
    ("n_features", "others"), [(15, "5 more features"), (11, "1 more feature")]
)
def test_text_lists_the_ten_largest_features(n_features, others):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, n_features))
    found = LinearCRF().fit([x], [[0, 1, 0, 1, 1, 0]]).explain(x, 3)
    lines = str(found).splitlines()
    assert sum(" x" in line for line in lines) == 10
    rest = found.features["contribution"][10:].sum()
    assert f"{rest:+.4f}  {others}" in [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[0], 5), "position is 5, but x has 5 positions; expected an integer from 0 to 4"),
        ((X[0], -1), "position is -1, but x has 5"),
        ((X[0], 1.0), "position is 1.0, but x has 5"),
        ((X[0], True), "position is True, but x has 5"),
        ((X[0], 0, "z"), "label has the unknown label 'z'; known labels: 'a', 'b', 'c'"),
        ((X[0], 0, "a", 1), "against has the unknown label 1"),
        ((X[0], 0, "a", "a"), "label and against are both 'a'; pass two labels"),
        ((X[:3], 0), r"x is a list of 3 sequences; expected the sequence itself"),
        ((X[:1], 0), r"x is a list of 1 sequence; "),
        ((X[0][:, :2], 0), "X has 2 features, but LinearCRF is expecting 3"),
    ],
)
def test_bad_questions(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearCRF(max_iter=2, tol=0).fit(X, Y).explain(*arguments)


def test_lists_of_items_are_not_one_sequence():
    items = to_dicts(X)
    crf = LinearCRF(max_iter=2, tol=0).fit(items, Y)
    with pytest.raises(ValueError, match=r"x is a list of 2 sequences; "):
        crf.explain(items[:2], 0)
    words = [[["a", "b"], ["c"]], [["c"]]]
    crf = LinearCRF(max_iter=2, tol=0).fit(words, [[0, 1], [1]])
    assert crf.explain(words[0], 1).features["feature"].tolist() == ["c"]
    with pytest.raises(ValueError, match=r"x is a list of 2 sequences; "):
        crf.explain(words, 0)


def test_a_table_that_carries_its_groups():
    table = pd.DataFrame(np.concatenate(X), columns=["a", "b", "c"]).assign(group=group_ids(X))
    crf = LinearCRF(max_iter=2, tol=0, group_column="group").fit(table, np.concatenate(Y))
    first = table[table["group"] == 0]
    assert crf.explain(first, 1).length == len(X[0])
    with pytest.raises(ValueError, match=rf"x contains {len(X)} sequences, by its group ids; "):
        crf.explain(table, 1)
    with pytest.raises(ValueError, match="known"):
        crf.explain(first, 1, known=["a"])


@pytest.mark.parametrize("group_column", ["group", 3])
def test_one_sequence_needs_no_group_column(group_column):
    table = pd.DataFrame(np.concatenate(X), columns=["a", "b", "c"]).assign(group=group_ids(X))
    crf = LinearCRF(max_iter=2, tol=0, group_column=group_column).fit(table, np.concatenate(Y))
    first = table[table["group"] == 0]
    expected = str(crf.explain(first, 1))
    without = first.drop(columns="group")
    for x in (without, without[["c", "a", "b"]], X[0], sparse.csr_array(X[0]), X[0].tolist()):
        assert str(crf.explain(x, 1)) == expected
    with pytest.raises(ValueError, match=r"x is a list of 1 sequence; "):
        crf.explain([first], 1)


def test_labels_that_are_not_possible():
    crf = TreeCRF(**TREES, constraints="BIO").fit(BIO_X, BIO_Y)
    message = "label 'I-x' is not possible at position 0: constraints"
    refuses(ValueError, message, crf.explain, BIO_X[0], 0, "I-x")
    refuses(ValueError, message, crf.explain, BIO_X[0], 0, against="I-x")
    message, known = "no label but 'O' is possible", ["O", *[None] * (len(BIO_X[0]) - 1)]
    refuses(ValueError, f"{message} at position 0", crf.explain, BIO_X[0], 0, known=known)
    with pytest.warns(DataWarning, match="y has a single label, 'a'"):
        one = LinearCRF().fit([[[1.0]]], [["a"]])
    refuses(ValueError, "no label but 'a' is possible at position 0", one.explain, [[1.0]], 0)


def test_a_category_of_many_is_found_as_another_kind_of_number():
    values = np.arange(600) % 300
    frame = pd.DataFrame({"c": pd.Categorical(values)})
    crf = TreeCRF(n_rounds=1, min_child_weight=0, n_jobs=1).fit(frame, values < 5)
    floats = pd.DataFrame({"c": pd.Categorical(values.astype(float))})
    found, expected = (crf.explain(X.iloc[3:4], 0).feature_table for X in (floats, frame))
    assert expected["value"].tolist().count(1.0) == 1
    assert found.keys() == expected.keys()
    assert_same(found.values(), expected.values())
