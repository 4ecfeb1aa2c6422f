"""hedgerow export: a model for other programs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.errors import CommandError, telling
from hedgerow.cli.options import Commands, add_model, begin_command
from hedgerow.cli.outputs import check_output
from hedgerow.cli.text import format_size

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.estimator import Estimator

SUMMARY = "write a model for other programs, as JSON or as a table"
DESCRIPTION = """\
Write a model for other programs. The format depends on the name of the output:

  .json     everything that is needed to compute scores, in a documented schema
  .csv      a table: trees, one row per node, or a linear model's weights of
            attributes; weights of label patterns are not included
  .parquet  the same table

Without -o, JSON goes to standard output.
"""
EXAMPLES = """\
  hedgerow export days.hedgerow -o days.json
  hedgerow export days.hedgerow -o trees.csv
"""
# Columns of a table that contain lists of texts.
LISTS = {"categories", "surrogates"}


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = begin_command(commands, "export", run, SUMMARY, DESCRIPTION, EXAMPLES)
    add_model(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="output: a .json, .csv or .parquet file"
    )


def run(options: argparse.Namespace) -> None:
    """Write the file."""
    if options.output is None:
        sys.stdout.write(f"{read_model(options.model).to_json()}\n")
        return
    kind = Path(options.output).suffix.lower()
    if kind not in (".json", ".csv", ".parquet"):
        raise CommandError(
            f"the output {options.output!r} has no known file extension; expected a name that ends "
            "in .json, .csv or .parquet"
        )
    check_output(options.output, "export", [options.model])
    model = read_model(options.model)
    if kind == ".json":
        model.to_json(options.output)
    else:
        write_table(to_arrow(model, as_text=kind == ".csv"), options.output, kind)
    print(f"{options.output}: {format_size(Path(options.output).stat().st_size)}")


def read_model(path: str) -> Estimator:
    """A model with the parameters stored in its file."""
    from hedgerow import load

    with telling():
        return load(path)


def to_arrow(model: Any, *, as_text: bool) -> pa.Table:
    """The trees of a model, or its weights of attributes; `as_text`: lists become JSON text."""
    import pyarrow as pa

    table = model.trees() if hasattr(model, "trees") else model.weights()
    columns = {name: column.tolist() for name, column in table.items()}
    for name in LISTS & columns.keys():
        if as_text:
            columns[name] = [
                "" if texts is None else json.dumps(texts, ensure_ascii=False)
                for texts in columns[name]
            ]
        else:
            columns[name] = pa.array(columns[name], pa.list_(pa.string()))
    return pa.table(columns)


def write_table(table: pa.Table, path: str, kind: str) -> None:
    """Write a table as CSV or Parquet, atomically."""
    from pyarrow import csv, parquet

    from hedgerow.atomic_write import open_atomic

    write = csv.write_csv if kind == ".csv" else parquet.write_table
    with open_atomic(Path(path)) as file:
        write(table, file)
