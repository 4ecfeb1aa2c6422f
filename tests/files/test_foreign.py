"""Files of other formats: read where Arrow reads them, or refused with advice."""

import gzip

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, ipc

from hedgerow.files import FileError, adapt_recipe, make_recipe, open_writer, read_file, stream_file
from reference.table_files import read_table, write_table

TABLE = pa.table({"g": [1, 1, 2], "x": [1.0, 2.0, 3.0], "y": ["A", "B", "A"]})


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "t.fasta",
            b">1abc\nMKV\nHHC\n",
            "this is a FASTA file, with a whole sequence on one line; wr",
        ),
        ("t.fa.gz", b">1abc\nMKV\n", "this is a FASTA file"),
        ("t.txt", b">1abc chain\nMKVLA\nHHHCC\n", "this is a FASTA file"),
        ("t.json", b'[\n {"g": 1}]', "this is one JSON array; write one object per line"),
        ("t.json", b' [{"g": 1}]', "this is one JSON array; write one object per line"),
        (
            "t.json",
            b'{\n "g": [1]}',
            "this is a JSON object over several lines; write one object per line",
        ),
        ("t.xlsx", b"PK\x03\x04...", "a zip archive or an Excel workbook; unpack it, or save the"),
        (
            "t.feather",
            b"FEA1\0\0\0\0",
            "this is a Feather file of version 1; save it as version 2, or save the table as CSV",
        ),
        (
            "t.arrows",
            b"\xff\xff\xff\xff\1",
            "this is an Arrow stream; save it as an Arrow file, or save the table as CSV, Parqu",
        ),
        ("t.csv.zst", b"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it, or compress it with"),
        ("t.db", b"SQLite format 3\0", "this is an SQLite database; save the table as"),
    ],
)
def test_foreign_files_are_refused(tmp_path, name, data, message):
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    for group in (None, "g"):
        with pytest.raises(FileError, match=f"{name}: not supported: .*{message}"):
            make_recipe(path, group=group)
    columns = tmp_path / "columns"
    columns.write_text("a A\nb B\n")
    with pytest.raises(FileError, match=message):
        adapt_recipe(make_recipe(columns), path)


def test_words_are_not_taken_for_foreign_files(tmp_path):
    path = tmp_path / "columns"
    for text in ("> SYM O\nPK NN O\n", "FEA1 NN B\nx NN O\n", "ORC NN O\nBZh NN O\n"):
        path.write_text(text)
        assert make_recipe(path).format == "conll"


@pytest.mark.parametrize("ending", ["feather", "arrow", "ipc", ""])
@pytest.mark.parametrize("packed", [False, True])
def test_feather_and_arrow_are_one(tmp_path, ending, packed):
    path = tmp_path / f"t.{ending}"
    feather.write_feather(TABLE, path, chunksize=2)
    if packed:
        path = path.with_suffix(f"{path.suffix}.gz")
        path.write_bytes(gzip.compress((tmp_path / f"t.{ending}").read_bytes()))
    recipe = make_recipe(path, group="g")
    assert (recipe.format, recipe.kinds) == ("arrow", ("integer", "number", "text"))
    assert read_file(path, recipe).y == [["A", "B"], ["A"]]
    other = tmp_path / "t.csv"
    write_table(TABLE, other)
    assert adapt_recipe(recipe, other).format == "csv"
    assert adapt_recipe(make_recipe(other, group="g"), path).format == "arrow"


def test_categories_are_written_again(tmp_path):
    path, out = tmp_path / "t.feather", tmp_path / "out.feather"
    frame = pd.DataFrame({"g": [1, 1, 2], "kind": pd.Categorical(["u", "v", "u"]), "y": [0, 1, 0]})
    frame.to_feather(path)
    recipe = make_recipe(path, group="g")
    with open_writer(out, recipe) as writer:
        for batch in stream_file(path, recipe, labels=True, n_positions=1):
            writer.write(batch, {"tag": batch.y})
    pd.testing.assert_frame_equal(
        read_table(out).to_pandas(), frame.assign(tag=frame["y"]), check_dtype=False
    )


@pytest.mark.parametrize("cut", [-1, 20])
def test_damaged_arrow_files(tmp_path, cut):
    path = tmp_path / "t.arrow"
    with ipc.new_file(str(path), TABLE.schema) as file:
        file.write_table(TABLE)
    recipe = make_recipe(path, group="g")
    path.write_bytes(path.read_bytes()[:cut])
    for read in (lambda: make_recipe(path, group="g"), lambda: read_file(path, recipe)):
        with pytest.raises(FileError, match=r"t.arrow: the Arrow file cannot be read: "):
            read()
