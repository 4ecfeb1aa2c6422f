"""The notebooks run, and show what they print."""

import json

import pytest

from reference.notebooks import run_cells, shown, store_outputs
from reference.pages import ROOT, agrees

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text(encoding="utf8"))
    for cell, printed in run_cells(notebook, path.name):
        assert agrees(printed, shown(cell)), f"{''.join(cell['source'])}\nprinted\n{printed}"


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["proteins", "sensors", "text"]


def test_outputs_are_stored(tmp_path):
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["text"]},
        {"cell_type": "code", "metadata": {}, "source": ["x = 2"], "outputs": []},
        {"cell_type": "code", "metadata": {}, "source": ["print(x)\n", "x += 1"], "outputs": []},
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5}))
    store_outputs(path)
    _, first, second = json.loads(path.read_text())["cells"]
    assert (first["outputs"], first["execution_count"]) == ([], 1)
    assert shown(second) == "2\n"
