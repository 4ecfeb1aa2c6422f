"""Smoke test of an installed package: everything that it must contain, in a minute.

Run by `make wheel` in an environment with only the package and its dependencies.
"""

import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import files, version
from pathlib import Path

import hedgerow
from hedgerow.datasets import load_ocr

PROGRAM = Path(sysconfig.get_path("scripts")) / "hedgerow"
CONLL = "the DT B\ncat NN I\nsat VB O\n\na DT B\ndog NN I\nran VB O\n\n" * 5


def check_contents():
    """Only the package is installed, and it is complete."""
    home = Path(hedgerow.__file__).parent
    assert hedgerow.__version__ == version("hedgerow")
    assert (home / "py.typed").exists()
    assert "def fill_viterbi" in (home / "_core.pyi").read_text(encoding="utf-8")
    assert (home / "report" / "assets" / "page.html").exists()
    tops = {path.parts[0] for path in files("hedgerow") if path.parts[0] not in ("..", "bin")}
    odd = {top for top in tops if top != "hedgerow" and not top.endswith(".dist-info")}
    assert not odd, f"these do not belong into an installation: {sorted(odd)}"


def check_estimators(folder):
    """Both learn letters, and are the same after saving and loading."""
    X, y, _ = load_ocr()
    X, y = X[:60], y[:60]
    for crf in (hedgerow.TreeCRF(n_rounds=3), hedgerow.LinearCRF(max_iter=20, tol=0)):
        path = folder / "model"
        crf.fit(X, y).save(path)
        again = hedgerow.load(path)
        for one, other in zip(crf.predict(X), again.predict(X), strict=True):
            assert (one == other).all()
        assert crf.score(X, y) > 0.7, crf.score(X, y)


def check_commands(folder):
    """From a file to a report page."""
    data, model, page = folder / "data.conll", folder / "data.model", folder / "page.html"
    data.write_text(CONLL)
    run(PROGRAM, "--help")
    run(sys.executable, "-m", "hedgerow", "--version")
    run(PROGRAM, "train", data, "-m", model)
    assert run(PROGRAM, "tag", model, data).split()[:4] == ["the", "DT", "B", "B"]
    assert "100.00" in run(PROGRAM, "eval", model, data)
    run(PROGRAM, "inspect", model)
    run(PROGRAM, "report", model, data, "-o", page)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def check_plots():
    """Without matplotlib, the error says what to install."""
    from hedgerow import plots

    crf = hedgerow.LinearCRF().fit([[["a"], ["b"]]], [["A", "B"]])
    try:
        plots.transitions(crf)
    except ImportError as error:
        message = str(error)
    assert 'pip install "hedgerow[plots]"' in message


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        check_contents()
        check_estimators(Path(folder))
        check_commands(Path(folder))
    check_plots()
    print(f"hedgerow {hedgerow.__version__} from {Path(hedgerow.__file__).parent} works")
