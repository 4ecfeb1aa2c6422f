"""Reading: the sequences of a file, all at once or in batches."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from hedgerow.files.batch import Batch
from hedgerow.files.conll import stream_conll
from hedgerow.files.crfsuite import stream_crfsuite
from hedgerow.files.errors import FileError, Path
from hedgerow.files.facts import stream_facts
from hedgerow.files.recipe import Format, Recipe
from hedgerow.files.request import Request
from hedgerow.files.source import open_source

if TYPE_CHECKING:
    from hedgerow.encode.cut_frame import CutFrame
    from hedgerow.encode.numbered_names import NumberedNames

# Positions per batch: large enough for fast estimators, small enough for little memory.
N_POSITIONS = 1 << 13


def read_file(
    path: Path, recipe: Recipe, *, labels: bool = True, known: int | str | None = None
) -> Batch:
    """Read a whole file.

    Parameters
    ----------
    path
        The file; ``-`` is standard input. Gzipped files are unpacked.
    recipe
        How it is read, see `make_recipe`.
    labels
        Whether to read its labels.
    known
        A column of labels that are already known, see `Batch.known`.

    Returns
    -------
    Batch
        All sequences; its ``rows`` are None.

    Raises
    ------
    FileError
        The file does not match the recipe, or has no sequence.
    """
    with open_source(path) as source:
        request = Request(source, recipe, labels, known, N_POSITIONS, keeps_all=True)
        batches = [replace(batch, rows=None) for batch in _stream(request)]
    if not batches:
        raise FileError(path, "the file is empty: it has no sequence")
    return Batch(
        _join_sequences([batch.X for batch in batches]),
        _join([batch.y for batch in batches]),
        None,
        _join([batch.known for batch in batches]),
        _only_if_needed(_join([batch.weights for batch in batches])),
        _join([batch.parents for batch in batches]),
        _join([batch.names for batch in batches]),
    )


def stream_file(
    path: Path,
    recipe: Recipe,
    *,
    labels: bool = False,
    known: int | str | None = None,
    n_positions: int = N_POSITIONS,
    may_lack_groups: bool = False,
) -> Iterator[Batch]:
    """Read a file of any length in bounded memory; tables of facts are read whole.

    Parameters
    ----------
    path, recipe, labels, known
        See `read_file`; labels are not read by default.
    n_positions
        Approximate number of positions in a batch.
    may_lack_groups
        Whether a table without its group column is accepted, and read as one sequence.

    Yields
    ------
    Batch
        At least one sequence, and only whole ones.
    """
    with open_source(path) as source:
        yield from _stream(
            Request(source, recipe, labels, known, n_positions, False, may_lack_groups)
        )


def _stream(request: Request) -> Iterator[Batch]:
    batches = _streamer(request.recipe.format)(request)
    while batch := _next_batch(batches):
        yield batch


def _next_batch(batches: Iterator[Batch]) -> Batch | None:
    """The next batch, made with garbage collection turned off.

    A batch is thousands of objects without cycles, and collecting again and again takes as long as
    making them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return next(batches, None)
    finally:
        if was_enabled:
            gc.enable()


def _streamer(format: Format) -> Callable[[Request], Iterator[Batch]]:
    """The function that reads files of a format; Arrow is imported for tables only."""
    if format == "conll":
        return stream_conll
    if format == "crfsuite":
        return stream_crfsuite
    if format == "facts":
        return stream_facts
    if format == "csv":
        from hedgerow.files.csv_tables import stream_csv

        return stream_csv
    if format == "jsonl":
        from hedgerow.files.json_tables import stream_json

        return stream_json
    if format == "arrow":
        from hedgerow.files.arrow_tables import stream_arrow

        return stream_arrow
    from hedgerow.files.parquet_tables import stream_parquet

    return stream_parquet


def _only_if_needed(weights: list[float] | None) -> list[float] | None:
    """None if all weights are 1."""
    return weights if weights and any(weight != 1 for weight in weights) else None


def _join_sequences(parts: list[Sequence[Any]]) -> Sequence[Any]:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], list):
        return list(chain.from_iterable(parts))
    first = cast("CutFrame | NumberedNames", parts[0])
    return first.joined(cast("Any", parts))


def _join(parts: list[list[Any] | None]) -> list[Any] | None:
    lists = [part for part in parts if part is not None]
    return list(chain.from_iterable(lists)) if lists else None
