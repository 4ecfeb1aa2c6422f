"""Tables in CSV, Parquet, Arrow and JSON lines files."""

import io
import json

import pyarrow as pa
from pyarrow import csv, feather, parquet


def write_json(table, path):
    rows = ({k: v for k, v in row.items() if v is not None} for row in table.to_pylist())
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


WRITERS = {
    ".csv": csv.write_csv,
    ".parquet": parquet.write_table,
    ".feather": feather.write_feather,
    ".jsonl": write_json,
}


def write_table(table, path):
    """Write a table in the format of the file extension."""
    WRITERS[path.suffix](table, path)


def read_table(path):
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        names = dict.fromkeys(name for row in rows for name in row)
        return pa.table({name: [row.get(name) for row in rows] for name in names})
    if path.suffix == ".feather":
        return feather.read_table(path)
    return csv.read_csv(path) if path.suffix == ".csv" else parquet.read_table(path)


def parquet_bytes(names, columns):
    """A Parquet file; column names may be repeated."""
    sink = io.BytesIO()
    parquet.write_table(pa.table(list(map(pa.array, columns)), names=names), sink)
    return sink.getvalue()
