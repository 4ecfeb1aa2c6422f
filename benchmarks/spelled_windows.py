"""Lag features: rows with the columns of neighbours, for libraries without windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def spell_out(X: list[Any], X_test: list[Any], reach: int) -> tuple[Any, Any]:
    """Rows with the columns of their neighbours; missing beyond the ends of a sequence."""
    if not isinstance(X[0], list):
        return tuple(_dense_windows(part, reach) for part in (X, X_test))
    from sklearn.feature_extraction import DictVectorizer

    vectorizer = DictVectorizer(dtype=np.float32).fit([item for x in X for item in x])
    return tuple(_sparse_windows(part, reach, vectorizer) for part in (X, X_test))


def _dense_windows(X: list[Any], reach: int) -> NDArray[np.float32]:
    rows = np.concatenate([*X, np.full((1, X[0].shape[1]), np.nan)]).astype(np.float32)
    return np.hstack([rows[places] for places in _neighbours(X, reach)])


def _sparse_windows(X: list[Any], reach: int, vectorizer: Any) -> Any:
    import scipy.sparse

    rows = vectorizer.transform([item for x in X for item in x] + [{}]).tocsr()
    return scipy.sparse.hstack([rows[places] for places in _neighbours(X, reach)], format="csr")


def _neighbours(X: list[Any], reach: int) -> Iterator[NDArray[np.int64]]:
    """Row of the neighbour of each position at each offset, -1 if there is none."""
    lengths = np.array([len(x) for x in X])
    ends = np.repeat(np.cumsum(lengths), lengths)
    begins = ends - np.repeat(lengths, lengths)
    rows = np.arange(len(ends))
    for offset in range(-reach, reach + 1):
        places = rows + offset
        yield np.where((places >= begins) & (places < ends), places, -1)
