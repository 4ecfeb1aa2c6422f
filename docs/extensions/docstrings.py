"""Docstrings for the reference: only those of hedgerow, with underscores as plain text."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx


def _skip_foreign(
    app: Sphinx, what: str, name: str, member: object, skip: bool, options: Any
) -> bool | None:
    """Leave out what estimators inherit from scikit-learn: its own documentation has that."""
    home = getattr(member, "__module__", None) or "hedgerow"
    return True if home.startswith("sklearn") or name.endswith("_request") else None


def _protect_names(
    app: Sphinx, what: str, name: str, member: object, options: Any, lines: list[str]
) -> None:
    """Protect the underscore of names such as n_features_in_, which would make them links."""
    for i, line in enumerate(lines):
        named, colon, kind = line.partition(" : ")
        if colon and re.fullmatch(r"[\w, *]+", named):
            lines[i] = colon.join(re.sub(r"(\w)_(?!\w)", r"\1\\_", part) for part in (named, kind))


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx of it."""
    app.connect("autodoc-skip-member", _skip_foreign)
    app.connect("autodoc-process-docstring", _protect_names, priority=400)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
