"""Cut frames: many sequences in one DataFrame, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import ArrayLike

from hedgerow.encode.arrays import to_offsets


class CutFrame(Sequence[Any]):
    """A list of frames, one per sequence, that are parts of one frame, so encoding it is fast.

    Parameters
    ----------
    frame
        A DataFrame of any library.
    offsets : (S + 1,)
        Bounds of the sequences, as row numbers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> frames = CutFrame(pa.table({"x": [1, 2, 3]}), [0, 2, 3])
    >>> [frame.to_pydict() for frame in frames]
    [{'x': [1, 2]}, {'x': [3]}]
    """

    def __init__(self, frame: Any, offsets: ArrayLike) -> None:
        self.frame = nw.from_native(frame, eager_only=True)
        self.offsets = np.asarray(offsets, np.int64)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, which: int) -> Any: ...
    @overload
    def __getitem__(self, which: slice) -> list[Any]: ...
    def __getitem__(self, which: int | slice) -> Any:
        if isinstance(which, slice):
            return [self[number] for number in range(len(self))[which]]
        number = range(len(self))[which]
        return self.frame[int(self.offsets[number]) : int(self.offsets[number + 1])].to_native()

    @classmethod
    def joined(cls, parts: Sequence[CutFrame]) -> CutFrame:
        """The sequences of all parts."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(nw.concat([part.frame for part in parts]), to_offsets(lengths.tolist()))
