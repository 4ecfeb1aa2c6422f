"""Sources and sinks: gzipped files, standard input and output, files written whole."""

import gzip
import io
import os
import sys

import pytest

from hedgerow.files import FileError, make_recipe, open_writer, read_file, stream_file
from reference.command_line import give
from reference.table_files import parquet_bytes

CONLL = b"a x A\nb y B\n\n" * 6000
PARQUET = parquet_bytes(["g", "x", "y"], [[1, 1, 2], [1.0, 2.0, 3.0], ["A", "B", "A"]])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_loses_nothing(monkeypatch, pack):
    give(monkeypatch, pack(CONLL))
    recipe = make_recipe("-")
    assert read_file("-", recipe).n_sequences == 6000
    assert list(stream_file("-", recipe)) == []


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("data", [b"g,x,y\n1,2,A\n1,3,B\n2,5,A\n", PARQUET])
def test_tables_on_standard_input(monkeypatch, pack, data):
    give(monkeypatch, pack(data))
    recipe = make_recipe("-", group="g")
    assert read_file("-", recipe).y == [["A", "B"], ["A"]]


def test_an_error_names_standard_input(monkeypatch):
    give(monkeypatch, b"a b\nc\n")
    with pytest.raises(FileError, match=r"standard input, line 2: expected 2 columns") as caught:
        make_recipe("-")
    assert (caught.value.path, caught.value.line) == ("-", 2)


@pytest.mark.parametrize("name", ["x.txt.gz", "x.csv.gz", "x.crfsuite.gz"])
def test_gzipped_files(tmp_path, name):
    data = {"txt": b"a x A\n", "csv": b"g,x,y\n1,2,A\n", "crfsuite": b"A\ta\n"}[name.split(".")[1]]
    path = tmp_path / name
    path.write_bytes(gzip.compress(data))
    recipe = make_recipe(path, group="g" if "csv" in name else None)
    for out in (tmp_path / "one.gz", tmp_path / "two.gz"):
        with open_writer(out, recipe) as writer:
            for batch in stream_file(path, recipe, labels=True):
                writer.write(batch, {"tag": batch.y})
    expected = {"txt": b"a x A A\n", "csv": b"g,x,y,tag\n1,2,A,A\n", "crfsuite": b"A\n\n"}
    assert gzip.decompress(out.read_bytes()) == expected[name.split(".")[1]]
    assert (tmp_path / "one.gz").read_bytes() == out.read_bytes()


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: data[:40] + b"\0" * 30])
def test_a_damaged_gzipped_file(tmp_path, damage):
    path = tmp_path / "x.txt.gz"
    path.write_bytes(damage(gzip.compress(os.urandom(500).hex().encode())))
    with pytest.raises(FileError, match="the gzipped data are damaged or cut short"):
        make_recipe(path)


def test_standard_output_gets_each_batch_at_once(tmp_path, monkeypatch):
    path = tmp_path / "x.txt"
    path.write_bytes(b"a A\n\nb B\n")
    recipe = make_recipe(path)
    flushed = []

    class Out(io.BytesIO):
        def flush(self):
            flushed.append(self.getvalue())

    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(Out()))
    with open_writer("-", recipe) as writer:
        for batch in stream_file(path, recipe, labels=True, n_positions=1):
            writer.write(batch, {"tag": batch.y})
            assert flushed[-1].endswith(batch.y[-1][-1].encode() + b"\n")


def test_a_file_that_is_not_whole_is_not_there(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"a A\n")
    recipe = make_recipe(path)
    before = set(tmp_path.iterdir())

    def stop_half_way():
        with open_writer(tmp_path / "out", recipe) as writer:
            for batch in stream_file(path, recipe, labels=True):
                writer.write(batch, {"tag": batch.y})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_half_way()
    assert set(tmp_path.iterdir()) == before


def test_formats_by_what_stands_in_a_file(tmp_path, monkeypatch):
    for data, expected in [
        (b"a x A\nb y B\n", "conll"),
        (b"a\tA\n\nb\tB\n", "conll"),
        (b"g,x,y\n1,2,A\n2,3,B\n", "csv"),
        (b"A\tw=a\tp=x\nB\tw=b\n\n", "crfsuite"),
        (PARQUET, "parquet"),
    ]:
        path = tmp_path / "data"
        path.write_bytes(data)
        group = "g" if expected in ("csv", "parquet") else None
        assert make_recipe(path, group=group).format == expected
        if expected == "csv":
            with pytest.raises(FileError, match="a table needs a group column, which contains"):
                make_recipe(path)
    with pytest.raises(ValueError, match="format is 'xml'; expected one of conll, csv, parquet"):
        make_recipe(path, format="xml")
    with pytest.raises(FileError, match="CRFsuite files have no columns to choose from; leave"):
        make_recipe(path, format="crfsuite", label=1)
