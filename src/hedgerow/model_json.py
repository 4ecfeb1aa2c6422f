"""Model JSON: a trained model as one JSON document, for other programs.

docs/guides/json.md describes the schema. `VERSION` is increased by incompatible changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.labels import Constraints
from hedgerow.model import Model
from hedgerow.version import __version__

__all__ = ["export_model"]

FORMAT = "hedgerow-model"
VERSION = 1


def export_model(model: Model, kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Everything that is needed to score labellings; ``kind`` is the class of the estimator."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "hedgerow": __version__,
        "model": kind,
        "parameters": parameters,
        "labels": model.labels.classes.tolist(),
        "decode": model.decode,
        "columns": _describe_columns(model),
        "has_parents": model.schema.has_parents,
        "constraints": _describe_constraints(model.grammar.constraints),
        "patterns": [
            {"labels": list(map(int, codes)), "weight": weight}
            for codes, weight in zip(
                model.grammar.patterns, model.pattern_weights.tolist(), strict=True
            )
        ],
    }
    for potential in model.potentials:
        document |= potential.to_json()
    return document


def _describe_columns(model: Model) -> list[dict[str, str]] | None:
    """Names and kinds of the columns of X; None if it contains named attributes."""
    schema = model.schema
    if schema.kind != "columns":
        return None
    pairs = zip(schema.column_names(), schema.numeric, strict=True)
    return [{"name": name, "kind": "number" if numeric else "text"} for name, numeric in pairs]


def _describe_constraints(constraints: Constraints | None) -> dict[str, Any] | None:
    """Labels that may begin and end a sequence, and pairs that may occur, by their numbers."""
    if constraints is None:
        return None
    return {
        "start": np.flatnonzero(constraints.start).tolist(),
        "end": np.flatnonzero(constraints.end).tolist(),
        "pairs": np.argwhere(constraints.allowed).tolist(),
    }
