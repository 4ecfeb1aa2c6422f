"""The summary: what a model is, and how it was trained."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hedgerow.decoding import Decode
from hedgerow.estimator import Estimator
from hedgerow.linear_crf import LinearCRF
from hedgerow.parameters import changed_parameters
from hedgerow.potentials import NodeTrees
from hedgerow.report.blob import as_number, round_off
from hedgerow.shown import best_step
from hedgerow.training.eval_sets import eval_figures
from hedgerow.tree_crf import TreeCRF

# Maximum length of a parameter's text, and parameters that do not affect the model.
LONGEST = 200
NO_MATTER = ("n_jobs", "verbose")


def describe_model(model: Estimator, decode: Decode) -> dict[str, Any]:
    """Kind, parameters that differ from the defaults, and sizes."""
    parameters = changed_parameters(model)
    return {
        "kind": type(model).__name__,
        "labels": [str(label) for label in model.classes_.tolist()],
        "parameters": [
            [name, _shorten(repr(value))]
            for name, value in parameters.items()
            if name not in NO_MATTER
        ],
        "sizes": [[name, as_number(size)] for name, size in _sizes(model)],
        "decode": decode,
    }


def describe_source(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Name of the file that data come from, and its modification time in UTC."""
    file = Path(path)
    modified = None
    if file.is_file():
        changed = datetime.fromtimestamp(file.stat().st_mtime, timezone.utc)
        modified = changed.strftime("%Y-%m-%d %H:%M UTC")
    return {"name": file.name, "modified": modified}


def _sizes(model: Estimator) -> list[tuple[str, float]]:
    sizes: list[tuple[str, float]] = [("Labels", len(model.classes_))]
    schema = model.model_.schema
    if schema.kind == "columns":
        sizes.append(("Columns", schema.n_features))
    else:
        sizes.append(("Attributes", len(model.model_.index)))
    sizes.append(("Label patterns", len(model.model_.grammar.patterns)))
    if isinstance(model, LinearCRF):
        sizes += [("Weights", model.n_weights_), ("Iterations", model.n_iter_)]
    if isinstance(model, TreeCRF):
        forest = model.model_.potential(NodeTrees).forest
        sizes += [("Rounds", model.n_rounds_), ("Trees", forest.n_trees)]
        sizes.append(("Tree nodes", len(forest.columns)))
    base = getattr(model, "base_", None)
    if isinstance(base, LinearCRF):
        sizes.append(("Weights of the base", base.n_weights_))
    elif isinstance(base, TreeCRF):
        sizes.append(("Rounds of the base", base.n_rounds_))
    return sizes


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def describe_history(model: Estimator) -> dict[str, Any] | None:
    """Loss and metrics by round or iteration; None if there are none."""
    n_steps = max(map(len, model.history_.values()), default=0)
    if n_steps == 0:
        return None
    # A list that is shorter than training has the values of the last steps.
    curves = {
        name: [*[None] * (n_steps - len(figures)), *round_off(figures)]
        for name, figures in model.history_.items()
        if figures
    }
    sets = {key: list(names) for key, names in eval_figures(model.history_).items()}
    return {
        "step": model.step_name,
        "curves": curves,
        "sets": sets,
        "best": best_step(model) or None,
    }
