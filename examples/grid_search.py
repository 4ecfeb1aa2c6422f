"""Tune parameters with scikit-learn's searches: a flat table, and folds that keep words whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.metrics import f1_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
)

from hedgerow import LinearCRF, TreeCRF
from hedgerow.datasets import load_ocr
from hedgerow.scorers import make_position_scorer

WORD = 0  # the column with the word of each letter; all others are pixels


def load_table(words: range) -> tuple[NDArray[Any], NDArray[Any]]:
    """Letters of some words as a table: one row per letter, the number of its word first."""
    X, y, _ = load_ocr()
    numbers = np.repeat(np.arange(len(words)), [len(X[word]) for word in words])
    pixels = np.concatenate([X[word] for word in words])
    letters = np.concatenate([y[word] for word in words])
    return np.insert(pixels.astype(np.int32), WORD, numbers, axis=1), letters


def compare_splits(table: NDArray[Any], letters: NDArray[Any]) -> None:
    """Leakage: rows of one word must not be in both the training set and the test set."""
    crf = LinearCRF(group_column=WORD, max_iter=20, tol=0)
    of_words = cross_val_score(crf, table, letters, groups=table[:, WORD], cv=GroupKFold(3))
    shuffled = KFold(3, shuffle=True, random_state=0)
    of_letters = cross_val_score(crf, table, letters, cv=shuffled)
    print("Accuracy of LinearCRF by cross-validation:")
    print(f"  folds of words    {of_words.mean():.3f}")
    print(f"  folds of letters  {of_letters.mean():.3f}  splits words")
    print()


def search_weights(table: NDArray[Any], letters: NDArray[Any]) -> GridSearchCV:
    """Grid search by macro F1, in which rare letters count as much as others."""
    scorer = make_position_scorer(f1_score, average="macro", zero_division=0)
    crf = LinearCRF(group_column=WORD, max_iter=20, tol=0)
    grid = {"reg_lambda": [0.01, 0.1, 1.0]}
    search = GridSearchCV(crf, grid, cv=GroupKFold(3), scoring=scorer)
    return search.fit(table, letters, groups=table[:, WORD])


def search_trees(table: NDArray[Any], letters: NDArray[Any]) -> HalvingGridSearchCV:
    """Successive halving: many models with few rounds, then more rounds for the best ones."""
    search = HalvingGridSearchCV(
        TreeCRF(group_column=WORD, subsample=0.5, random_state=0),
        {"max_depth": [3, 6], "order": [1, 3]},
        resource="n_rounds",
        min_resources=5,
        max_resources=10,
        factor=2,
        cv=GroupKFold(3),
        random_state=0,
    )
    return search.fit(table, letters, groups=table[:, WORD])


def main() -> None:
    table, letters = load_table(range(0, 6000, 20))
    test_table, test_letters = load_table(range(5, 6000, 20))
    n_words = len(np.unique(table[:, WORD]))
    print(f"A table of {len(table):,} letters of {n_words:,} words.\n")
    compare_splits(table, letters)

    for search in (search_weights(table, letters), search_trees(table, letters)):
        best, score = search.best_estimator_, search.best_score_
        print(f"{type(best).__name__}: best parameters {search.best_params_}, score {score:.3f}")
        print(f"  accuracy on the test set: {best.score(test_table, test_letters):.3f}\n")

    found = cross_val_predict(best, table, letters, groups=table[:, WORD], cv=GroupKFold(3))
    wrong = {true: np.mean(found[letters == true] != true) for true in np.unique(letters)}
    hardest = sorted(wrong, key=wrong.__getitem__, reverse=True)[:5]
    print("Letters with the most errors:", ", ".join(hardest))


if __name__ == "__main__":
    main()
