"""State of relational features: what their file holds, and a reader that checks it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from hedgerow.relational.plan import Step, walk
from hedgerow.relational.shape import Literal, Shape, Term
from hedgerow.state import ModelFileError

__all__ = ["pack_features", "unpack_features"]

FORMAT = "hedgerow-relational-features"
VERSION = 1


def pack_features(features: Any) -> bytes:
    """Parameters and queries, as JSON."""
    parameters = features.get_params()
    document = {
        "format": FORMAT,
        "version": VERSION,
        "parameters": parameters
        | {"modes": None if parameters["modes"] is None else features.modes_},
        "modes": features.modes_,
        "forms": {name: [list(kinds), is_one] for name, (kinds, is_one) in features.forms_.items()},
        "counts": features.counts_.tolist(),
        "refined": features.refined_,
        "steps": [_pack_step(step) for step in features.steps_],
    }
    return json.dumps(document, ensure_ascii=False).encode()


def unpack_features(data: bytes, known: dict[str, Any]) -> dict[str, Any]:
    """Attributes of fitted features; ``known`` are all parameters, with their defaults."""
    try:
        document = json.loads(data)
    except ValueError as error:
        raise ModelFileError(f"not a file of relational features: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"not a file of relational features: its format is not {FORMAT}")
    if document.get("version") != VERSION:
        raise ModelFileError(
            f"the file is of version {document.get('version')!r} of its format, but this hedgerow "
            f"reads version {VERSION}; use another version of hedgerow"
        )
    try:
        counts = np.array(document["counts"], np.int64)
        steps = [_unpack_step(step, Shape()) for step in document["steps"]]
        numbers = sorted(n for step in walk(steps) for n in step.queries.tolist() if n >= 0)
        _require(
            numbers == list(range(len(counts))), "the numbers of its queries are not 0, 1, 2, ..."
        )
        parameters = {name: document["parameters"][name] for name in known}
        forms = {
            name: (tuple(map(bool, kinds)), bool(is_one))
            for name, (kinds, is_one) in document["forms"].items()
        }
        modes = [str(mode) for mode in document["modes"]]
        refined = [int(number) for number in document.get("refined", [])]
        _require(
            all(0 <= number < len(counts) for number in refined), "a refined query does not exist"
        )
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise ModelFileError(f"the file of relational features is damaged: {error!r}") from None
    return parameters | {
        "steps_": steps,
        "modes_": modes,
        "n_queries_": len(counts),
        "counts_": counts,
        "refined_": refined,
        "forms_": forms,
    }


def _require(holds: object, what: str) -> None:
    if not holds:
        raise ModelFileError(f"the file of relational features is damaged: {what}")


def _pack_step(step: Step) -> dict[str, Any]:
    literal = step.shape.literals[-1]
    return {
        "predicate": literal.predicate,
        "terms": [list(term) for term in literal.terms],
        "types": list(step.shape.types),
        "constants": [list(texts) for texts in step.constants],
        "queries": step.queries.tolist(),
        "steps": [_pack_step(refinement) for refinement in step.steps],
    }


def _unpack_step(data: dict[str, Any], before: Shape) -> Step:
    terms = tuple(Term(int(kind), int(number)) for kind, number in data["terms"])
    literal = Literal(str(data["predicate"]), terms)
    shape = Shape((*before.literals, literal), tuple(map(str, data["types"])))
    constants = [tuple(map(str, texts)) for texts in data["constants"]]
    queries = np.array(data["queries"], np.int64)
    _require(
        len(constants) == len(queries)
        and all(len(texts) == shape.n_slots for texts in constants)
        and shape.is_sound(),
        "the literals of a query are not valid",
    )
    return Step(
        shape, constants, queries, [_unpack_step(refinement, shape) for refinement in data["steps"]]
    )
