"""Writes the newest model file of this folder; older files are kept as they were written.

A file in a new format gets a new name. Old files are kept, since they must always load.
"""

from itertools import chain
from pathlib import Path

import pandas as pd

from hedgerow import LinearCRF, TreeCRF

X = [
    [{"word": "the", "n": 0.5}, {"word": "old", "n": -1}, {"word": "man", "tags": ["a", "b"]}],
    [{"word": "man", "n": 2}, {"word": "sleeps"}],
]
Y = [["D", "A", "N"], ["N", "V"]]
CHUNKS = [["B-NP", "I-NP", "I-NP"], ["B-NP", "O"]]
FRAMES = [
    pd.DataFrame({"size": [0.5, -1.0, None], "word": ["the", "man", None]}),
    pd.DataFrame({"size": [2.0, 0.5], "word": ["man", "sleeps"]}),
]
TABLE = pd.concat(FRAMES, keys=["one", "two"], names=["group"]).reset_index(level="group")
ITEMS = [
    [[f"U:{word}", f"B:{word}"] for word in ("the", "old", "man")[:length]] for length in (3, 2)
]
ITEM_LABELS = [["D", "A", "N"], ["D", "A"]]
# Labels follow from the sizes of the parents.
HEADED = [
    pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "head": [-1, 0, 0, 2]}),
    pd.DataFrame({"size": [4.0, 3.0, 2.0, 1.0], "head": [2, 0, -1, 0]}),
]
HEADED_LABELS = [["root", "low", "low", "high"], ["low", "high", "root", "high"]]
# Parameters of trees whose defaults have changed, or are new.
TREES = {
    "min_child_weight": 0.1,
    "transition_step": "bound",
    "pattern_lambda": None,
    "decode": "viterbi",
    "early_stopping_metric": "loss",
}


def linear_crf_1() -> LinearCRF:
    """Weights of attributes for labels and pairs, and a class weight."""
    return LinearCRF(
        transition_attributes=True,
        class_weight={"N": 2.0},
        reg_lambda=0.5,
        max_iter=200,
        tol=1e-5,
        decode="viterbi",
    ).fit(X, Y, eval_set=(X, Y))


def linear_crf_2() -> LinearCRF:
    """Label patterns of three labels, constraints of several kinds, and a missing label."""
    more = [[{"word": word} for word in ("old", "man", "sleeps")], [{"word": "the"}, {}, {}]]
    chunks = [*CHUNKS, ["B-NP", "I-NP", "O"], ["?", "I-NP", "O"]]
    return LinearCRF(
        order=2,
        constraints="BIO",
        forbidden=[("O", "O")],
        start_labels=["B-NP", "O"],
        missing_label="?",
        reg_lambda=0.5,
        max_iter=20,
        tol=0,
        decode="viterbi",
    ).fit([*X, *more], chunks)


def linear_crf_3() -> LinearCRF:
    """Trained for an objective of the marginals, which decides how it decodes."""
    return LinearCRF(objective="pointwise", warm_iter=5, max_iter=10, tol=0, decode="marginal").fit(
        X, Y
    )


def linear_crf_4() -> LinearCRF:
    """Trained on a file: weights on label pairs for some attributes, and how the file was read."""
    model = LinearCRF(transition_attributes="B", max_iter=10, tol=0, decode="viterbi").fit(
        ITEMS, ITEM_LABELS
    )
    model.recipe_ = {"format": "conll", "label": -1}
    return model


def tree_crf_2() -> TreeCRF:
    """Splits of numbers and categories in a window, label patterns, constraints, draws."""
    more = [
        pd.DataFrame({"size": [0.1 * n, 1.0, None, 3.0], "word": ["the", "old", "man", "sleeps"]})
        for n in range(10)
    ]
    chunks = [
        ["B-NP", "I-NP", "O", "B-NP"] if n % 3 else ["O", "B-NP", "O", "O"] for n in range(10)
    ]
    return TreeCRF(
        n_rounds=6,
        learning_rate=0.5,
        max_depth=3,
        max_leaves=5,
        min_split_gain=0.0,
        reg_lambda=1.0,
        max_step=None,
        max_bins=20,
        window=(1, 0),
        trim=0.0,
        colsample_bytree=0.8,
        order=2,
        constraints="BIO",
        random_state=1,
        **TREES,
    ).fit([*FRAMES, *more], [["B-NP", "I-NP", "O"], ["B-NP", "O"], *chunks])


def tree_crf_3() -> TreeCRF:
    """Trained for an objective of the marginals, after some rounds for the likelihood."""
    return TreeCRF(
        n_rounds=8,
        max_depth=6,
        warm_rounds=3,
        objective="pointwise",
        random_state=1,
        **TREES | {"decode": "marginal"},
    ).fit(FRAMES, Y)


def tree_crf_4() -> TreeCRF:
    """A table that carries its own groups."""
    crf = TreeCRF(n_rounds=4, max_depth=6, group_column="group", **TREES)
    return crf.fit(TABLE, [*chain(*Y)])


def tree_crf_5() -> TreeCRF:
    """Trained in steps too long for labels that contradict each other, so that some are halved."""
    labels = [*Y, ["D", "N", "N"], ["V", "V"]]
    crf = TreeCRF(n_rounds=4, max_depth=6, learning_rate=8.0, **TREES)
    return crf.fit(FRAMES * 2, labels)


def tree_crf_6() -> TreeCRF:
    """Splits that know what lies outside, and surrogates for missing values."""
    crf = TreeCRF(n_rounds=4, max_depth=3, window=1, missing="surrogate", **TREES)
    return crf.fit(FRAMES * 3, Y * 3)


def tree_crf_7() -> TreeCRF:
    """Tree-shaped graphs, and splits that ask about parents."""
    crf = TreeCRF(n_rounds=3, max_depth=2, ancestors=1, parents_column="head", **TREES)
    return crf.fit(HEADED * 3, HEADED_LABELS * 3)


if __name__ == "__main__":
    tree_crf_7().save(Path(__file__).parent / "tree_crf_format_7.hedgerow")
