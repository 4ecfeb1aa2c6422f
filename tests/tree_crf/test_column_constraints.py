"""Monotone and interaction constraints of TreeCRF."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from hedgerow import Checkpoint, TreeCRF, load
from reference.boosting import assert_same_model

NAMES = ("chill", "fever", "well")


def make_days(seed=0, n_labels=3, lengths=(9, 7, 8, 6)):
    """Temperature, pulse and noise of some patients; labels that are wrong now and then."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in lengths:
        x = np.column_stack(
            [rng.normal(size=length), rng.integers(0, 5, length), rng.random(length)]
        )
        codes = np.digitize(x[:, 0] + 0.3 * x[:, 1] * rng.normal(size=length), [-0.5, 0.8])
        x[rng.random(x.shape) < 0.1] = np.nan
        X.append(x)
        y.append([NAMES[(0, 2, 1)[code] if n_labels == 3 else int(code > 0)] for code in codes])
    return X, y


X, Y = make_days()
FRAMES = [pd.DataFrame(x, columns=["temp", "pulse", "noise"]) for x in X]
TWO = make_days(n_labels=2)[1]


def make(**parameters):
    return TreeCRF(**{"n_rounds": 6, "max_depth": 4, "min_child_weight": 0.01, **parameters})


def raise_column(crf, x, column, position, known=None, steps=25):
    """Marginals (steps, K) of a position, as one of its values, or a neighbour's, rises."""
    where, column = (position, column) if np.isscalar(position) else (position[1], column)
    answer = position if np.isscalar(position) else position[0]
    marginals = []
    for value in np.linspace(-3, 6, steps):
        changed = x.copy()
        changed[where, column] = value
        marginals.append(crf.predict_marginals([changed], known=known)[0][answer])
    return np.array(marginals)


@settings(deadline=None, derandomize=True, max_examples=10)
@given(st.integers(0, 1000), st.sampled_from([0, 1, 2]), st.sampled_from([1, -1]))
def test_the_probability_of_a_label_goes_one_way(seed, order, direction):
    X, y = make_days(seed)
    constraints = {0: {"fever": direction}, 1: {"well": -1}}
    crf = make(order=order, monotone_constraints=constraints, random_state=seed).fit(X, y)
    for position in (0, 3):
        fever = raise_column(crf, X[0], 0, position)[:, 1]
        assert (direction * np.diff(fever) >= -1e-12).all()
        assert (np.diff(raise_column(crf, X[0], 1, position)[:, 2]) <= 1e-12).all()


def test_without_a_constraint_it_goes_both_ways():
    steps = np.diff(raise_column(make().fit(X, Y), X[0], 0, 3)[:, 1])
    assert steps.min() < -0.01
    assert steps.max() > 0.01


def test_given_the_other_labels_it_holds_in_the_whole_window():
    crf = make(n_rounds=20, window=1, monotone_constraints={0: {"fever": 1}}).fit(X, Y)
    known = [[*Y[0][:3], None, *Y[0][4:]]]
    for neighbour in (2, 3, 4):
        fever = raise_column(crf, X[0], 0, (3, neighbour), known)[:, 1]
        assert (np.diff(fever) >= -1e-12).all()
        assert np.ptp(fever) > 0


def test_labels_in_between_do_not_look_at_the_column():
    crf = make(monotone_constraints={0: {"fever": 1, "chill": -1}}).fit(X, Y)
    table = crf.trees()
    assert "x0" not in set(table["feature"][table["label"] == "well"])
    assert "x0" in set(table["feature"][table["label"] == "fever"])
    marginals = raise_column(crf, X[0], 0, 3)
    assert (np.diff(marginals[:, 1]) >= -1e-12).all()
    assert (np.diff(marginals[:, 0]) <= 1e-12).all()
    assert (np.diff(marginals[:, 1] / marginals[:, 2]) >= -1e-12).all()


