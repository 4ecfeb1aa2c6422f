"""Features of ancestors are columns copied from them, without a copy."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from hedgerow import TreeCRF, load, plots
from hedgerow._core import PARENT
from reference.parents import ancestors_of, copy_features, random_parents

RNG = np.random.default_rng(5)
LENGTHS = RNG.integers(1, 9, 24)
X = [RNG.integers(0, 5, (length, 3)).astype(float) for length in LENGTHS]
PARENTS = [random_parents(RNG, length) for length in LENGTHS]
Y = [
    [
        "ab"[int(x[t, 0] + sum(2 * x[a, 1] for a in ancestors_of(p, t, 2) if a is not None) > 4)]
        for t in range(len(x))
    ]
    for x, p in zip(X, PARENTS, strict=True)
]
OPTIONS = {"n_rounds": 6, "max_depth": 3, "min_child_weight": 0.1, "n_jobs": 1, "order": 0}


def make(**options):
    return TreeCRF(**(OPTIONS | options))


def fit(X=X, **options):
    return make(**options).fit(X, Y, parents=PARENTS)


@pytest.mark.parametrize(("window", "ancestors"), [((0, 0), 1), ((0, 0), 3), ((2, 1), 2)])
def test_ancestors_equal_copied_columns(window, ancestors):
    copied = [copy_features(x, p, window, ancestors) for x, p in zip(X, PARENTS, strict=True)]
    crf, same = fit(window=window, ancestors=ancestors), fit(copied)
    assert crf.history_ == same.history_
    np.testing.assert_array_equal(
        crf.predict_proba(X, parents=PARENTS), same.predict_proba(copied, parents=PARENTS)
    )
    ours, theirs = crf._trees.forest, same._trees.forest
    splits = ours.columns >= 0
    n_near = sum(window) + 1
    near = np.where(ours.offsets < PARENT, ours.offsets + window[0], ours.offsets - PARENT + n_near)
    place = ours.columns * (n_near + ancestors) + near
    np.testing.assert_array_equal(place[splits], theirs.columns[splits])
    assert (ours.offsets[splits] >= PARENT).any()
    for x, parents, copy in zip(X[:4], PARENTS, copied, strict=False):
        part = same.predict_proba([copy], parents=[parents])
        np.testing.assert_array_equal(crf.predict_proba([x], parents=[parents]), part)


def forms():
    """The same X in other forms, as what trees ask about differs."""
    frames = [pd.DataFrame(x, columns=["a", "b", "c"]) for x in X]
    yield "sparse", [sparse.csr_array(x) for x in X]
    yield "dicts", [[{f"k{v:g}": 1.0, f"m{w:g}": 1.0} for v, w, _ in x] for x in X]
    yield "text", [frame.assign(b="v" + frame["b"].astype(int).astype(str)) for frame in frames]
    yield "gaps", [np.where(RNG.random(x.shape) < 0.2, np.nan, x) for x in X]


FORMS = dict(forms())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("more", [{}, {"missing": "surrogate"}, {"missing": "fractional"}])
def test_all_that_walks_trees_agrees(form, more, tmp_path):
    given = FORMS[form]
    crf = fit(given, ancestors=2, window=1, **more)
    two = fit(given, ancestors=2, window=1, **more | {"n_jobs": 2})
    found = crf.predict_proba(given, parents=PARENTS)
    np.testing.assert_array_equal(two.predict_proba(given, parents=PARENTS), found)
    one_by_one = [crf.predict_proba([x], parents=[p]) for x, p in zip(given, PARENTS, strict=True)]
    # A sequence that is a chain is alone recognised as one, and goes through another kernel.
    np.testing.assert_allclose(np.concatenate(one_by_one), found, rtol=1e-13)
    assert crf.history_["accuracy"][-1] == crf.score(given, Y, parents=PARENTS)
    crf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(given, parents=PARENTS), found)
    starts = np.cumsum([0, *LENGTHS])
    for s in np.argsort(-LENGTHS)[:3]:
        for t in range(LENGTHS[s]):
            explained = crf.explain(given[s], t, "a", "b", parents=PARENTS[s])
            odds = np.log(found[starts[s] + t]) @ [1, -1]
            assert explained.log_odds == pytest.approx(odds)
            assert explained.features["contribution"].sum() + explained.bias == pytest.approx(odds)


def test_names_of_ancestors(tmp_path):
    frames = [pd.DataFrame(x, columns=["a", "b", "c"]) for x in X]
    crf = fit(frames, ancestors=3)
    table = crf.trees()
    splits = table[table["feature"] != ""]
    names = set(splits["feature"])
    assert {"b[parent]", "b[grandparent]"} <= names
    assert set(splits.loc[splits["feature"] == "b[parent]", "ancestor"]) == {1}
    assert (splits["offset"] == 0).all()
    assert splits["question"].str.startswith("b[parent] <").any()
    importances = crf.importances()
    assert names == set(importances["feature"])
    assert "ancestor" not in fit(frames).trees()
    document = json.loads(crf.to_json())
    nodes = [node for tree in document["trees"] for node in tree["nodes"] if "feature" in node]
    assert {node.get("ancestor") for node in nodes} >= {None, 1, 2}
    assert all(("offset" in node) != ("ancestor" in node) for node in nodes)
    s = int(np.argmax(LENGTHS))
    explained = crf.explain(frames[s], 1, parents=PARENTS[s])
    assert "b[parent]" in str(explained) or "b[grandparent]" in str(explained)
    ax = plots.tree(crf, round=1, label="a")
    assert any("[parent]" in text.get_text() for text in ax.texts)
    plots.importances(crf)


def test_ancestors_of_chains_are_the_positions_before():
    chains = [np.arange(length) - 1 for length in LENGTHS]
    crf = make(ancestors=2).fit(X, Y, parents=chains)
    same = make(window=(2, 0)).fit(X, Y)
    assert crf.loss_ == pytest.approx(same.loss_, rel=1e-12)
    np.testing.assert_allclose(crf.predict_proba(X, parents=chains), same.predict_proba(X))


def test_rules_of_columns_hold_at_ancestors():
    crf = fit(ancestors=1, monotone_constraints={1: {"b": 1}}, n_rounds=10)
    raised = [x.copy() for x in X]
    for x in raised:
        x[:, 1] += 1
    low, high = (crf.predict_proba(given, parents=PARENTS)[:, 1] for given in (X, raised))
    assert (high >= low - 1e-12).all()
    alone = fit(ancestors=1, interaction_constraints="no_interactions")
    branches = alone.trees()
    assert set(branches["feature"]) - {""}


def test_init_and_sampling():
    crf = fit(ancestors=2, n_rounds=3)
    more = make(ancestors=2, n_rounds=3).fit(X, Y, parents=PARENTS, init=crf)
    whole = fit(ancestors=2, n_rounds=6)
    np.testing.assert_array_equal(
        more.predict_proba(X, parents=PARENTS), whole.predict_proba(X, parents=PARENTS)
    )
    sampled = {"colsample_bytree": 0.5, "colsample_bynode": 0.5, "random_state": 1}
    one, two = (fit(ancestors=3, window=1, n_jobs=n, **sampled) for n in (1, 2))
    assert one.loss_ == two.loss_


def test_what_is_refused(make):
    message = "ancestors is 2, but X comes without parents; pass parents=... to fit, or name the"
    with pytest.raises(ValueError, match=message):
        make(ancestors=2).fit(X, Y)
    for wrong in (-1, 256, 1.5, True):
        with pytest.raises(ValueError, match=f"ancestors is {wrong}; expected an integer from 0"):
            make(ancestors=wrong).fit(X, Y, parents=PARENTS)
