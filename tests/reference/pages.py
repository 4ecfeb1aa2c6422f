"""Pages of documentation, and how to run their code.

The python blocks of a page share their names and a folder. Lines ``$ hedgerow ...`` and ``$ python
examples/...`` of a console block are commands; the lines below a command are its output, and ``$
echo $?`` shows its exit code, which is 0 otherwise. A text block directly after a python block is
its output. A line ``...`` in the output stands for any lines.
"""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# A number with a point, as re.escape leaves it; and any such number.
FRACTION = re.compile(r"[-+\\]*\d+\\\.\d+")
ANY_FRACTION = r"([-+]?\\d+\\.\\d+)"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    language: str
    text: str
    line: int
    """Number of its first line in the page."""
    adjoins: bool
    """Whether it follows directly after the block before it."""


class Command(NamedTuple):
    program: str
    arguments: list[str]
    shown: str
    code: int


def read_blocks(path: Path) -> Iterator[Block]:
    page, end = path.read_text(encoding="utf8"), 0
    for match in FENCE.finditer(page):
        between = page[end : match.start()]
        line = page.count("\n", 0, match.start()) + 2
        yield Block(match[1], match[2], line, end > 0 and not between.strip())
        end = match.end()


def read_commands(text: str) -> Iterator[Command]:
    """The commands of a console block; those of other programs are not run."""
    entries = re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]
    for i, entry in enumerate(entries):
        line, _, printed = entry.partition("\n")
        code = 0
        if i + 1 < len(entries) and entries[i + 1].startswith("echo $?\n"):
            code = int(entries[i + 1].split("\n")[1])
        words = shlex.split(line, comments=True)
        if words[0] in ("hedgerow", "python"):
            yield Command(words[0], words[1:], printed, code)


def agrees(printed: str, shown: str) -> bool:
    """Whether a page shows this output; numbers with a decimal point may differ slightly."""
    lines = [line.rstrip() for line in shown.strip("\n").split("\n")]
    parts = [
        ".*" if line == "..." else FRACTION.sub(ANY_FRACTION, re.escape(line)) for line in lines
    ]
    text = "\n".join(line.rstrip() for line in printed.strip("\n").split("\n"))
    found = re.fullmatch("\n".join(parts), text, re.DOTALL)
    if found is None:
        return False
    numbers = FRACTION.findall("\n".join(map(re.escape, lines)))
    pairs = zip(numbers, found.groups(), strict=True)
    return all(
        isclose(float(a.replace("\\", "")), float(b), rel_tol=0.05, abs_tol=0.01) for a, b in pairs
    )


def run_page(path: Path, capsys: Any) -> dict[str, Any]:
    """Run all code of a page in this folder; returns its Python namespace."""
    names: dict[str, Any] = {"__name__": path.stem}
    page, output = path.relative_to(ROOT), ""
    for block in read_blocks(path):
        if block.language == "python":
            # Prepend empty lines, so that an error names the line of the page.
            text = "\n" * (block.line - 1) + block.text
            exec(compile(text, str(page), "exec", dont_inherit=True), names)
            output = capsys.readouterr().out
        elif block.language == "text" and block.adjoins:
            assert agrees(output, block.text), f"{page}:{block.line}: it printed\n{output}"
        elif block.language == "console":
            for command in read_commands(block.text):
                run_command(command, page, capsys)
    return names


def run_command(command: Command, page: Path, capsys: Any) -> None:
    words = f"{page}: {command.program} {' '.join(command.arguments)}"
    if command.program == "python":
        run_example(command.arguments[0], command.arguments[1:])
        code = 0
    else:
        from hedgerow.cli import main

        code = main(command.arguments)
    printed = capsys.readouterr()
    assert code == command.code, f"{words} ended with {code}\n{printed.out}{printed.err}"
    if command.shown.strip():
        output = printed.err if code else printed.out
        assert agrees(output, command.shown), f"{words} printed\n{output}"


def run_example(path: str, arguments: list[str]) -> None:
    """Run a script of this project, such as examples/ocr.py, in this folder."""
    script = ROOT / path
    paths = [str(script.parent), *sys.path]  # as Python does, so that scripts can import each other
    with patch.object(sys, "argv", [path, *arguments]), patch.object(sys, "path", paths):
        runpy.run_path(str(script), run_name="__main__")