def test_labels_with_one_direction_rise_together():
    crf = make(monotone_constraints={0: {"fever": 1, "well": 1}}).fit(X, Y)
    both = raise_column(crf, X[0], 0, 3)[:, 1:].sum(axis=1)
    assert (np.diff(both) >= -1e-12).all()


@pytest.mark.parametrize(
    "constraints",
    [{0: 1, 1: -1}, [1, -1, 0], np.array([1, -1, 0]), {0: {"fever": 1}, 1: {"chill": 1.0}}],
)
def test_with_two_labels_a_number_is_about_the_second(constraints):
    crf = make(monotone_constraints=constraints).fit(X, TWO)
    assert (np.diff(raise_column(crf, X[0], 0, 3)[:, 1]) >= -1e-12).all()
    assert (np.diff(raise_column(crf, X[0], 1, 3)[:, 1]) <= 1e-12).all()
    expected = {"temp": {"fever": 1}, "pulse": {"fever": -1, "chill": 0}}
    assert_same_model(crf, make(monotone_constraints=expected).fit(FRAMES, TWO))


@pytest.mark.parametrize("nothing", [{}, {0: {}}, {0: {"fever": 0}}, {1: 0}, [0, 0, 0], None])
def test_constraints_that_say_nothing_change_nothing(nothing):
    assert_same_model(make(monotone_constraints=nothing).fit(X, Y), make().fit(X, Y))


def test_sparse_columns_and_attributes_are_0_where_they_are_absent():
    filled = [np.nan_to_num(x) for x in X]
    sparse = [scipy.sparse.csr_array(x) for x in filled]
    dicts = [[{"temp": row[0], "pulse": row[1], "word": "a"} for row in x] for x in filled]
    for data, name in ((sparse, 0), (dicts, "temp")):
        crf = make(monotone_constraints={name: {"fever": 1}}).fit(data, Y)
        fever = []
        for value in np.linspace(-3, 3, 25):
            changed = filled[0].copy()
            changed[3, 0] = value
            row = [{**item} for item in dicts[0]]
            row[3]["temp"] = value
            x = scipy.sparse.csr_array(changed) if name == 0 else row
            fever.append(crf.predict_marginals([x])[0][3, 1])
        assert (np.diff(fever) >= -1e-12).all()


def branches(crf):
    """The columns on the way to each leaf of each tree."""
    table = crf.trees()
    above = {}
    for tree, node, feature, left, right in zip(
        zip(table["round"], table["label"], strict=True),
        *(table[name] for name in ("node", "feature", "left", "right")),
        strict=True,
    ):
        own = above.setdefault((tree, node), frozenset())
        if left >= 0:
            above[tree, left] = above[tree, right] = own | {feature}
    return set(above.values())


@pytest.mark.parametrize(
    ("constraints", "groups"),
    [
        ([["temp", "pulse"]], [{"temp", "pulse"}, {"noise", "ward"}]),
        ([{"temp", "noise"}, {"temp", "ward"}], [{"temp", "noise"}, {"temp", "ward"}, {"pulse"}]),
        ([["ward"], ("pulse", 0)], [{"ward"}, {"temp", "pulse"}, {"noise"}]),
        ("no_interactions", [{"temp"}, {"pulse"}, {"noise"}, {"ward"}]),
    ],
)
def test_columns_of_a_branch_are_of_one_group(constraints, groups):
    frames = [f.assign(ward=np.where(f["noise"] > 0.4, "north", "south")) for f in FRAMES]
    crf = make(interaction_constraints=constraints, window=1).fit(frames, Y)
    found = branches(crf)
    assert all(any(branch <= group for group in groups) for branch in found)
    assert any(len(branch) > 1 for branch in found) or constraints == "no_interactions"
    assert any(len(branch) > 1 for branch in branches(make(window=1).fit(frames, Y)))


def test_pairs():
    free, pairwise = (
        make(interaction_constraints=constraints, max_depth=6).fit(FRAMES, Y)
        for constraints in (None, "pairwise")
    )
    assert max(map(len, branches(free))) == 3
    assert max(map(len, branches(pairwise))) == 2


