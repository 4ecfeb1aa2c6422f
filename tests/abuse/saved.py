"""Saved cases: failures as files, which are tests from then on."""

import hashlib
import json
import re
from pathlib import Path

from abuse.batch import Failure
from abuse.kind import Case, Kind

__all__ = ["FOLDER", "read_case", "save_failure"]

FOLDER = Path(__file__).parent / "cases"
# Lines of an exception that are kept.
N_LINES = 12
# The folders of an absolute path.
FOLDERS = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?[\\/]+(?:[^\s\\/:'\"]+[\\/]+)+")


def save_failure(kind: Kind, failure: Failure) -> Path:
    """Write a failure to a file; the same case always has the same file."""
    text = json.dumps(failure.case, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    path = FOLDER / f"{kind.name}-{digest}.json"
    content = {"kind": kind.name, "case": failure.case, "error": shorten(failure.error)}
    FOLDER.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def shorten(error: str) -> list[str]:
    """The last lines: the exception without its traceback and without folders of this machine."""
    lines = error.splitlines()
    frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
    begin = frames[-1] + 1 if frames else 0
    while begin < len(lines) and lines[begin].startswith("    "):  # code of the last frame
        begin += 1
    return [FOLDERS.sub("", line) for line in lines[begin:][-N_LINES:]]


def read_case(path: Path) -> tuple[str, Case]:
    """Name of the kind, and the case."""
    content = json.loads(path.read_text())
    return content["kind"], content["case"]
