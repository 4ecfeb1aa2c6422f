"""Recognise handwritten words: each letter separately, then with its neighbours."""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from hedgerow import LinearCRF, TreeCRF
from hedgerow.datasets import load_ocr

Words = list[NDArray[Any]]


def read_letters(X: Words, y: Words, X_test: Words) -> Words:
    """Label each letter separately, by logistic regression."""
    model = LogisticRegression(max_iter=60)
    with warnings.catch_warnings(), threadpool_limits(1):  # one BLAS thread is faster here
        warnings.simplefilter("ignore", ConvergenceWarning)  # more iterations do not help it
        model.fit(np.concatenate(X), np.concatenate(y))
    bounds = np.cumsum([len(word) for word in X_test])[:-1]
    return np.split(model.predict(np.concatenate(X_test)), bounds)


def read_words(X: Words, y: Words, X_test: Words, order: int) -> Words:
    """Label whole words with a linear CRF, with weights on up to order + 1 letters in a row."""
    crf = LinearCRF(order=order, max_iter=200, tol=1e-3, verbose=1)
    return crf.fit(X, y).predict(X_test)


def read_words_by_trees(X: Words, y: Words, X_test: Words, order: int) -> Words:
    """The same with trees, which can combine several pixels."""
    crf = TreeCRF(order=order, n_rounds=100, verbose=1)
    return crf.fit(X, y).predict(X_test)


def main() -> None:
    X, y, fold = load_ocr()
    train, test = np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)
    X_train, y_train = [X[i] for i in train], [y[i] for i in train]
    X_test, y_test = [X[i] for i in test], [y[i] for i in test]
    print(
        f"Handwritten words: {len(train):,} for training, {len(test):,} for testing.\n",
        flush=True,
    )

    table, readings = [], {}
    models = {
        "letters separately": read_letters,
        "LinearCRF, order 1": partial(read_words, order=1),
        "LinearCRF, order 3": partial(read_words, order=3),
        "TreeCRF, order 1": partial(read_words_by_trees, order=1),
        "TreeCRF, order 3": partial(read_words_by_trees, order=3),
    }
    for name, read in models.items():
        print(f"training: {name}", flush=True)
        begin = time.perf_counter()
        reading = read(X_train, y_train, X_test)
        seconds = time.perf_counter() - begin
        error = np.mean(np.concatenate(reading) != np.concatenate(y_test))
        table.append(f"{name:<20}{error:>12.2%}{seconds:>10.1f}")
        readings[name] = ["".join(word) for word in reading]

    print(f"\n{'model':<20}{'test error':>12}{'seconds':>10}", *table, sep="\n")

    print("\nSome words that only the last of these three models gets right:")
    shown = ["letters separately", "LinearCRF, order 1", "TreeCRF, order 3"]
    print(f"{'written':<16}", *(f"{name:<20}" for name in shown), sep="")
    rows = list(
        zip(["".join(word) for word in y_test], *(readings[name] for name in shown), strict=True)
    )
    mended = [row for row in rows if row[0] == row[3] and len({row[1], row[2], row[3]}) == 3]
    for written, *read in mended[:: len(mended) // 4][:4]:
        print(f"{written:<16}", *(f"{word:<20}" for word in read), sep="")


if __name__ == "__main__":
    main()