def test_a_key_of_dicts_stands_for_all_its_values():
    rng = np.random.default_rng(0)
    dicts = [
        [
            {"word": "abc"[rng.integers(3)], "end": "xyz"[rng.integers(3)], "long": rng.random()}
            for _ in y
        ]
        for y in Y
    ]
    crf = make(interaction_constraints=[["word", "long"]]).fit(dicts, Y)
    keys = {frozenset(name.partition(":")[0] for name in branch) for branch in branches(crf)}
    assert all(branch <= {"word", "long"} or branch <= {"end"} for branch in keys)
    assert {"word", "long"} in keys


BOTH = {
    "monotone_constraints": {"temp": {"fever": 1, "chill": -1}, "pulse": {"well": -1}},
    "interaction_constraints": [{"temp", "noise"}],
}


def test_saved_cloned_and_resumed(tmp_path):
    crf = make(**BOTH).fit(FRAMES, Y)
    crf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.monotone_constraints == BOTH["monotone_constraints"]
    assert loaded.interaction_constraints == [["noise", "temp"]]
    assert_same_model(loaded, crf)
    assert_same_model(clone(loaded).fit(FRAMES, Y), crf)
    checkpoint = Checkpoint(tmp_path / "training", every=2)
    make(**BOTH, n_rounds=3).fit(FRAMES, Y, checkpoint=checkpoint)
    assert_same_model(make(**BOTH).fit(FRAMES, Y, checkpoint=checkpoint), crf)
    other = make(**BOTH | {"interaction_constraints": "pairwise"})
    with pytest.raises(ValueError, match=r"interaction_constraints was .* and is 'pairwise' now"):
        other.fit(FRAMES, Y, checkpoint=checkpoint)


def test_integer_labels_stay_integers_in_a_file(tmp_path):
    y = [[NAMES.index(label) for label in labels] for labels in Y]
    crf = make(monotone_constraints={0: {1: 1}}).fit(X, y)
    crf.save(tmp_path / "model")
    assert load(tmp_path / "model").monotone_constraints == {0: {1: 1}}


@pytest.mark.parametrize(
    "constraints",
    [
        {"monotone_constraints": {"temp": {"fever": 1}}},
        {"monotone_constraints": {"temp": {"fever": 1, "chill": -1}}},
        {"interaction_constraints": "no_interactions"},
        {"interaction_constraints": [["temp", "pulse"]]},
    ],
)
def test_trees_of_init_must_keep_to_the_constraints(constraints):
    free = make().fit(FRAMES, Y)
    with pytest.raises(ValueError, match="the trees of init, which are kept, violate monotone"):
        make(**constraints).fit(FRAMES, Y, init=free)
    half = make(**constraints, n_rounds=3).fit(FRAMES, Y)
    whole = make(**constraints).fit(FRAMES, Y)
    assert_same_model(make(**constraints, n_rounds=3).fit(FRAMES, Y, init=half), whole)


