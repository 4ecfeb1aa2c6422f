"""Files of facts: a schema, in JSON, that describes tables of facts in the same folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from hedgerow.files.batch import Batch
from hedgerow.files.errors import FileError, Path
from hedgerow.files.request import Request
from hedgerow.relational import Atoms
from hedgerow.suggestions import suggest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["is_schema", "query_parameters", "read_facts", "read_schema", "stream_facts"]

# Keys of a schema about the tables, and about the queries.
OF_TABLES = ("events", "tables", "sequence", "label", "key", "references")
OF_QUERIES = (
    "modes",
    "depth",
    "window",
    "min_count",
    "max_variables",
    "max_bindings",
    "max_queries",
)


def is_schema(path: Path, head: bytes) -> bool:
    """Whether a file that begins with `head` is a schema of tables of facts."""
    try:
        return os.fspath(path).endswith(".json") and isinstance(json.loads(head)["events"], str)
    except (ValueError, KeyError, TypeError):
        return False


def stream_facts(request: Request) -> Iterator[Batch]:
    """Read all tables, which form one batch."""
    if request.known is not None:
        raise FileError(request.path, "known labels are not supported for tables of facts")
    schema = read_schema(request.path, request.source.read())
    X, labels = read_facts(request.path, schema)
    if request.labels and labels is None:
        raise FileError(request.path, 'the schema names no column of labels; add "label": "COLUMN"')
    y = X.cut(labels) if request.labels else None
    yield Batch(X, None if y is None else [each.tolist() for each in y], None)


def read_schema(path: Path, data: bytes) -> dict[str, Any]:
    """Read and check a schema."""
    try:
        schema = json.loads(data)
    except ValueError as error:
        raise FileError(path, f"not a JSON file: {error}") from None
    known = (*OF_TABLES, *OF_QUERIES)
    if not isinstance(schema, dict) or not isinstance(schema.get("events"), str):
        raise FileError(path, 'expected {"events": "FILE.csv", ...}')
    for name in schema:
        if name not in known:
            near = suggest(name, known) or f"; its keys are {', '.join(known)}"
            raise FileError(path, f"a schema has no key {name!r}{near}")
    tables = schema.get("tables") or {}
    if not isinstance(tables, dict) or not all(isinstance(file, str) for file in tables.values()):
        raise FileError(path, 'expected "tables": {"PREDICATE": "FILE.csv", ...}')
    return schema


def query_parameters(schema: dict[str, Any]) -> dict[str, Any]:
    """Parameters of `RelationalFeatures` in a schema."""
    return {name: schema[name] for name in OF_QUERIES if name in schema}


def read_facts(path: Path, schema: dict[str, Any]) -> tuple[Atoms, list[Any] | None]:
    """The facts of all tables of a schema, and the column of labels, if the schema names one."""
    folder = FilePath(path).parent
    events, labels = _read_table(folder, schema["events"]), None
    tables = {
        name: _read_table(folder, file) for name, file in (schema.get("tables") or {}).items()
    }
    if schema.get("label") is not None:
        labels, events = _split_off_labels(events, schema["label"], schema["events"])
    try:
        X = Atoms.from_tables(
            events,
            tables,
            sequence=schema.get("sequence"),
            key=schema.get("key"),
            references=schema.get("references") or (),
        )
    except (ValueError, TypeError) as error:
        raise FileError(path, str(error)) from error
    return X, labels


def _read_table(folder: FilePath, name: str) -> pa.Table:
    """Read a table; cells of CSV files are text, and empty ones are missing."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    path = folder / name
    try:
        if path.suffix.lower() == ".parquet":
            return parquet.read_table(path)
        with csv.open_csv(path) as reader:
            columns = reader.schema.names
        as_text = csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=True
        )
        return csv.read_csv(path, convert_options=as_text)
    except pa.ArrowInvalid as error:
        raise FileError(path, str(error)) from None


def _split_off_labels(events: pa.Table, column: str, file: str) -> tuple[list[Any], pa.Table]:
    """The labels of a table, and its other columns."""
    if column not in events.column_names:
        near = suggest(column, events.column_names)
        raise FileError(file, f"there is no column {column!r} of labels{near}")
    return events[column].to_pylist(), events.drop_columns([column])
