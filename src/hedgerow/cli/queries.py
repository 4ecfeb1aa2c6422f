"""hedgerow queries: convert tables of facts to a file of attributes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hedgerow.cli.errors import telling
from hedgerow.cli.options import Commands, begin_command
from hedgerow.cli.outputs import check_output
from hedgerow.counting import count_of

SUMMARY = "find queries about tables of facts, and write them as attributes"
DESCRIPTION = """\
Read a table of events, one row per position, and tables of facts about them.
Find the queries that hold at "min_count" positions or more: a query is a
condition on one or more facts, such as "this event uses the same file as the
previous one". Write a CRFsuite file in which the attributes of a position are
the queries that hold there, for hedgerow train, tag and eval.

SCHEMA is a JSON file that describes the tables:

  {"events": "commands.csv",           one row per position
   "tables": {"ending": "files.csv"},  facts: a row with the values a and b is
                                       the fact ending(a, b)
   "sequence": "session",              column with the sequence ids
   "label": "state",                   column of labels, if there are any
   "key": "id",                        column that identifies events
   "references": ["reply_to"],         columns that hold keys of other events
   "modes": ["file(+t,+-file)", "ending(+file,#e)"],
   "depth": 2, "window": 1, "min_count": 10}

All keys but "events" are optional. "modes" and the keys after it, as well as
"max_variables", "max_bindings" and "max_queries", are the parameters of
hedgerow.relational.RelationalFeatures; the guide "Facts and relations" explains
them. Tables are .csv or .parquet files in the same folder as SCHEMA. With
--load, the queries come from a file that --save has written, and "modes",
"depth", "window", "min_count" and the three keys that begin with "max_" are
ignored.
"""
EXAMPLES = """\
  hedgerow queries train.json -o train.crfsuite --save queries.json
  hedgerow train train.crfsuite -m sessions.hedgerow
  hedgerow queries new.json -o new.crfsuite --load queries.json
  hedgerow tag sessions.hedgerow new.crfsuite
"""


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = begin_command(commands, "queries", run, SUMMARY, DESCRIPTION, EXAMPLES)
    parser.add_argument("schema", metavar="SCHEMA", help="JSON file that describes the tables")
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="the CRFsuite file to write"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--save", metavar="FILE", help="where to write the queries")
    where.add_argument("--load", metavar="FILE", help="queries written by --save")


def run(options: argparse.Namespace) -> None:
    """Write the files."""
    from hedgerow.atomic_write import open_atomic
    from hedgerow.files.facts import query_parameters, read_facts, read_schema
    from hedgerow.relational import RelationalFeatures

    sources = [options.schema, options.load]
    check_output(options.output, "attributes", sources)
    if options.save is not None:
        check_output(options.save, "queries", [*sources, options.output])
    with telling():
        schema = read_schema(options.schema, Path(options.schema).read_bytes())
        X, labels = read_facts(options.schema, schema)
    with telling(f"{options.schema}: "):
        if options.load is None:
            features = RelationalFeatures(**query_parameters(schema))
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
        print(f"{options.save}: {count_of(features.n_queries_, 'query')}")


def format_sequences(names: Any, y: Any) -> Iterator[str]:
    """Sequences as text, in CRFsuite format."""
    from hedgerow.files.crfsuite import format_position

    for sequence, labels in zip(names, y, strict=True):
        yield "".join(
            f"{format_position(label, position)}\n"
            for label, position in zip(labels, sequence, strict=True)
        )
        yield "\n"
