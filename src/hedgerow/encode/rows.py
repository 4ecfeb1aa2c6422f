"""Rows: the positions of all sequences as the rows of one block, and back.

So functions of rows, such as scikit-learn's transformers, work on sequences in any format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from hedgerow.encode.arrays import check_same_count, to_offsets
from hedgerow.encode.forms import (
    EXPECTED,
    FORM_WORDS,
    check_list_of_sequences,
    check_two_dimensional,
    is_sparse,
    is_table,
    settle,
)
from hedgerow.encode.frames import check_same_columns


@dataclass(frozen=True, eq=False)
class Rows:
    """N positions, one row each.

    Attributes
    ----------
    block : 2-D array, wrapped frame, sparse matrix, or list of positions
        The rows of all sequences.
    offsets : (S + 1,) int64, or None
        Sequence s holds the rows ``offsets[s]`` to ``offsets[s + 1]``; None if X was one block.
    """

    block: Any
    offsets: NDArray[np.int64] | None

    @classmethod
    def of(cls, X: Any) -> Rows:
        """Concatenate the positions of all sequences."""
        block = settle(X, "X")
        if isinstance(block, np.ndarray) and block.ndim == 3:
            block = list(block)
        if is_table(block):
            block = np.asarray(block)
        if isinstance(block, np.ndarray | nw.DataFrame) or is_sparse(block):
            check_two_dimensional(block, "X")
            return cls(block, None)
        if not isinstance(block, list | tuple):
            raise TypeError(f"X is of type {type(block).__name__}; {EXPECTED}")
        check_list_of_sequences(list(block))
        parts = [settle(part, f"X[{number}]") for number, part in enumerate(block)]
        _check_one_form(parts)
        return cls(_stack(parts), to_offsets(map(_n_rows, parts)))

    @property
    def native(self) -> Any:
        """The block in the user's format: a frame is not wrapped."""
        return self.block.to_native() if isinstance(self.block, nw.DataFrame) else self.block

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""
        return _n_rows(self.block)

    def cut(self, block: Any) -> Any:
        """Turn a block of N rows into the format of X: a list of sequences, or one block.

        ``block`` is an array, a frame, wrapped or not, a sparse matrix or a list.
        """
        frame = nw.from_native(block, eager_only=True, pass_through=True)
        is_frame = isinstance(frame, nw.DataFrame)
        if self.offsets is None:
            return frame.to_native() if is_frame else block
        if is_sparse(block):
            frame = block.tocsr()
        bounds = pairwise(self.offsets.tolist())
        parts = [frame[start:stop] for start, stop in bounds]
        return [part.to_native() for part in parts] if is_frame else parts


def _n_rows(block: Any) -> int:
    return int(block.shape[0]) if hasattr(block, "shape") else len(block)


def _check_one_form(parts: Sequence[Any]) -> None:
    """Raise unless every sequence has rows, and all have the same form (such as DataFrames)."""
    first = _form(parts[0])
    for number, part in enumerate(parts):
        where = f"X[{number}]"
        if isinstance(part, str | bytes | Mapping) or not (
            isinstance(part, list | tuple) or hasattr(part, "shape")
        ):
            raise TypeError(f"{where} is a {type(part).__name__}, not a sequence; {EXPECTED}")
        if _form(part) != first:
            raise TypeError(
                f"X mixes forms: X[0] is {FORM_WORDS[first]} and {where} is "
                f"{FORM_WORDS[_form(part)]}; give all sequences in one form"
            )
        if first == "frame":
            check_same_columns(part, parts[0], number)
        elif first != "list":
            check_two_dimensional(part, where)
            check_same_count(int(part.shape[1]), int(parts[0].shape[1]), number)
        if _n_rows(part) == 0:
            raise ValueError(f"{where} is empty; a sequence needs at least one position: drop it")


def _form(part: Any) -> str:
    if isinstance(part, nw.DataFrame):
        return "frame"
    if is_sparse(part):
        return "sparse"
    return "array" if isinstance(part, np.ndarray) else "list"


def _stack(parts: Sequence[Any]) -> Any:
    form = _form(parts[0])
    if form == "frame":
        return nw.concat(list(parts))
    if form == "sparse":
        from scipy import sparse

        return sparse.vstack(list(parts), format="csr")
    return np.concatenate(parts) if form == "array" else list(chain.from_iterable(parts))
