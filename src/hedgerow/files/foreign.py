"""Unsupported files, recognised by their first bytes, and what to do instead."""

from __future__ import annotations

import re

from hedgerow.files.endings import ending_of
from hedgerow.files.errors import FileError, Path

TABLE = "save the table as CSV, Parquet, Feather or JSON lines"
# The first bytes of files, up to `N_BYTES`, and what kind of file they indicate.
N_BYTES = 8
BEGINNINGS = {
    b"FEA1\x00": f"a Feather file of version 1; save it as version 2, or {TABLE}",
    b"\xff\xff\xff\xff": f"an Arrow stream; save it as an Arrow file, or {TABLE}",
    b"PK\x03\x04": f"a zip archive or an Excel workbook; unpack it, or {TABLE}",
    b"\xd0\xcf\x11\xe0": f"an Excel workbook; {TABLE}",
    b"SQLite f": f"an SQLite database; {TABLE}",
    b"\x89HDF": f"an HDF5 file; {TABLE}",
    b"Obj\x01": f"an Avro file; {TABLE}",
    b"\x93NUMPY": f"a NumPy array; use it in Python, or {TABLE}",
    b"\x80\x04\x95": f"a pickle; use it in Python, or {TABLE}",
    b"\x80\x05\x95": f"a pickle; use it in Python, or {TABLE}",
    b"BZh91AY&": "compressed with bzip2; unpack it, or compress it with gzip",
    b"\xfd7zXZ": "compressed with xz; unpack it, or compress it with gzip",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it, or compress it with gzip",
}
FASTA_ENDINGS = (".fasta", ".fa", ".faa", ".fna", ".fastq", ".fq")
FASTA = (
    "a FASTA file, with a whole sequence on one line; write one line per position, with residue "
    "and label separated by a space, and a blank line between sequences"
)
# A header, followed by a line of at least two capital letters, so that it is not a single residue
# or label.
FASTA_LINES = re.compile(rb">[^\n]*\n[A-Z*-]{2,}\r?\n")
JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
JSON_ARRAY = "one JSON array; write one object per line (JSON lines)"
# A schema of tables of facts, which may have several lines, is found before.
JSON_OBJECT = (
    "a JSON object over several lines; write one object per line (JSON lines). If it describes "
    "tables of facts, it must be valid JSON with the key 'events'"
)


def refuse_foreign(path: Path, head: bytes) -> None:
    """Raise `FileError` for a known but unsupported kind of file; `head` is its first bytes."""
    what = next((what for begin, what in BEGINNINGS.items() if head.startswith(begin)), None)
    ending = ending_of(path)
    if ending in FASTA_ENDINGS or FASTA_LINES.match(head):
        what = FASTA
    elif ending in JSON_ENDINGS and head.lstrip().startswith(b"["):
        what = JSON_ARRAY
    elif ending in JSON_ENDINGS and re.match(rb"\s*\{\s*\n", head):
        what = JSON_OBJECT
    if what is not None:
        raise FileError(path, f"not supported: this is {what}")
