"""Tables in CSV and Parquet files."""

import io

import pyarrow as pa
from pyarrow import csv, parquet


def write_table(table, path):
    """As CSV or Parquet, by the name of the file."""
    (csv.write_csv if path.suffix == ".csv" else parquet.write_table)(table, path)


def read_table(path):
    return csv.read_csv(path) if path.suffix == ".csv" else parquet.read_table(path)


def parquet_bytes(names, columns):
    """A Parquet file; names may be there twice."""
    sink = io.BytesIO()
    parquet.write_table(pa.table(list(map(pa.array, columns)), names=names), sink)
    return sink.getvalue()
