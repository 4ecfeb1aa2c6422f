"""Flat metrics: scikit-learn's metrics of labels, on lists of label lists.

scikit-learn compares flat arrays of labels, and raises an error for lists of label lists. `flat`
adapts any of its metrics to lists. The metrics of sklearn-crfsuite are available under the same
names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.counting import count_of
from hedgerow.encode.flat_labels import are_missing, flatten_labels, repeat_weights

__all__ = [
    "flat",
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_confusion_matrix",
    "flat_f1_score",
    "flat_fbeta_score",
    "flat_precision_score",
    "flat_recall_score",
]


def flat(metric: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a metric of flat labels into a metric of lists of label lists.

    Positions whose true label is missing are skipped. Flat labels work too.

    Parameters
    ----------
    metric
        Called as ``metric(y_true, y_pred, **options)`` with flat arrays, such as
        `sklearn.metrics.matthews_corrcoef`.

    Returns
    -------
    callable
        ``flat_metric(y_true, y_pred, *, missing_label=None, sample_weight=None, **options)``.
        ``y_true`` are the labels of each sequence, ``y_pred`` the output of `predict` or
        `predict_marginals`. ``missing_label`` marks missing labels, in addition to None and NaN.
        ``sample_weight`` contains one weight per sequence, or per row of flat labels.

    Examples
    --------
    >>> from hedgerow.metrics import flat
    >>> from sklearn.metrics import matthews_corrcoef
    >>> flat(matthews_corrcoef)([["A", "B", None], ["A"]], [["A", "B", "B"], ["A"]])
    1.0
    """

    @wraps(metric)
    def flat_metric(
        y_true: Any,
        y_pred: Any,
        *,
        missing_label: Any = None,
        sample_weight: ArrayLike | None = None,
        **options: Any,
    ) -> Any:
        truth, lengths = flatten_labels(y_true)
        predicted = _join_predictions(y_pred, lengths)
        _check_lengths([len(truth)], [len(predicted)])
        given = ~are_missing(truth, missing_label)
        if not given.any():
            raise ValueError("every label of y_true is missing; a score needs at least one")
        if sample_weight is not None:
            weights = repeat_weights(sample_weight, lengths, len(truth))
            options["sample_weight"] = weights[given]
        return metric(np.array(truth[given].tolist()), predicted[given], **options)

    return of_positions(flat_metric) if _takes_weights(metric) else flat_metric


