"""Commands on damaged files: every command ends with status 0, or with 2 and a one-line error."""

import contextlib
import gzip
import io
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from hypothesis import strategies as st

from abuse.kind import Case, Kind
from hedgerow import load
from hedgerow.cli import main
from reference.command_line import SENTENCES, conll

__all__ = ["KINDS", "base_file", "run_command", "trained"]

FORMATS = ["conll", "csv", "parquet", "crfsuite"]
SUFFIXES = {"conll": "txt", "csv": "csv", "parquet": "parquet", "crfsuite": "crfsuite"}
TABLE_OPTIONS = ["--group", "day", "--label", "state"]
FAST = {
    "linear": ["--model", "linear", "--set", "max_iter=3", "--set", "tol=0"],
    "trees": ["--model", "trees", "--set", "n_rounds=2"],
}
# Pieces that are inserted into text files: separators, quotes, line breaks, invalid UTF-8.
PIECES = [
    *(b"\n", b"\r\n", b"\r", b"\n\n", b" ", b"\t", b",", b";", b'"', b"'", b":", b"\\", b"@", b"#"),
    *(b"\0", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", "é".encode(), "\u2028".encode()),
    *(b"nan", b"inf", b"-1", b"1e999", b"9" * 400, b"x" * 9000),
    *(b"-DOCSTART-", b"B-NP", b"I-NP", b"%x[0,0]"),
]


@cache
def base_file(form: str) -> bytes:
    """A small labelled file of each format."""
    if form == "conll":
        return conll(SENTENCES).encode()
    if form == "crfsuite":
        lines = conll(SENTENCES).splitlines()
        cells = [line.split() for line in lines]
        return "\n".join(
            "\t".join((c[2], f"w={c[0]}", f"t={c[1]}:2")) if c else "" for c in cells
        ).encode()
    rng = np.random.default_rng(0)
    table = {
        "day": np.repeat(["mon", "tue", "wed"], 4),
        "speed": rng.normal(size=12).round(3),
        "place": np.where(rng.random(12) < 0.5, "in", "out"),
        "state": np.array(["go", "stop"])[rng.integers(0, 2, 12)],
    }
    if form == "csv":
        rows = [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
        return "\n".join([",".join(table), *rows, ""]).encode()
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(table), sink)
    return sink.getvalue()


@cache
def trained(form: str, model: str) -> bytes:
    """A model that was trained on the base file."""
    with tempfile.TemporaryDirectory() as folder:
        path, place = Path(folder, f"train.{SUFFIXES[form]}"), Path(folder, "model")
        path.write_bytes(base_file(form))
        options = [] if form in ("conll", "crfsuite") else TABLE_OPTIONS
        arguments = ["train", path, "-m", place, "--quiet", *options, *FAST[model]]
        assert run_command(*arguments)[0] == 0
        return place.read_bytes()


def run_command(*arguments: object) -> tuple[int, bytes, str]:
    """Exit code, standard output and standard error of a command."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf8", write_through=True)
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return code, out.buffer.getvalue(), err.getvalue()


@st.composite
def file_cases(draw: st.DrawFn) -> Case:
    place = st.integers(0, 5000)
    change = st.one_of(
        st.tuples(st.just("flip"), place, st.integers(0, 7)),
        st.tuples(st.just("put"), place, st.integers(0, len(PIECES) - 1)),
        st.tuples(st.just("drop"), place, st.integers(1, 40)),
        st.tuples(st.just("repeat"), place, st.integers(1, 80)),
        st.tuples(st.just("cut"), place, st.just(0)),
    )
    return {
        "format": draw(st.sampled_from(FORMATS)),
        "model": draw(st.sampled_from(["linear", "trees"])),
        "command": draw(st.sampled_from(["train", "tag", "eval", "report", "inspect"])),
        "gzip": draw(st.sampled_from(["no", "no", "whole", "damaged"])),
        "declared": draw(st.booleans()),
        "changes": draw(st.lists(change.map(list), max_size=4)),
    }


def damage(data: bytes, changes: list[list[object]]) -> bytes:
    """Apply the changes, each at a place modulo the length."""
    for kind, place, value in changes:
        at = place % (len(data) + 1)
        if kind == "flip" and at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << value]) + data[at + 1 :]
        elif kind == "put":
            data = data[:at] + PIECES[value] + data[at:]
        elif kind == "drop":
            data = data[:at] + data[at + value :]
        elif kind == "repeat":
            data = data[:at] + data[at : at + value] + data[at:]
        elif kind == "cut":
            data = data[:at]
    return data


def check_file(case: Case) -> None:
    """Run a command on a damaged file: status 0, or 2 with one of our messages, never a
    traceback."""
    form, zipped = case["format"], case["gzip"]
    data = base_file(form)
    if zipped == "damaged":
        data = damage(gzip.compress(data, mtime=0), case["changes"])
    else:
        data = damage(data, case["changes"])
        data = gzip.compress(data, mtime=0) if zipped == "whole" else data
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"data.{SUFFIXES[form]}{'' if zipped == 'no' else '.gz'}")
        path.write_bytes(data)
        model = Path(folder, "model")
        if case["command"] != "train":
            model.write_bytes(trained(form, case["model"]))
        code, _, err = run_command(*arguments_of(case, path, model, Path(folder)))
        check_ending(code, err)
        if code == 0 and case["command"] == "train":
            load(model)


def arguments_of(case: Case, path: Path, model: Path, folder: Path) -> list[object]:
    """What a user would type."""
    match case["command"]:
        case "train":
            options = TABLE_OPTIONS if case["format"] in ("csv", "parquet") else []
            options = [*options, *FAST[case["model"]]]
            options += ["--format", case["format"]] if case["declared"] else []
            return ["train", path, "-m", model, "--quiet", *options]
        case "tag":
            return ["tag", model, path, *["--marginals"] * case["declared"]]
        case "eval":
            return ["eval", model, path, *["--json"] * case["declared"]]
        case "report":
            return ["report", model, path, "-o", folder / "page.html"]
    return ["inspect", model, path, "--sequence", 0, "--position", 0]


def check_ending(code: int, err: str) -> None:
    """Success, or an error message of one line; warnings are lines too."""
    lines = err.splitlines()
    assert code in (0, 2), f"exit code {code}: {err}"
    assert all(line.startswith("hedgerow: ") for line in lines), err
    mistakes = [line for line in lines if not line.startswith("hedgerow: warning: ")]
    assert len(mistakes) == (1 if code == 2 else 0), err
    assert all(len(line) > len("hedgerow: ") + 15 for line in mistakes), err


KINDS = [Kind("inputs-files", file_cases(), check_file, in_suite=12, share=2.0)]
