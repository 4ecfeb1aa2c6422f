"""Writing: the rows of a file again, with further columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from hedgerow.files.batch import Batch
from hedgerow.files.conll import ConllWriter
from hedgerow.files.errors import Path
from hedgerow.files.recipe import Recipe
from hedgerow.files.sink import open_sink


class Writer(Protocol):
    """Writes batches, one after the other."""

    def write(self, batch: Batch, columns: Mapping[str, Sequence[Any]]) -> None:
        """Write the rows of a batch with further columns.

        Parameters
        ----------
        batch
            From `stream_file`.
        columns
            By name, a list with a sequence of values for each sequence; the same names each time.
            Values are strings, numbers or None.
        """
        ...


@contextmanager
def open_writer(path: Path, recipe: Recipe) -> Iterator[Writer]:
    """Write what `stream_file` read, in the format it was in, with further columns.

    Parameters
    ----------
    path
        The file, gzipped if it ends with ``.gz``; ``-`` is standard output, which gets each batch
        at once. A file is written beside its place and moved there when it is whole.
    recipe
        How the rows were read.
    """
    with open_sink(path) as sink:
        yield ConllWriter(sink, recipe)