DIRECTION = "expected 1, -1 or 0"
DIRECTIONS = f"{DIRECTION}, or a dict with one of these for each label"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("temp", r"monotone_constraints is 'temp'; expected a dict from columns to directions"),
        (1, r"monotone_constraints is 1; expected a dict from columns to directions"),
        ({"temp": "up"}, rf"monotone_constraints\['temp'\] is 'up'; {DIRECTIONS}"),
        ({"temp": 2}, rf"monotone_constraints\['temp'\] is 2; {DIRECTIONS}"),
        ({"temp": True}, rf"monotone_constraints\['temp'\] is True; {DIRECTIONS}"),
        ({"temp": {"fever": 2}}, rf"\['temp'\]\['fever'\] is 2; {DIRECTION}$"),
        ([1, 0.5, 0], rf"monotone_constraints\[1\] is 0.5; {DIRECTION}$"),
        ({1.5: 1}, "has the column 1.5; expected the name or the number of a column"),
        ({"tmep": {"fever": 1}}, "'tmep', which is not a feature of X; did you mean temp?"),
        ({"xyz": {"fever": 1}}, "'xyz', which is not a feature of X; its features are temp, pu"),
        ({3: {"fever": 1}}, "names 3, which is not a feature of X; its features are temp, pu"),
        ({-1: {"fever": 1}}, "names -1, which is not a feature of X"),
        ({"temp": {"fevr": 1}}, r"\['temp'\] has the unknown label 'fevr'; known labels: 'chill'"),
        ({"temp": 1}, r"\['temp'\] is 1, but y has 3 labels, so monotone_constraints must say"),
        ([1, 0, 0], r"by column and label, such as {0: {'well': 1}}, with a direction for one or"),
        ([1, 0], "has 2 directions, but X has 3 features; pass one for each, or a dict by feature"),
        ({"temp": {"fever": 1}, 0: {"well": 1}}, "has the column 'temp' twice, by name and by nu"),
        ({"temp": dict.fromkeys(NAMES, 1)}, r"\['temp'\] has the direction 1 for every label, wh"),
    ],
)
def test_monotone_constraints_that_are_wrong(value, message):
    with pytest.raises(ValueError, match=message):
        make(monotone_constraints=value).fit(FRAMES, Y)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("pairs", "interaction_constraints is 'pairs'; expected a list of groups of columns, such"),
        (3, "interaction_constraints is 3; expected a list of groups of columns"),
        (["temp"], r"interaction_constraints\[0\] is 'temp'; expected a group of columns, such"),
        ([["temp", None]], r"interaction_constraints\[0\] has the column None; expected the name"),
        ([["temp", "puls"]], "names 'puls', which is not a feature of X; did you mean pulse?"),
    ],
)
def test_interaction_constraints_that_are_wrong(value, message):
    with pytest.raises(ValueError, match=message):
        make(interaction_constraints=value).fit(FRAMES, Y)


def test_the_column_of_groups_is_not_a_feature():
    table = pd.concat([frame.assign(g=s)[["g", *frame]] for s, frame in enumerate(FRAMES)])
    for value, message in (
        ({"g": {"fever": 1}}, "names 'g', which is not a feature of X; its features are temp, pu"),
        ({3: {"fever": 1}}, "names 3, which is not a feature of X; its features are temp, pu"),
        ([0, 1, 0, 0], "has 4 directions, but X has 3 features; pass one for each"),
    ):
        with pytest.raises(ValueError, match=message):
            make(monotone_constraints=value, group_column="g").fit(table, np.concatenate(Y))


def test_columns_that_have_no_names_and_columns_of_text():
    with pytest.raises(ValueError, match="'temp', but X has no column names; pass the number of"):
        make(interaction_constraints=[["temp"]]).fit(X, Y)
    with pytest.raises(ValueError, match="3, which is not a feature of X; its features are 0 to 2"):
        make(monotone_constraints={3: {"fever": 1}}).fit(X, Y)
    frames = [frame.assign(ward="north") for frame in FRAMES]
    for ward in ("ward", 3):
        with pytest.raises(ValueError, match="names the feature 'ward', which holds text, and"):
            make(monotone_constraints={ward: {"fever": 1}}).fit(frames, Y)
    dicts = [[{"word": "a", "temp": 1.0}] * len(labels) for labels in Y]
    with pytest.raises(ValueError, match="names the feature 'word', which holds text, and text"):
        make(monotone_constraints={"word": {"fever": 1}}).fit(dicts, Y)
    with pytest.raises(ValueError, match="is a list, but X has named attributes, not numbered"):
        make(monotone_constraints=[1, 0]).fit(dicts, Y)
    with pytest.raises(
        ValueError, match="the attribute 'wrd', which does not occur in training; did you"
    ):
        make(interaction_constraints=[["wrd"]]).fit(dicts, Y)
