"""Scorers: scikit-learn's metrics for models of sequences, in searches and cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from hedgerow.encode.flat_labels import are_missing, flatten_labels
from hedgerow.labels import warn_of_strange
from hedgerow.metrics import flat
from hedgerow.parameters import check_choice
from hedgerow.seen_groups import scoring

__all__ = ["PositionScorer", "last_step", "make_position_scorer"]

Response = Literal["predict", "predict_proba"]


def make_position_scorer(
    score_func: Callable[..., float] | str,
    *,
    response_method: Response = "predict",
    greater_is_better: bool = True,
    decode: str | None = None,
    **kwargs: Any,
) -> PositionScorer:
    """Make a scorer from a metric that compares labels, one per position.

    scikit-learn's own scorers, such as ``scoring="f1_macro"``, take flat labels only (on lists a
    search reports nan), and do not pass groups to `predict`. This one also accepts lists of
    sequences, skips positions whose label is missing, and passes ``groups`` and ``parents`` to
    `predict`.

    Parameters
    ----------
    score_func
        Called as ``score_func(y_true, y_pred, **kwargs)`` with flat labels; or the name of one of
        scikit-learn's scorers, such as "f1_macro" or "neg_log_loss", which determines the next two
        parameters.
    response_method : {"predict", "predict_proba"}
        What `y_pred` is: labels (N,), or probabilities (N, K).
    greater_is_better
        False for a loss, whose sign is changed.
    decode : {"viterbi", "marginal"} or None
        The decoder, see `hedgerow.TreeCRF.predict`; None: that of each model.
    kwargs
        Additional arguments of `score_func`.

    Returns
    -------
    PositionScorer
        A scorer for ``scoring=``, which can also be called: ``scorer(crf, X, y)``.

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
    >>> scorer = make_position_scorer("f1_macro")
    >>> cross_val_score(LinearCRF(), X, y, cv=3, scoring=scorer).round(2).tolist()
    [1.0, 1.0, 1.0]
    """
    check_choice("response_method", response_method, ("predict", "predict_proba"))
    check_choice("decode", decode, ("viterbi", "marginal", None))
    if isinstance(score_func, str):
        scorer = _named(score_func, kwargs)
    elif callable(score_func):
        scorer = PositionScorer(score_func, response_method, greater_is_better, kwargs)
    else:
        raise TypeError(
            f"score_func is {score_func!r}; expected a metric such as sklearn.metrics.f1_score, "
            "or the name of a scorer such as 'f1_macro'"
        )
    if decode is not None and scorer.response_method != "predict":
        raise ValueError(
            f"decode is {decode!r}, but the scorer compares probabilities, which are not decoded; "
            "leave decode out"
        )
    scorer.decode = decode
    return scorer


def _named(name: str, kwargs: Mapping[str, Any]) -> PositionScorer:
    """What scikit-learn's scorer of this name computes, over positions."""
    from sklearn.metrics import get_scorer  # raises ValueError with a list of all names

    scorer = get_scorer(name)
    response: Response = "predict" if scorer._response_method == "predict" else "predict_proba"
    return PositionScorer(
        scorer._score_func, response, scorer._sign > 0, {**scorer._kwargs, **kwargs}
    )


class PositionScorer(BaseEstimator):  # type: ignore[misc]
    """A scorer from `make_position_scorer`.

    With metadata routing, ``set_score_request(groups=True, parents=True)`` requests groups and
    parents.
    """

    # It is called with the model, which is not metadata.
    __metadata_request__score = {"estimator": UNUSED}  # noqa: RUF012

    def __init__(
        self,
        score_func: Callable[..., float],
        response_method: Response = "predict",
        greater_is_better: bool = True,
        kwargs: Mapping[str, Any] | None = None,
        decode: str | None = None,
    ) -> None:
        self.score_func = score_func
        self.response_method = response_method
        self.greater_is_better = greater_is_better
        self.kwargs = kwargs
        self.decode = decode

    def score(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        sample_weight: ArrayLike | None = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
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
            Weight of each sequence, or of each row; `score_func` must accept it.
        parents : optional
            Parents of the positions, for a model that was fitted with parents.
        base_scores : list of (T, K) arrays, or (N, K), optional
            Base scores, if the model was fitted with `base_scores`.
        X_base : optional
            Features of the base model, if it does not use X.
        """
        respond = getattr(estimator, self.response_method)
        y = self._check_known(estimator, y)
        asked = {
            "groups": groups,
            "decode": self.decode,
            "parents": parents,
            "base_scores": base_scores,
            "X_base": X_base,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        with scoring():
            found = respond(X, **given)
        value = flat(self.score_func)(
            y,
            found,
            missing_label=getattr(last_step(estimator), "missing_label", None),
            sample_weight=sample_weight,
            **(self.kwargs or {}),
        )
        return float(value) if self.greater_is_better else -float(value)

    def _check_known(self, estimator: Any, y: Any) -> Any:
        """Warn about labels that the model does not know; with probabilities they are left out."""
        if not hasattr(estimator, "classes_"):
            return y
        truth, lengths = flatten_labels(y)
        known = frozenset(estimator.classes_.tolist())
        missing = are_missing(truth, getattr(last_step(estimator), "missing_label", None))
        strange = np.array([label not in known for label in truth.tolist()], np.bool_) & ~missing
        if not strange.any():
            return y
        names = np.unique(np.array(truth[strange].tolist())).tolist()
        warn_of_strange("y", names, int(strange.sum()))
        if self.response_method == "predict":
            return y
        truth[strange] = None
        return truth if lengths is None else np.split(truth, np.cumsum(lengths)[:-1])

    __call__ = score


def last_step(estimator: Any) -> Any:
    """The CRF at the end of any pipeline."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    return estimator
