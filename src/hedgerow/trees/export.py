"""Export: trees as plain JSON values, with names of features, thresholds and categories.

docs/guides/json.md describes the schema.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from hedgerow.trees.columns import Columns, is_dense
from hedgerow.trees.forest import Forest, tree_rounds
from hedgerow.trees.places import PARENT
from hedgerow.trees.questions import Questions

__all__ = ["export_trees"]


def export_trees(forest: Forest, columns: Columns) -> dict[str, Any]:
    """The features that splits use, and the trees, one after another."""
    arrays = SimpleNamespace(**forest.arrays())  # a forest creates new views at each access
    asked = np.concatenate([arrays.columns[arrays.columns >= 0], arrays.surrogate_columns])
    used = np.unique(asked).tolist()
    numbers = {column: number for number, column in enumerate(used)}
    features, questions = _describe_features(columns), Questions(forest, columns)
    bounds, weights = arrays.tree_offsets.tolist(), arrays.tree_weights.tolist()
    rounds, labels = tree_rounds(forest).tolist(), arrays.outputs.tolist()
    trees = []
    for tree, weight in enumerate(weights):
        nodes = []
        for place in range(bounds[tree], bounds[tree + 1]):
            column = int(arrays.columns[place])
            split = {}
            if column >= 0:
                split = {"feature": numbers[column], **_describe_split(arrays, questions, place)}
                split |= _describe_missing(questions, place, numbers)
            nodes.append({**split, "value": weight * float(arrays.values[place])})
        trees.append({"round": rounds[tree] + 1, "label": labels[tree], "nodes": nodes})
    return {"features": [features[column] for column in used], "trees": trees}


def _describe_features(columns: Columns) -> list[dict[str, Any]]:
    """Description of the value of each of the C columns."""
    names = columns.column_names()
    kind = "attribute" if columns.sparse else "number"
    features: list[dict[str, Any]] = [{"name": name, "kind": kind} for name in names]
    schema = zip(columns.schema.column_names(), columns.schema.numeric, strict=True)
    text = [name for name, is_numeric in schema if not is_numeric]
    place = columns.n_numeric
    for known in filter(is_dense, columns.categories):
        features[place] |= {"kind": "category", "categories": known}
        place += 1
    for column, known in zip(text, columns.categories, strict=True):
        for category in () if is_dense(known) else known:
            features[place] |= {"kind": "indicator", "column": column, "category": category}
            place += 1
    labels = {"kind": "label", "categories": list(columns.labels)}
    return features + [{"name": name, **labels} for name in columns.asked_names()[len(names) :]]


def _describe_split(arrays: SimpleNamespace, questions: Questions, place: int) -> dict[str, Any]:
    """Description of a split and its children."""
    question, columns = questions.ask(place), questions.columns
    column, cut = int(arrays.columns[place]), int(arrays.cuts[place])
    if question.categories is not None:
        test: dict[str, Any] = {"in": list(question.categories)}
    elif 1 <= cut <= len(cuts := columns.cuts_of(column)):
        test = {"below": float(cuts[cut - 1])}
    else:
        test = {"present": "left" if cut else "right"}
    missing_left = question.missing_says_yes == question.yes_is_left
    outside_left = question.outside_says_yes == question.yes_is_left
    left = int(arrays.lefts[place])
    return {
        **_describe_place(int(arrays.offsets[place])),
        **test,
        "missing": "left" if missing_left else "right",
        "outside": "left" if outside_left else "right",
        "left": left,
        "right": left + 1,
        "gain": float(arrays.gains[place]),
    }


def _describe_place(offset: int) -> dict[str, int]:
    """Position of a feature: an offset, or an ancestor, 1 for the parent."""
    return {"offset": offset} if offset < PARENT else {"ancestor": offset - PARENT + 1}


def _describe_missing(questions: Questions, place: int, numbers: dict[int, int]) -> dict[str, Any]:
    """How else a split treats missing values; empty if they all go one way."""
    share, surrogates = questions.left_share(place), questions.surrogates(place)
    more: dict[str, Any] = {} if np.isnan(share) else {"missing": "both", "left_share": share}
    described: list[dict[str, Any]] = [
        {"feature": numbers[surrogate.column], **_describe_place(surrogate.offset)}
        | (
            {"below": surrogate.threshold, "side": "right" if surrogate.is_reversed else "left"}
            if surrogate.categories is None
            else {"in": list(surrogate.categories), "side": "left"}
        )
        for surrogate in surrogates
    ]
    return more | ({"surrogates": described} if described else {})
