"""Table store: tables that are read in parts, with their numbers on disk instead of in memory.

Training of trees converts numbers to bins of one byte each, and keeps only these. So it needs the
numbers only once, column by column, from a file that the operating system caches as far as memory
permits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import IO, Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from hedgerow.encode.frames import read_frames
from hedgerow.encode.joined_columns import check_same_schema, join_categories
from hedgerow.sequences import Categorical, Schema, Sequences

__all__ = ["StoredTable", "TableStore"]

# Number of bytes that are written at a time.
BLOCK = 1 << 24


class StoredTable:
    """A list of sequences, made by a `TableStore`, that estimators accept as X.

    Attributes
    ----------
    sequences : Sequences
        All sequences; the dense columns are in a file, which is deleted when they are no longer
        used.
    """

    def __init__(self, sequences: Sequences) -> None:
        self.sequences = sequences

    def __len__(self) -> int:
        return self.sequences.n_sequences


class TableStore:
    """Assembles one X from parts of a table, each with whole sequences, in a ``with`` block.

    Numbers take 8 bytes each on disk, or 4 if single precision represents all of them: floats of up
    to 32 bits, integers of 8 or 16 bits, and bools. Each text column takes 4 bytes per position in
    memory; the names of sequences are in memory too. The file is in the folder for temporary files,
    which ``TMPDIR`` sets.

    Examples
    --------
    >>> import pyarrow as pa
    >>> with TableStore() as store:
    ...     store.append(pa.table({"x": [1.0, 2.0], "w": ["a", "b"]}), [0, 2], ["Monday"])
    ...     store.append(pa.table({"x": [3.0], "w": ["c"]}), [0, 1], ["Tuesday"])
    ...     sequences = store.finish().sequences
    >>> sequences.dense.tolist(), sequences.categorical[0].categories, sequences.ids
    ([[1.0], [2.0], [3.0]], ['a', 'b', 'c'], ['Monday', 'Tuesday'])
    """

    def __init__(self) -> None:
        self._files = ExitStack()
        self._file = self._open()
        self._dtype: np.dtype[Any] | None = None
        self._schema: Schema | None = None
        self._categorical: list[tuple[Categorical, ...]] = []
        self._lengths: list[NDArray[np.int64]] = []
        self._names: list[Any] = []

    def __enter__(self) -> TableStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def append(
        self, frame: Any, offsets: Sequence[int] | NDArray[np.int64], ids: list[Any]
    ) -> None:
        """Append sequences, whose features are in a DataFrame of any library.

        `offsets` are the bounds of the sequences in the rows, `ids` their names.
        """
        if len(offsets) == 1:
            return
        part = read_frames([nw.from_native(frame, eager_only=True)], flat=True)
        if self._schema is None:
            self._schema = part.schema
        check_same_schema(self._schema, part.schema, "the first part of X", "this part")
        if part.dense is not None:
            self._write(part.dense)
        self._categorical.append(part.categorical)
        self._lengths.append(np.diff(offsets))
        self._names += ids

    def finish(self, *, flat: bool = False) -> StoredTable:
        """All sequences; `flat` says whether they count as one flat table."""
        if self._schema is None:
            raise ValueError("X has no rows; expected at least one")
        lengths = np.concatenate(self._lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        columns = zip(*self._categorical, strict=True)
        categorical = tuple(_concatenate(column) for column in columns)
        self._categorical.clear()
        dense = self._read(int(offsets[-1]))
        sequences = Sequences(offsets, self._schema, dense, None, categorical, flat, self._names)
        return StoredTable(sequences)

    def _write(self, numbers: NDArray[Any]) -> None:
        """Append rows to the file, in the precision of the previous rows or a higher one."""
        is_single = np.can_cast(numbers.dtype, np.float32)
        dtype = np.dtype(np.float32 if is_single else np.float64)
        if self._dtype is None:
            self._dtype = dtype
        elif dtype.itemsize > self._dtype.itemsize:
            self._widen(numbers.shape[1])
        self._file.write(np.ascontiguousarray(numbers, self._dtype).data)

    def _widen(self, n_columns: int) -> None:
        """Rewrite the rows so far in double precision."""
        self._file.flush()
        narrow = np.memmap(self._file, np.float32, "r").reshape(-1, n_columns)
        self._file, self._dtype = self._open(), np.dtype(np.float64)
        step = max(1, BLOCK // narrow.itemsize // n_columns)
        for begin in range(0, len(narrow), step):
            self._file.write(narrow[begin : begin + step].astype(np.float64).data)

    def _open(self) -> IO[bytes]:
        return self._files.enter_context(tempfile.TemporaryFile(buffering=BLOCK))

    def _read(self, n_rows: int) -> NDArray[Any] | None:
        if self._dtype is None:
            return None
        self._file.flush()
        return np.asarray(np.memmap(self._file, self._dtype, "r")).reshape(n_rows, -1)


def _concatenate(parts: Sequence[Categorical]) -> Categorical:
    """One text column of all parts."""
    joined = [join_categories(part, parts) for part in parts]
    return replace(joined[0], codes=np.concatenate([part.codes for part in joined]))
