"""The table of trees: walked by hand on X as it is, it gives the scores of the trees."""

import numpy as np
import pandas as pd
import pytest

from hedgerow import TreeCRF
from hedgerow.fitted import read_inputs
from hedgerow.raw_data import RawData
from hedgerow.shown import with_plain_tables
from reference.tree_tables import KINDS, frames, make_sequences, split_trees, walk

COLUMNS = [
    "round", "label", "node", "feature", "offset", "question", "threshold", "categories",
    "left", "right", "missing", "left_share", "surrogates", "outside", "value", "gain", "weight",
]  # fmt: skip


@pytest.mark.parametrize(("kind", "window"), [*((kind, (2, 1)) for kind in KINDS), ("frames", 0)])
def test_walking_the_table_gives_the_scores(kind, window):
    X, y = make_sequences(kind)
    crf = TreeCRF(n_rounds=3, max_depth=4, min_child_weight=0.1, window=window).fit(
        X[:-10], y[:-10]
    )
    table = with_plain_tables(crf).trees()
    assert list(table) == COLUMNS
    assert len({len(column) for column in table.values()}) == 1
    trees = split_trees(table)
    assert list(trees) == [(r, label) for r in (1, 2, 3) for label in "pqr"]
    for x in X[-13:-7]:  # some that were trained on, and some that are new
        (part,) = crf.model_.scores(read_inputs(crf, RawData([x])).sequences, 1)
        for t, scores in enumerate(part.nodes):
            leaves = {key: walk(tree, x, t)[-1]["value"] for key, tree in trees.items()}
            expected = [sum(leaves[r, label] for r in (1, 2, 3)) for label in "pqr"]
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
    assert (leaves[["feature", "question", "missing", "outside"]] == "").all().all()
    assert (leaves[["offset", "gain"]] == 0).all().all()


def test_questions_read_well():
    X = [[["a", 0.0], ["b", 4.0], ["c", 0.0]], [["d", 4.0], ["a", 4.0]], [["b", 0.0], ["c", 4.0]]]
    X = [pd.DataFrame(x, columns=["word", "speed"]) for x in X] * 5
    words, speeds = [x[["word"]] for x in X], [x[["speed"]] for x in X]
    items = [[{"w": word} for word in x["word"]] for x in X]

    def ask(X, y, **options):
        crf = TreeCRF(n_rounds=1, max_depth=1, order=0, **options).fit(X, y)
        table = crf.trees(round=1, label=True)
        assert table["question"].tolist()[1:] == ["", ""]
        return table["question"][0], table["categories"].tolist()

    nothing = [None] * 3
    fast = [(x["speed"] > 2).tolist() for x in X]
    assert ask(X, fast) == ("speed < 2", nothing)
    some = [x["word"].isin(["a", "c"]).tolist() for x in X]
    assert ask(words, some) == ("word in {a, c}", [("a", "c"), None, None])
    after_a = [[t > 0 and x["word"][t - 1] == "a" for t in range(len(x))] for x in X]
    assert ask(items, after_a, window=1) == ("has 'w:a' at -1", nothing)
    last = [[t == len(x) - 1 for t in range(len(x))] for x in X]
    assert ask(speeds, last, window=(0, 1)) == ("speed[+1] is known", nothing)


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