def of_positions(metric: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a metric that depends only on the confusion matrix.

    Such a metric can be computed from the distinct pairs of true and predicted label, with their
    counts as `sample_weight`.
    """
    metric.is_of_positions = True  # type: ignore[attr-defined]
    return metric


def _takes_weights(metric: Callable[..., Any]) -> bool:
    try:
        return "sample_weight" in signature(metric).parameters
    except ValueError:  # some functions that are written in C have no signature
        return False


def is_of_positions(metric: Any) -> bool:
    """Whether a metric, possibly with options bound to it, is marked by `of_positions`."""
    function = metric.func if isinstance(metric, partial) else metric
    return bool(getattr(function, "is_of_positions", False))


@of_positions
def flat_accuracy_score(y_true: Any, y_pred: Any, **options: Any) -> float:
    """Share of positions that are labelled correctly, by `sklearn.metrics.accuracy_score`.

    Examples
    --------
    >>> from hedgerow.metrics import flat_accuracy_score
    >>> flat_accuracy_score([["A", "B", None], ["A"]], [["A", "A", "B"], ["A"]])
    0.6666666666666666
    """
    from sklearn.metrics import accuracy_score

    return float(flat(accuracy_score)(y_true, y_pred, **options))


@of_positions
def flat_precision_score(y_true: Any, y_pred: Any, **options: Any) -> Any:
    """Precision of labels, by `sklearn.metrics.precision_score`; pass ``average=``."""
    from sklearn.metrics import precision_score

    return flat(precision_score)(y_true, y_pred, **options)


@of_positions
def flat_recall_score(y_true: Any, y_pred: Any, **options: Any) -> Any:
    """Recall of labels, by `sklearn.metrics.recall_score`; pass ``average=``."""
    from sklearn.metrics import recall_score

    return flat(recall_score)(y_true, y_pred, **options)


@of_positions
def flat_f1_score(y_true: Any, y_pred: Any, **options: Any) -> Any:
    """F1 of labels, by `sklearn.metrics.f1_score`; pass ``average=``.

    Examples
    --------
    >>> from hedgerow.metrics import flat_f1_score
    >>> y_true, y_pred = [["A", "B", "B"], ["A"]], [["A", "B", "A"], ["A"]]
    >>> round(flat_f1_score(y_true, y_pred, average="macro"), 3)
    0.733
    """
    from sklearn.metrics import f1_score

    return flat(f1_score)(y_true, y_pred, **options)


@of_positions
def flat_fbeta_score(y_true: Any, y_pred: Any, *, beta: float, **options: Any) -> Any:
    """F-beta of labels, by `sklearn.metrics.fbeta_score`; pass ``average=``."""
    from sklearn.metrics import fbeta_score

    return flat(fbeta_score)(y_true, y_pred, beta=beta, **options)


def flat_classification_report(y_true: Any, y_pred: Any, **options: Any) -> Any:
    """Precision, recall and F1 of every label, by `sklearn.metrics.classification_report`.

    Examples
    --------
    >>> from hedgerow.metrics import flat_classification_report
    >>> y_true, y_pred = [["A", "B", "B"], ["A"]], [["A", "B", "A"], ["A"]]
    >>> print(flat_classification_report(y_true, y_pred, digits=2))
                  precision    recall  f1-score   support
    <BLANKLINE>
               A       0.67      1.00      0.80         2
               B       1.00      0.50      0.67         2
    <BLANKLINE>
        accuracy                           0.75         4
       macro avg       0.83      0.75      0.73         4
    weighted avg       0.83      0.75      0.73         4
    <BLANKLINE>
    """
    from sklearn.metrics import classification_report

    return flat(classification_report)(y_true, y_pred, **options)


def flat_confusion_matrix(y_true: Any, y_pred: Any, **options: Any) -> NDArray[Any]:
    """Number of positions by [true label, predicted label], by `sklearn.metrics.confusion_matrix`.

    Examples
    --------
    >>> from hedgerow.metrics import flat_confusion_matrix
    >>> flat_confusion_matrix([["A", "B", "B"], ["A"]], [["A", "B", "A"], ["A"]]).tolist()
    [[2, 0], [1, 1]]
    """
    from sklearn.metrics import confusion_matrix

    counts: NDArray[Any] = flat(confusion_matrix)(y_true, y_pred, **options)
    return counts


def _join_predictions(y_pred: Any, lengths: list[int] | None) -> NDArray[Any]:
    """Predictions for all positions: labels (N,), or probabilities (N, K)."""
    if isinstance(y_pred, np.ndarray) and y_pred.dtype != np.object_:
        return y_pred
    parts = list(y_pred)
    if parts and all(isinstance(part, np.ndarray) and part.ndim for part in parts):
        found, n_found = np.concatenate(parts), list(map(len, parts))
    else:
        labels, counts = flatten_labels(parts)
        if counts is None:
            return np.array(labels.tolist())
        found, n_found = np.array(labels.tolist()), counts
    if lengths is not None:
        _check_lengths(lengths, n_found)
    return found


def _check_lengths(lengths: list[int], expected: list[int]) -> None:
    """Raise ValueError unless each sequence of y has as many labels as were predicted."""
    if len(lengths) != len(expected):
        raise ValueError(
            f"y_true has {count_of(len(lengths), 'sequence')} but {len(expected)} were predicted; "
            "pass one list of labels for every sequence"
        )
    for s, (n_labels, n_positions) in enumerate(zip(lengths, expected, strict=True)):
        if n_labels != n_positions:
            where = "" if len(lengths) == 1 else f"[{s}]"
            raise ValueError(
                f"y_true{where} has {count_of(n_labels, 'label')} but {n_positions} were "
                "predicted; pass one label for every position"
            )
