"""Saved cases: failures as files, each of which is a test from then on."""

import hashlib
import json
from pathlib import Path

from abuse.batch import Failure
from abuse.kind import Case, Kind

__all__ = ["FOLDER", "read_case", "save_failure"]

FOLDER = Path(__file__).parent / "cases"


def save_failure(kind: Kind, failure: Failure) -> Path:
    """Write a failure to a file of its own; the same case goes to the same file."""
    text = json.dumps(failure.case, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    path = FOLDER / f"{kind.name}-{digest}.json"
    content = {"kind": kind.name, "case": failure.case, "error": failure.error.splitlines()[-12:]}
    FOLDER.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def read_case(path: Path) -> tuple[str, Case]:
    """Name of the kind, and the case."""
    content = json.loads(path.read_text())
    return content["kind"], content["case"]
