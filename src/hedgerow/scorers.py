"""Scorers: scikit-learn's metrics for models of sequences, in searches and cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from hedgerow.encode.codes import is_missing
from hedgerow.parameters import check_choice

__all__ = ["PositionScorer", "make_position_scorer"]

Response = Literal["predict", "predict_proba"]


def make_position_scorer(
    score_func: Callable[..., float],
    *,
    response_method: Response = "predict",
    greater_is_better: bool = True,
    **kwargs: Any,
) -> PositionScorer:
    """Make a scorer from a metric that compares labels, one per position.

    scikit-learn's own scorers, such as ``scoring="accuracy"``, take flat labels only, and do not
    tell `predict` what the groups are. This takes lists of sequences too, leaves out positions
    whose label is missing, and hands ``groups`` on.

    Parameters
    ----------
    score_func
        Called as ``score_func(y_true, y_pred, **kwargs)`` with flat labels.
    response_method : {"predict", "predict_proba"}
        What `y_pred` is: labels (N,), or probabilities (N, K).
    greater_is_better
        False for a loss, whose sign is changed.
    kwargs
        Further arguments of `score_func`.

    Returns
    -------
    PositionScorer
        What ``scoring=`` takes. It can be called: ``scorer(crf, X, y)``.

    Examples
    --------
    >>> from hedgerow import LinearCRF
    >>> from hedgerow.scorers import make_position_scorer
    >>> from sklearn.metrics import f1_score
    >>> from sklearn.model_selection import cross_val_score
    >>> X = [[["the"], ["man"]], [["the"], ["old"], ["man"]], [["old"], ["man"]]] * 2
    >>> y = [["D", "N"], ["D", "A", "N"], ["A", "N"]] * 2
    >>> scorer = make_position_scorer(f1_score, average="macro", zero_division=0)
    >>> cross_val_score(LinearCRF(), X, y, cv=3, scoring=scorer).round(2).tolist()
    [1.0, 1.0, 1.0]
    """
    check_choice("response_method", response_method, ("predict", "predict_proba"))
    if not callable(score_func):
        raise TypeError(
            f"score_func is {score_func!r}; expected a metric such as sklearn.metrics.f1_score"
        )
    return PositionScorer(score_func, response_method, greater_is_better, kwargs)


class PositionScorer(BaseEstimator):  # type: ignore[misc]
    """What `make_position_scorer` makes.

    Under metadata routing ``set_score_request(groups=True)`` asks for groups.
    """

    # It is called with the model, which is no metadata.
    __metadata_request__score = {"estimator": UNUSED}  # noqa: RUF012

    def __init__(
        self,
        score_func: Callable[..., float],
        response_method: Response = "predict",
        greater_is_better: bool = True,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.score_func = score_func
        self.response_method = response_method
        self.greater_is_better = greater_is_better
        self.kwargs = kwargs

    def score(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score a fitted model.

        Parameters
        ----------
        estimator
            A CRF, or a pipeline that ends in one.
        X, y
            Data to predict, and their labels.
        groups : (N,), optional
            For a flat X, the sequence of each row.
        sample_weight : (S,), or (N,) for a flat X, optional
            How much each sequence counts, or each row; `score_func` must take it.
        """
        respond = getattr(estimator, self.response_method)
        found = respond(X) if groups is None else respond(X, groups=groups)
        truth, lengths = _flatten(y)
        if isinstance(found, list) and lengths is not None:
            _check_lengths(lengths, list(map(len, found)))
        predicted = np.concatenate(found) if isinstance(found, list) else found
        _check_lengths([len(truth)], [len(predicted)])
        given = ~_are_missing(truth, _missing_label(estimator))
        if not given.any():
            raise ValueError("every label of y is missing; a score needs at least one")
        options = dict(self.kwargs or {})
        if sample_weight is not None:
            options["sample_weight"] = _read_weights(sample_weight, lengths, len(truth))[given]
        true_labels = np.array(truth[given].tolist())
        value = float(self.score_func(true_labels, predicted[given], **options))
        return value if self.greater_is_better else -value

    __call__ = score


def _flatten(y: Any) -> tuple[NDArray[Any], list[int] | None]:
    """Labels of all positions, (N,), and the lengths of the sequences unless y was flat."""
    parts = list(y)
    if not parts or isinstance(parts[0], str) or not isinstance(parts[0], Iterable):
        return np.fromiter(parts, np.object_, len(parts)), None
    lists = [list(part) for part in parts]
    lengths = list(map(len, lists))
    return np.fromiter(chain.from_iterable(lists), np.object_, sum(lengths)), lengths


def _check_lengths(lengths: list[int], expected: list[int]) -> None:
    """Raise ValueError unless y has as many labels as were predicted, sequence by sequence."""
    if len(lengths) != len(expected):
        raise ValueError(
            f"y has {len(lengths)} sequences but X has {len(expected)}; pass one list of labels "
            "for every sequence"
        )
    for s, (n_labels, n_positions) in enumerate(zip(lengths, expected, strict=True)):
        if n_labels != n_positions:
            y, x = ("y", "X") if len(lengths) == 1 else (f"y[{s}]", f"X[{s}]")
            raise ValueError(
                f"{y} has {n_labels} labels but {x} has {n_positions} positions; pass one label "
                "for every position"
            )


def _read_weights(
    sample_weight: ArrayLike, lengths: list[int] | None, n_positions: int
) -> NDArray[np.float64]:
    """Weights of the positions, (N,), from those of the sequences or rows."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    n_expected, of = (n_positions, "row") if lengths is None else (len(lengths), "sequence")
    if weights.shape != (n_expected,):
        raise ValueError(
            f"sample_weight has shape {weights.shape} but there are {n_expected} {of}s; pass one "
            f"weight for each {of}"
        )
    return weights if lengths is None else np.repeat(weights, lengths)


def _missing_label(estimator: Any) -> Any:
    """The label that says that a label is missing, of a CRF at the end of any pipeline."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    return getattr(estimator, "missing_label", None)


def _are_missing(labels: NDArray[Any], missing_label: Any) -> NDArray[np.bool_]:
    return np.array(
        [
            is_missing(label) or (missing_label is not None and label == missing_label)
            for label in labels
        ],
        np.bool_,
    )
