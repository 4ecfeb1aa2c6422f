"""Small data sets of every form that hedgerow reads, for `behaviour.py`.

Each function draws a data set from a seed: 0 is trained on, 1 is predicted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from hedgerow.datasets import load_ocr

N_SEQUENCES = 24
WORDS = np.array(["the", "old", "man", "sleeps", "and", "dreams"])
LABELS = np.array(["low", "mid", "top"])
CHUNKS = np.array(["O", "B-x", "I-x", "B-y", "I-y"])


@dataclass(frozen=True, eq=False)
class Data:
    """Sequences, labels, the groups of a flat X, and further arguments of `fit`."""

    X: Any
    y: Any
    groups: Any = None
    more: dict[str, Any] = field(default_factory=dict)

    def one(self) -> Any:
        """A single sequence: the longest, or the first one of a flat X."""
        if isinstance(self.X, list):
            return self.X[max(range(len(self.y)), key=lambda n: len(self.y[n]))]
        groups = self.X["group"] if self.groups is None else self.groups
        return self.X[np.asarray(groups) == np.asarray(groups)[0]]


def numbers(seed: int) -> Data:
    """Four numbers per position, and three labels that depend on their neighbours."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, 9), 4)) for _ in range(N_SEQUENCES)]
    codes = [(x[:, 0] + np.roll(x[:, 1], 1) > 0).astype(int) + (x[:, 2] > 0.8) for x in X]
    return Data(X, [LABELS[code].tolist() for code in codes])


def integers(seed: int) -> Data:
    """The same with integers for labels."""
    data = numbers(seed)
    return replace(data, y=[[len(label) + ord(label[0]) for label in row] for row in data.y])


def scaled(seed: int) -> Data:
    """The same with columns of very different scales."""
    data = numbers(seed)
    return replace(data, X=[x * [1e4, 1.0, 1e-3, 50.0] for x in data.X])


def gaps(seed: int) -> Data:
    """The same with a sixth of the numbers missing."""
    data, rng = numbers(seed), np.random.default_rng(seed)
    return replace(data, X=[np.where(rng.random(x.shape) < 1 / 6, np.nan, x) for x in data.X])


def partial(seed: int) -> Data:
    """The same with a quarter of the labels missing."""
    return hide(numbers(seed), seed, None)


