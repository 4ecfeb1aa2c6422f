"""The examples run as they stand.

Two are too slow for the tests: `make demo` runs examples/ocr.py, and examples/noisy_labels.py
trains four models on all letters.
"""

import runpy
import sys

import pytest

from reference.pages import ROOT

SLOW = {"noisy_labels", "ocr"}
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in SLOW])
def test_an_example_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) > 5


def test_the_slow_examples_are_there():
    assert set(EXAMPLES) >= SLOW
