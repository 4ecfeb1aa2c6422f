"""Cross-validated predictions, for lists of sequences and for flat tables."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hedgerow.model_selection.splitters import SequenceKFold, count_items, take_items
from hedgerow.parameters import check_choice
from hedgerow.scorers import last_step

__all__ = ["cross_val_predict"]

Method = Literal["predict", "predict_marginals"]


def cross_val_predict(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = 5,
    method: Method = "predict",
    parents: Any = None,
    base_scores: Any = None,
    X_base: Any = None,
) -> Any:
    """Predict every sequence with a model that was not trained on it.

    scikit-learn's function of this name cannot concatenate lists of sequences, and does not pass
    groups to `predict`.

    Parameters
    ----------
    estimator
        A CRF, or a pipeline that ends in one. It is cloned for every fold.
    X, y
        Sequences and their labels, as for `fit`.
    groups : (N,), optional
        For a flat X, the sequence of each row; not needed by a model with a `group_column`.
    cv : int, splitter, or list of (train, test), default 5
        An integer is the number of folds of a `SequenceKFold`. Every sequence must be in exactly
        one test part.
    method : {"predict", "predict_marginals"}, default "predict"
        What to predict: labels, or the probabilities of all labels. The columns of probabilities
        are the labels of all folds, sorted; a label that does not occur in the training part of a
        fold has probability 0.
    parents : list of arrays, or (N,) for a flat X, optional
        Parents of the positions, see `hedgerow.TreeCRF.fit`; not needed by a model with a
        `parents_column`.
    base_scores : list of (T, K) arrays, or (N, K) for a flat X, optional
        Base scores, see `hedgerow.TreeCRF.fit`; the training part of each fold must then have all
        labels.
    X_base : optional
        Features of the base model, if it does not use X.

    Returns
    -------
    list of arrays, or one array for a flat X

    Examples
    --------
    >>> from hedgerow import LinearCRF
    >>> from hedgerow.metrics import flat_accuracy_score
    >>> from hedgerow.model_selection import cross_val_predict
    >>> X = [[["the"], ["man"]], [["the"], ["old"], ["man"]], [["old"], ["man"]]] * 2
    >>> y = [["D", "N"], ["D", "A", "N"], ["A", "N"]] * 2
    >>> predicted = cross_val_predict(LinearCRF(), X, y, cv=3)
    >>> predicted[1].tolist(), flat_accuracy_score(y, predicted)
    (['D', 'A', 'N'], 1.0)
    """
    check_choice("method", method, ("predict", "predict_marginals"))
    n_items, folds = count_items(X), _split(estimator, X, y, groups, cv)
    _check_folds([test for _, test in folds], n_items)
    every = {"groups": groups, "parents": parents, "base_scores": base_scores, "X_base": X_base}
    given = {name: each for name, each in every.items() if each is not None}
    parts, classes = [], []
    for train, test in folds:
        more = [{name: take_items(each, i) for name, each in given.items()} for i in (train, test)]
        model = clone(estimator).fit(take_items(X, train), take_items(y, train), **more[0])
        parts.append(getattr(model, method)(take_items(X, test), **more[1]))
        classes.append(last_step(model).classes_)
    if method == "predict_marginals":
        labels = np.unique(np.concatenate(classes))
        parts = [_align(part, known, labels) for part, known in zip(parts, classes, strict=True)]
    places = np.argsort(np.concatenate([test for _, test in folds]))
    if isinstance(parts[0], list):
        joined = [each for part in parts for each in part]
        return [joined[place] for place in places.tolist()]
    return np.concatenate(parts)[places]


def _split(
    estimator: Any, X: Any, y: Any, groups: Any, cv: Any
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Training and test items of each fold."""
    if isinstance(cv, int):
        cv = SequenceKFold(cv, group_column=getattr(last_step(estimator), "group_column", None))
    pairs = cv.split(X, y, groups) if hasattr(cv, "split") else cv
    return [(np.asarray(train), np.asarray(test)) for train, test in pairs]


def _check_folds(tests: list[NDArray[np.int64]], n_items: int) -> None:
    counts = np.bincount(np.concatenate(tests), minlength=n_items)
    if len(counts) != n_items or (counts != 1).any():
        item = int(np.flatnonzero(counts != 1)[0])
        raise ValueError(
            f"item {item} of X is in {counts[item]} test sets of cv; every item must be in "
            "exactly one, as with SequenceKFold"
        )


def _align(part: Any, known: NDArray[Any], labels: NDArray[Any]) -> Any:
    """Probabilities of all labels, from the probabilities of the labels in a fold."""
    if isinstance(part, list):
        return [_align(each, known, labels) for each in part]
    aligned = np.zeros((len(part), len(labels)))
    aligned[:, np.searchsorted(labels, known)] = part
    return aligned
