"""The table of trees: walked by hand on X as it is, it gives the scores of the trees."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from hedgerow import TreeCRF

COLUMNS = [
    "round", "label", "node", "feature", "offset", "question", "threshold", "categories",
    "left", "right", "missing", "value", "gain", "weight",
]  # fmt: skip
MISSING = object()


def frames(n_categories):
    """Numbers, of which some are missing, and text, of which some is."""

    def make(n, rng):
        names = [f"c{k}" for k in range(n_categories)]
        word = np.where(rng.random(n) < 0.1, None, rng.choice(names, n))
        speed = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(1))
        return pd.DataFrame({"speed": speed, "few": rng.integers(0, 3, n), "word": word})

    return make


def items(n, rng):
    """Attributes that are there or not, and with values."""
    numbers = rng.choice([0.0, 1.0, 1.0, 2.5, -1.0], n)
    return [
        {"word": word, "len": number, "up": bool(flag)}
        for word, number, flag in zip(
            rng.choice(["a", "b", "c"], n), numbers, rng.random(n) < 0.5, strict=True
        )
    ]


def matrices(n, rng):
    values = rng.choice([0.0, 0.0, 1.0, 2.0, -1.5, np.nan], (n, 3))
    return scipy.sparse.csr_array(np.column_stack([values, rng.integers(0, 2, n)]))


KINDS = {"frames": frames(4), "large text": frames(400), "items": items, "sparse": matrices}


def look_up(x, t, feature):
    """The value of a feature at a position of X as it is; `MISSING` beyond its ends."""
    n = x.shape[0] if hasattr(x, "shape") else len(x)
    if not 0 <= t < n:
        return MISSING
    if isinstance(x, pd.DataFrame):
        column, _, category = feature.partition("=")
        value = x[column].iloc[t]
        if category:
            return float(value == category)
    elif isinstance(x, list):
        name, _, text = feature.partition(":")
        value = float(x[t][name] == text) if text else float(x[t][name])
    else:
        value = x.toarray()[t, int(feature[1:])]
    return MISSING if value is None or value != value else value


def says_yes(row, value):
    if not math.isnan(row["threshold"]):
        return value < row["threshold"]
    if row["categories"] is not None:
        return value in row["categories"]
    if row["question"].endswith("is missing") or row["question"].endswith("is not missing"):
        return row["question"].endswith("not missing")
    assert row["question"].startswith(f"has {row['feature']!r}")
    return value >= 0.5


def walk(tree, x, t, known):
    """The value of the leaf that a position comes to."""
    node = 0
    while tree[node]["left"] >= 0:
        row = tree[node]
        value = look_up(x, t + row["offset"], row["feature"])
        if value is not MISSING and row["feature"] == "word" and value not in known:
            value = MISSING
        goes_left = row["missing"] == "left" if value is MISSING else says_yes(row, value)
        node = row["left"] if goes_left else row["right"]
    return tree[node]["value"]


@pytest.mark.parametrize("window", [0, (2, 1)])
@pytest.mark.parametrize("kind", KINDS)
def test_walking_the_table_gives_the_scores(kind, window):
    rng = np.random.default_rng(len(kind))
    lengths = rng.integers(1, 7, 90)
    X = [KINDS[kind](n, rng) for n in lengths]
    y = [rng.choice(["p", "q", "r"], n) for n in lengths]
    crf = TreeCRF(n_rounds=3, max_depth=4, min_child_weight=0.1, window=window).fit(X[:70], y[:70])
    table = crf.trees()
    assert list(table) == COLUMNS
    assert len({len(column) for column in table.values()}) == 1
    trees = {}
    for values in zip(*(column.tolist() for column in table.values()), strict=True):
        row = dict(zip(table, values, strict=True))
        trees.setdefault((row["round"], row["label"]), []).append(row)
    assert list(trees) == [(r, label) for r in (1, 2, 3) for label in "pqr"]
    known = {c for x in X[:70] for c in x["word"]} if isinstance(X[0], pd.DataFrame) else set()
    for x in X[60:]:
        (part,) = crf._potentials(crf._read([x], None))
        for t, scores in enumerate(part.nodes):
            expected = [
                sum(walk(trees[r, label], x, t, known) for r in (1, 2, 3)) for label in "pqr"
            ]
            np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)


def small_model(**options):
    rng = np.random.default_rng(0)
    X = [frames(4)(5, rng) for _ in range(20)]
    y = [rng.integers(0, 2, 5) for _ in X]
    return TreeCRF(n_rounds=3, max_depth=3, min_child_weight=0.1, **options).fit(X, y)


def test_rounds_and_labels_can_be_chosen():
    crf = small_model()
    everything = pd.DataFrame(crf.trees())
    pd.testing.assert_frame_equal(
        pd.DataFrame(crf.trees(round=2, label=1)),
        everything.query("round == 2 and label == 1").reset_index(drop=True),
    )
    assert set(crf.trees(round=3)["label"].tolist()) == {0, 1}
    splits = everything[everything["left"] >= 0]
    gains = splits.groupby(["feature", "offset"])["gain"].sum()
    importances = pd.DataFrame(crf.importances()).set_index(["feature", "offset"])["gain"]
    pd.testing.assert_series_equal(gains, importances.sort_index())
    leaves = everything[everything["left"] < 0]
    assert (leaves[["feature", "question", "missing"]] == "").all().all()
    assert (leaves[["offset", "gain"]] == 0).all().all()


def test_questions_read_well():
    X = [[["a", 0.0], ["b", 4.0], ["c", 0.0]], [["d", 4.0], ["a", 4.0]], [["b", 0.0], ["c", 4.0]]]
    X = [pd.DataFrame(x, columns=["word", "speed"]) for x in X] * 5
    y = [(x["speed"] > 2).astype(int).tolist() for x in X]
    crf = TreeCRF(n_rounds=1, max_depth=1, order=0).fit(X, y)
    assert crf.trees(label=1)["question"].tolist() == ["speed < 2", "", ""]
    words = [x[["word"]] for x in X]
    y = [x["word"].isin(["a", "c"]).tolist() for x in X]
    crf = TreeCRF(n_rounds=1, max_depth=1, order=0).fit(words, y)
    table = crf.trees(round=1, label=True)
    assert table["question"].tolist() == ["word in {a, c}", "", ""]
    assert table["categories"].tolist() == [("a", "c"), None, None]
    items = [[{"w": word} for word in x["word"]] for x in X]
    before = [[t > 0 and x["word"][t - 1] == "a" for t in range(len(x))] for x in X]
    crf = TreeCRF(n_rounds=1, max_depth=1, order=0, window=1).fit(items, before)
    assert crf.trees(label=True)["question"].tolist() == ["has 'w:a' at -1", "", ""]
    last = [[t == len(x) - 1 for t in range(len(x))] for x in X]
    crf = TreeCRF(n_rounds=1, max_depth=1, order=0, window=(0, 1)).fit(
        [x[["speed"]] for x in X], last
    )
    assert crf.trees(label=True)["question"].tolist() == ["speed[+1] is not missing", "", ""]


def test_long_lists_of_categories_are_cut_short():
    words = [f"w{k:02d}" for k in range(20)]
    X = [pd.DataFrame({"word": words})] * 5
    crf = TreeCRF(n_rounds=1, max_depth=1, order=0).fit(X, [[k % 2 for k in range(20)]] * 5)
    table = crf.trees(label=1)
    assert table["question"][0] == "word in {w01, w03, w05, w07, w09, ... (10 in all)}"
    assert table["categories"][0] == tuple(words[1::2])


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"round": 0}, "round is 0; expected an integer of at least 1"),
        ({"round": 4}, "round is 4, but the model has 3 rounds; expected an integer from 1 to 3"),
        ({"label": "x"}, "label has the unknown label 'x'; known labels: 0, 1"),
    ],
)
def test_what_is_not_there_is_refused(chosen, message):
    with pytest.raises(ValueError, match=message):
        small_model().trees(**chosen)
