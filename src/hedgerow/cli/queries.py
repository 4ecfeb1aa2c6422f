"""hedgerow queries: tables of facts become a file of attributes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.errors import CommandError, telling
from hedgerow.cli.options import Commands, begin_command
from hedgerow.cli.outputs import check_output
from hedgerow.suggestions import suggest

if TYPE_CHECKING:
    import pyarrow as pa

SUMMARY = "find queries about tables of facts, and write them as attributes"
DESCRIPTION = """\
Read a table of events, one row per position, and tables of facts about them,
find queries that hold at many positions, and write the names of those that
hold at each one as a CRFsuite file, which hedgerow train, tag and eval read.

SCHEMA is a JSON file that says what the tables are:

  {"events": "commands.csv",           one row per position
   "tables": {"ending": "files.csv"},  facts; their columns are arguments
   "sequence": "session",              column that tells sequences apart
   "label": "state",                   column of labels, if there are any
   "key": "id",                        column that identifies events
   "references": ["reply_to"],         columns that hold keys of other events
   "modes": ["file(+t,+-file)", "ending(+file,#e)"],
   "depth": 2, "window": 1, "min_count": 10}

All but "events" may be left out. Tables are .csv or .parquet files, beside
SCHEMA. With --load, queries are those of a file that --save has written; modes
and what comes after them are not used then.
"""
EXAMPLES = """\
  hedgerow queries train.json -o train.crfsuite --save queries.json
  hedgerow train train.crfsuite -m sessions.hedgerow
  hedgerow queries new.json -o new.crfsuite --load queries.json
  hedgerow tag sessions.hedgerow new.crfsuite
"""
# What a schema may say of the tables, and of the queries.
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


def add_command(commands: Commands) -> None:
    """Make the command known."""
    parser = begin_command(commands, "queries", run, SUMMARY, DESCRIPTION, EXAMPLES)
    parser.add_argument("schema", metavar="SCHEMA", help="a JSON file that says what tables are")
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="the CRFsuite file to write"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--save", metavar="FILE", help="where to write the queries")
    where.add_argument("--load", metavar="FILE", help="queries that --save has written")


def run(options: argparse.Namespace) -> None:
    """Write the files."""
    from hedgerow.atomic_write import open_atomic
    from hedgerow.relational import Atoms, RelationalFeatures

    sources = [options.schema, options.load]
    check_output(options.output, "attributes", sources)
    if options.save is not None:
        check_output(options.save, "queries", [*sources, options.output])
    schema = read_schema(options.schema)
    folder = Path(options.schema).parent
    events = read_table(folder, schema["events"])
    tables = {name: read_table(folder, path) for name, path in (schema.get("tables") or {}).items()}
    labels = None
    if schema.get("label") is not None:
        labels, events = split_off_labels(events, schema["label"], schema["events"])
    with telling(f"{options.schema}: "):
        X = Atoms.from_tables(
            events,
            tables,
            sequence=schema.get("sequence"),
            key=schema.get("key"),
            references=schema.get("references") or (),
        )
        if options.load is None:
            parameters = {name: schema[name] for name in OF_QUERIES if name in schema}
            features = RelationalFeatures(**parameters)
            names = features.fit_transform(X)
        else:
            features = RelationalFeatures.load(options.load)
            names = features.transform(X)
    y = [[None] * len(sequence) for sequence in X] if labels is None else X.cut(labels)
    with telling(f"{options.schema}: "), open_atomic(Path(options.output)) as file:
        for text in format_sequences(names, y):
            file.write(text.encode())
    print(f"{options.output}: {X}")
    if options.save is not None:
        features.save(options.save)
        print(f"{options.save}: {features.n_queries_:,} queries")


def read_schema(path: str) -> dict[str, Any]:
    """Read and check a schema."""
    try:
        schema = json.loads(Path(path).read_bytes())
    except ValueError as error:
        raise CommandError(f"{path}: not a JSON file: {error}") from None
    known = (*OF_TABLES, *OF_QUERIES)
    if not isinstance(schema, dict) or not isinstance(schema.get("events"), str):
        raise CommandError(f'{path}: expected {{"events": "FILE.csv", ...}}')
    for name in schema:
        if name not in known:
            near = suggest(name, known) or f"; it may have {', '.join(known)}"
            raise CommandError(f"{path}: there is no {name!r} in a schema{near}")
    tables = schema.get("tables") or {}
    if not isinstance(tables, dict) or not all(isinstance(file, str) for file in tables.values()):
        raise CommandError(f'{path}: expected "tables": {{"PREDICATE": "FILE.csv", ...}}')
    return schema


def read_table(folder: Path, name: str) -> pa.Table:
    """Read a table; cells of CSV files are text, empty ones are missing."""
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
        raise CommandError(f"{path}: {error}") from None


def split_off_labels(events: pa.Table, column: str, file: str) -> tuple[list[Any], pa.Table]:
    """The labels of a table, and its other columns."""
    if column not in events.column_names:
        near = suggest(column, events.column_names)
        raise CommandError(f"{file}: there is no column {column!r} of labels{near}")
    return events[column].to_pylist(), events.drop_columns([column])


def format_sequences(names: Any, y: Any) -> Iterator[str]:
    """Sequences as text, in the format of CRFsuite."""
    from hedgerow.files.crfsuite import format_position

    for sequence, labels in zip(names, y, strict=True):
        yield "".join(
            f"{format_position(label, position)}\n"
            for label, position in zip(labels, sequence, strict=True)
        )
        yield "\n"
