"""Prediction for Dask DataFrames, partition by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.estimator import Estimator

__all__ = ["predict_frame"]


def predict_frame(crf: Estimator, X: Any, method: str, arguments: dict[str, Any]) -> Any:
    """A Dask Series of labels, or a DataFrame with a column for each label.

    Parameters
    ----------
    crf
        A fitted estimator.
    X : Dask DataFrame
        Its partitions hold whole sequences.
    method
        Method of the estimator: predict or predict_marginals.
    arguments
        Further arguments of the method.
    """
    empty = _to_pandas(crf, _no_rows(crf, method), X._meta.index)
    return X.map_partitions(_predict_partition, crf, method, arguments, meta=empty)


def _predict_partition(frame: Any, crf: Estimator, method: str, arguments: dict[str, Any]) -> Any:
    answer = getattr(crf, method)(frame, **arguments) if len(frame) else _no_rows(crf, method)
    return _to_pandas(crf, answer, frame.index)


def _no_rows(crf: Estimator, method: str) -> Any:
    """The result of the method for an empty table."""
    import numpy as np

    return crf.classes_[:0] if method == "predict" else np.empty((0, len(crf.classes_)))


def _to_pandas(crf: Estimator, answer: Any, index: Any) -> Any:
    import pandas as pd

    if answer.ndim == 1:
        values = answer.astype(object) if answer.dtype.kind == "U" else answer
        return pd.Series(values, index=index, name="label")
    return pd.DataFrame(answer, index=index, columns=crf.classes_.tolist())
