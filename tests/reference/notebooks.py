"""Notebooks: running their cells without Jupyter, and storing their output.

``python tests/reference/notebooks.py docs/notebooks/*.ipynb`` runs notebooks and writes their
outputs again.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def run_cells(notebook: dict[str, Any], name: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Run the code cells in order; yields each with its output."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        code = compile("".join(cell["source"]), f"{name}, cell {number}", "exec", dont_inherit=True)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, names)
        yield cell, printed.getvalue()


def shown(cell: dict[str, Any]) -> str:
    """The stored output of a cell."""
    return "".join("".join(output["text"]) for output in cell["outputs"])


def store_outputs(path: Path) -> None:
    """Run a notebook and write its outputs into it."""
    notebook = json.loads(path.read_text(encoding="utf8"))
    for number, (cell, printed) in enumerate(run_cells(notebook, path.name), 1):
        lines = printed.splitlines(keepends=True)
        stream = {"name": "stdout", "output_type": "stream", "text": lines}
        cell |= {"execution_count": number, "outputs": [stream] if lines else []}
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        store_outputs(Path(argument))
