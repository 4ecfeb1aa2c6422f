"""Weights: what a model has learned about labels and features, as shown on the page."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.estimator import Estimator
from hedgerow.linear_crf import LinearCRF
from hedgerow.pivot import pivot
from hedgerow.report.blob import round_off
from hedgerow.tables import Table
from hedgerow.tree_crf import TreeCRF

MAX_PATTERNS = 2000
MAX_FEATURES = 200
# Number of weights that are listed for each label, positive and negative ones separately.
MAX_WEIGHTS = 30


def describe_pairs(model: Estimator) -> dict[str, Any] | None:
    """Weights of label pairs, which are given as codes; None if the model has none."""
    table = _without_attributes(model.transition_weights())
    if not len(table["weight"]):
        return None
    return {
        "from": model.model_.labels.find(table["from"]).tolist(),
        "to": model.model_.labels.find(table["to"]).tolist(),
        "weight": round_off(table["weight"]),
    }


def describe_patterns(model: Estimator, notes: list[str]) -> dict[str, Any] | None:
    """The label patterns with the largest absolute weights; None if there are only pairs."""
    table = _without_attributes(model.patterns())
    patterns, weights = table["pattern"].tolist(), table["weight"]
    if all(len(pattern) == 2 for pattern in patterns):
        return None
    kept = np.argsort(-np.abs(weights), kind="stable")[:MAX_PATTERNS]
    if len(kept) < len(patterns):
        notes.append(
            f"{len(kept):,} of {len(patterns):,} label patterns are listed, those with the largest "
            "absolute weights."
        )
    code_of = {label: code for code, label in enumerate(model.classes_.tolist())}
    return {
        "patterns": [[code_of[label] for label in patterns[i]] for i in kept.tolist()],
        "weight": round_off(weights[kept]),
    }


def _without_attributes(table: Table) -> Table:
    """Only the weights of label pairs or patterns that do not depend on attributes."""
    if "attribute" not in table:
        return table
    plain = table["attribute"] == ""
    return Table({name: column[plain] for name, column in table.items()})


def describe_features(model: Estimator, notes: list[str]) -> dict[str, Any] | None:
    """The most important features: by window offset for trees, by label for linear weights."""
    if isinstance(model, TreeCRF):
        return _describe_importances(model, notes)
    return _describe_weights(model) if isinstance(model, LinearCRF) else None


def _describe_importances(model: TreeCRF, notes: list[str]) -> dict[str, Any] | None:
    table = model.importances()
    if not len(table["gain"]):
        return None
    names, offsets, gains = pivot(table, "feature", "offset", "gain")
    gains = np.nan_to_num(gains)
    totals = gains.sum(axis=1)
    kept = np.argsort(-totals, kind="stable")[:MAX_FEATURES]
    if len(kept) < len(names):
        notes.append(
            f"{len(kept):,} of {len(names):,} features are listed, those with the largest gain."
        )
    return {
        "kind": "gain",
        "names": names[kept].tolist(),
        "offsets": offsets.tolist(),
        "shares": [round_off(row) for row in gains[kept] / totals.sum()],
    }


def _describe_weights(model: LinearCRF) -> dict[str, Any]:
    table = model.weights()
    codes = model.model_.labels.find(table["label"])
    by_label = [
        _heaviest(table["attribute"][mine], table["weight"][mine])
        for mine in (np.flatnonzero(codes == code) for code in range(len(model.classes_)))
    ]
    return {"kind": "weights", "labels": by_label}


def _heaviest(attributes: NDArray[Any], weights: NDArray[np.float64]) -> dict[str, Any]:
    """The largest positive weights, then the most negative ones."""
    order = np.argsort(-weights, kind="stable")
    above = [i for i in order[:MAX_WEIGHTS].tolist() if weights[i] > 0]
    below = [i for i in order[::-1][:MAX_WEIGHTS].tolist() if weights[i] < 0]
    kept = above + below[::-1]
    return {
        "names": [str(attributes[i]) for i in kept],
        "weights": round_off(weights[kept]),
    }
