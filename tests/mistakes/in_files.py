"""Mistakes in files."""

from pathlib import Path

from hedgerow.files import FileError, make_recipe
from mistakes.mistake import mistake


def read(name, text, **options):
    """Make the recipe of a file with this text."""
    Path(name).write_text(text)
    make_recipe(name, **options)


@mistake(
    "A",
    FileError,
    "chains.fasta: not supported: this is a FASTA file, with a whole sequence on one line; write",
    "one line per position, with residue and label separated by a space, and a blank line between",
    "sequences",
)
def pairs_of_lines():
    read("chains.fasta", ">1abc\nMKVLA\nCHHHC\n")


@mistake(
    "A",
    FileError,
    "chains.csv: column 'resolved' has a string of 24 digits in row 1, 111111111111..., which is",
    "too long for a number. If a row holds a whole sequence, write one row per position; if the",
    "digits are an id, choose other columns as features (--features)",
)
def a_row_per_sequence():
    read("chains.csv", f"id\tresolved\tlabel\na\t{'1' * 24}\tA\n", group="id")


@mistake(
    "A",
    FileError,
    "rows.json: not supported: this is one JSON array; write one object per line (JSON lines)",
)
def an_array_of_objects():
    read("rows.json", '[\n  {"day": 1, "watts": 3, "state": "on"}\n]\n', group="day")


@mistake(
    "A",
    FileError,
    "rows.jsonl: column 'words' is of type list<...>; expected numbers, bools or text: if a row",
    "holds a whole sequence, write one row per position",
)
def an_object_per_sequence():
    read("rows.jsonl", '{"id": 1, "words": ["a", "b"], "tag": "x"}\n', group="id", label="tag")


@mistake(
    "A",
    FileError,
    "rows.jsonl, line 2: column 'watts' holds \"many\", but an earlier row has 3; expected",
    "values of one type",
)
def numbers_and_text():
    read(
        "rows.jsonl",
        '{"day": 1, "watts": 3, "state": "on"}\n{"day": 1, "watts": "many", "state": "on"}\n',
        group="day",
    )


@mistake(
    "A",
    FileError,
    "days.csv.zst: not supported: this is compressed with zstd; unpack it, or compress it with",
    "gzip",
)
def another_compression():
    Path("days.csv.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    make_recipe("days.csv.zst", group="day")