def chunks(seed: int) -> Data:
    """Noisy numbers for chunk labels that follow the BIO scheme."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(N_SEQUENCES):
        codes: list[int] = []
        for inside, drawn in rng.random((rng.integers(2, 9), 2)):
            if codes and codes[-1] > 0 and inside < 0.5:
                codes.append(codes[-1] + codes[-1] % 2)
            else:
                codes.append((0, 1, 3)[int(3 * drawn)])
        X.append(rng.normal(size=(len(codes), 5)) + 1.5 * np.eye(5)[codes])
        y.append(CHUNKS[codes].tolist())
    return Data(X, y)


def ends(seed: int) -> Data:
    """The same with labels for the ends of chunks: BIOES."""
    data, marks = chunks(seed), {("B", False): "S", ("I", False): "E"}

    def mark(label: str, after: str) -> str:
        return marks.get((label[0], after[0] == "I"), label[0]) + label[1:]

    y = [[mark(*pair) for pair in pairwise([*labels, "O"])] for labels in data.y]
    return replace(data, y=y)


def partial_chunks(seed: int) -> Data:
    """Chunk labels with question marks for a quarter of the labels."""
    return hide(chunks(seed), seed, "?")


def hide(data: Data, seed: int, mark: str | None) -> Data:
    """Replace a quarter of the labels by a mark; those of the first sequence are kept."""
    rng = np.random.default_rng(seed + 10)
    hidden = [[mark if rng.random() < 0.25 else label for label in row] for row in data.y[1:]]
    return replace(data, y=[data.y[0], *hidden])


def weighted(seed: int) -> Data:
    """Sequences with different weights."""
    return replace(numbers(seed), more={"sample_weight": 0.25 * np.arange(1, N_SEQUENCES + 1)})


def watched(seed: int) -> Data:
    """With an eval_set."""
    evaluated = numbers(seed + 2)
    return replace(numbers(seed), more={"eval_set": (evaluated.X, evaluated.y)})


def watched_chunks(seed: int) -> Data:
    """Chunk labels and an eval_set, both partly labelled."""
    evaluated = partial_chunks(seed + 2)
    return replace(partial_chunks(seed), more={"eval_set": (evaluated.X, evaluated.y)})


def watched_flat(seed: int) -> Data:
    """One array with an eval_set, which has its own groups."""
    evaluated = flat(seed + 2)
    return replace(flat(seed), more={"eval_set": (evaluated.X, evaluated.y, evaluated.groups)})


def weighted_watched(seed: int) -> Data:
    """With weights of sequences and an eval_set."""
    return replace(numbers(seed), more=weighted(seed).more | watched(seed).more)


def flat(seed: int) -> Data:
    """One flat array, divided into sequences by groups."""
    data = numbers(seed)
    groups = np.repeat(np.arange(N_SEQUENCES), [len(x) for x in data.X])
    return Data(np.concatenate(data.X), np.concatenate(data.y), groups)


def weighted_rows(seed: int) -> Data:
    """The same with different weights of rows."""
    data = flat(seed)
    return replace(data, more={"sample_weight": 0.5 + np.arange(len(data.X)) % 3})


def frames(seed: int) -> Data:
    """Numbers, a category and text in frames; some numbers are missing."""
    data, rng = gaps(seed), np.random.default_rng(seed)

    def frame(x: NDArray[np.float64], labels: list[str]) -> pd.DataFrame:
        hints = np.searchsorted(LABELS, labels) + rng.integers(0, 4, len(labels))
        colours = pd.Categorical.from_codes(rng.integers(0, 3, len(x)), ["red", "green", "blue"])
        return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "colour": colours, "word": WORDS[hints]})

    return replace(data, X=[frame(x, labels) for x, labels in zip(data.X, data.y, strict=True)])


def whole_frames(seed: int) -> Data:
    """The same without missing numbers, for linear models."""
    data = frames(seed)
    return replace(data, X=[frame.fillna({"a": 0.0, "b": 0.0}) for frame in data.X])


def names(seed: int) -> Data:
    """A text column with very many different values, and a number."""
    parts, rng = [numbers(seed + 4 * n) for n in range(4)], np.random.default_rng(seed)

    def frame(x: NDArray[np.float64]) -> pd.DataFrame:
        drawn = np.where(rng.random(len(x)) < 0.1, x[:, 2] > 0.8, rng.integers(0, 4000, len(x)))
        return pd.DataFrame({"name": [f"n{number}" for number in drawn], "a": x[:, 0]})

    return Data([frame(x) for part in parts for x in part.X], [y for part in parts for y in part.y])


def table(seed: int) -> Data:
    """One frame with a column of groups."""
    data = whole_frames(seed)
    X = pd.concat([frame.assign(group=n) for n, frame in enumerate(data.X)], ignore_index=True)
    return Data(X.astype({"word": object}), np.concatenate(data.y))


def heads(seed: int) -> Data:
    """One frame with a column of groups, and one of heads, counted from 1, with 0 for roots."""
    data, rng = table(seed), np.random.default_rng(seed)
    places = data.X.groupby("group").cumcount().to_numpy()
    above = np.array([rng.integers(0, place + 1) for place in places])
    return replace(data, X=data.X.assign(head=above))


def matrices(seed: int) -> Data:
    """Sparse matrices."""
    data = numbers(seed)
    return replace(data, X=[sparse.csr_matrix(np.where(x > 0.3, x, 0.0)) for x in data.X])


def dicts(seed: int) -> Data:
    """Attributes with numbers, strings, and lists, not all of them at every position."""
    data, rng = numbers(seed), np.random.default_rng(seed)

    def item(row: NDArray[np.float64]) -> dict[str, Any]:
        word = WORDS[min(int(abs(row[0]) * 3), len(WORDS) - 1)]
        always = {"word": str(word), "size": float(row[1]), "is": bool(row[2] > 0)}
        return always | ({"tags": ["a", str(word)]} if rng.random() < 0.5 else {})

    return replace(data, X=[[item(row) for row in x] for x in data.X])


def items(seed: int) -> Data:
    """Names of attributes, for labels and for label pairs."""
    data = dicts(seed)
    X = [[[f"U:{at['word']}", f"U:{at['is']}", f"B:{at['word']}"] for at in row] for row in data.X]
    return replace(data, X=X)


def facts(seed: int) -> Data:
    """Queries about equal words, found in the training data."""
    from hedgerow.relational import RelationalFeatures  # versions before 0.1 do not have it

    features = RelationalFeatures(["word(+t,+-w)", "word(+t,#w)"], window=1, min_count=2)
    data = atoms(seed)
    return replace(data, X=list(features.fit(atoms(0).X).transform(data.X)))


def atoms(seed: int) -> Data:
    """Facts themselves."""
    data = dicts(seed)
    X = [[[("word", at["word"]), (str(at["is"]),)] for at in row] for row in data.X]
    return replace(data, X=X)


def one_long(seed: int) -> Data:
    """One sequence, which is a flat array without groups, and a label for each row."""
    data = flat(seed)
    return replace(data, groups=np.zeros(len(data.X)))


def tall(seed: int) -> Data:
    """Enough rows for several batches in prediction; two labels."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(700, 1)) for _ in range(95 if seed else 1)]
    return Data(X, [(x[:, 0] + 0.5 * np.roll(x[:, 0], 1) > 0).tolist() for x in X])


def wide(seed: int) -> Data:
    """Enough label pairs over all training rows for several batches."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(20, 1)) for _ in range(5 if seed else 60)]
    return Data(X, [(np.clip(x[:, 0] * 12 + 18, 0, 35).astype(int)).tolist() for x in X])


def letters(seed: int) -> Data:
    """Handwritten words; those to predict are a part of the training set."""
    X, y, _ = load_ocr()
    return Data(X[40 * seed : 50], y[40 * seed : 50])


DATA: dict[str, Callable[[int], Data]] = {
    make.__name__: make
    for make in (
        numbers,
        integers,
        scaled,
        gaps,
        partial,
        chunks,
        ends,
        partial_chunks,
        weighted,
        watched,
        watched_chunks,
        watched_flat,
        weighted_watched,
        flat,
        weighted_rows,
        frames,
        whole_frames,
        names,
        table,
        heads,
        matrices,
        dicts,
        items,
        facts,
        atoms,
        one_long,
        tall,
        wide,
        letters,
    )
}
