"""The examples run."""

import pytest

from reference.pages import ROOT, run_example

EXAMPLES = {path.stem for path in (ROOT / "examples").glob("*.py")}
NOT_HERE = {
    "grid_search": "too slow: it trains some dozens of models",
    "named_entities": "docs/guides/text-features.md runs it",
    "noisy_labels": "too slow: it trains four models on all letters",
    "ocr": "too slow: `make demo` runs it",
    "your_own_csv": "tests/test_readme.py runs it",
}


@pytest.mark.parametrize("name", sorted(EXAMPLES - set(NOT_HERE)))
def test_an_example_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_example(f"examples/{name}.py", [])
    assert len(capsys.readouterr().out.splitlines()) > 5


def test_the_others_are_there():
    assert set(NOT_HERE) <= EXAMPLES
