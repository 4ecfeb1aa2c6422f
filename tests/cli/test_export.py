"""hedgerow export: a model for other programs."""

import json

import numpy as np
import pandas as pd
import pytest

import hedgerow
from reference.command_line import complaint, run


@pytest.fixture(scope="module")
def tree_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "trees.hedgerow"
    X = [pd.DataFrame({"n": [1.0, 2, 3, 4], "w": ["ä", "y", "ä", "z"]})]
    crf = hedgerow.TreeCRF(n_rounds=2, min_child_weight=0, n_jobs=1).fit(X, [list("abca")])
    crf.save(path)
    return path


def test_json(chunk_model, tree_model, tmp_path, capsys):
    for model in (chunk_model, tree_model):
        expected = hedgerow.load(model).to_json()
        assert run(capsys, "export", model) == f"{expected}\n"
        out = tmp_path / "model.json"
        assert run(capsys, "export", model, "-o", out).startswith(f"{out}: ")
        assert out.read_text(encoding="utf8") == expected
        assert json.loads(expected)["format"] == "hedgerow-model"


@pytest.mark.parametrize(("suffix", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_tables(chunk_model, tree_model, suffix, read, tmp_path, capsys):
    out = tmp_path / f"table.{suffix}"
    run(capsys, "export", chunk_model, "-o", out)
    weights = hedgerow.load(chunk_model).weights()
    found = read(out)
    assert list(found.columns) == list(weights)
    np.testing.assert_allclose(found["weight"], weights["weight"])
    run(capsys, "export", tree_model, "-o", out)
    trees, found = hedgerow.load(tree_model).trees(), read(out)
    assert list(found.columns) == list(trees)
    for name in ("node", "left", "threshold", "value", "gain"):
        np.testing.assert_allclose(found[name], trees[name])
    given = [
        names for names in found["categories"] if isinstance(names, str | np.ndarray) and len(names)
    ]
    lists = [json.loads(names) if suffix == "csv" else list(names) for names in given]
    assert lists == [list(names) for names in trees["categories"] if names]


def test_mistakes(chunk_model, tmp_path, capsys):
    message = complaint(capsys, "export", chunk_model, "-o", tmp_path / "model.txt")
    assert "has no known file extension; expected a name that ends in .json, .csv or" in message
    assert "no/such" in complaint(capsys, "export", chunk_model, "-o", "no/such/model.json")
    assert "cannot go" not in complaint(capsys, "export", tmp_path / "none", "-o", "x.json")
