"""Table: the trees of a model, one row per node, with names and values of the user's data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.counting import count_of
from hedgerow.parameters import check_number
from hedgerow.tables import Table
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest, tree_rounds
from hedgerow.trees.places import PARENT, name_places
from hedgerow.trees.questions import Question, Questions

__all__ = ["tree_table", "trees_of_round"]


def trees_of_round(forest: Forest, round: int | None) -> NDArray[np.int64]:
    """Numbers of the trees of ``round``, which is counted from 1; None: of all rounds."""
    if round is None:
        return np.arange(forest.n_trees)
    check_number("round", round, minimum=1, integer=True)
    if round > forest.n_rounds:
        raise ValueError(
            f"round is {round}, but the model has {count_of(forest.n_rounds, 'round')}; expected "
            f"an integer from 1 to {forest.n_rounds}"
        )
    return np.flatnonzero(tree_rounds(forest) == round - 1)


def tree_table(
    forest: Forest, columns: Columns, classes: NDArray[Any], trees: NDArray[np.int64]
) -> Table:
    """The nodes of some trees, given by their numbers, one tree after another.

    See `hedgerow.TreeCRF.trees` for the columns.
    """
    sizes = np.diff(forest.tree_offsets)[trees]
    firsts = np.repeat(forest.tree_offsets[:-1][trees], sizes)
    ends = np.cumsum(sizes)
    nodes = np.arange(sizes.sum()) - np.repeat(ends - sizes, sizes)
    places = firsts + nodes
    owners = np.repeat(trees, sizes)
    is_split = forest.columns[places] >= 0
    questions = Questions(forest, columns)
    asked = [questions.ask(place) for place in places[is_split].tolist()]
    shares = [
        share if question.yes_is_left else 1 - share
        for share, question in zip(
            map(questions.left_share, places[is_split].tolist()), asked, strict=True
        )
    ]
    surrogates = [
        tuple(surrogate.texts[not question.yes_is_left] for surrogate in questions.surrogates(node))
        for node, question in zip(places[is_split].tolist(), asked, strict=True)
    ]
    names = np.array([*questions.names, ""], dtype=np.object_)  # -1, the column of leaves, is last
    lefts = forest.lefts[places].astype(np.int64)
    yes = lefts + _spread([not question.yes_is_left for question in asked], is_split, False)
    features, offsets = name_places(names[forest.columns[places]], forest.offsets[places])
    generations = np.maximum(forest.offsets[places] - PARENT + 1, 0)
    has_ancestors = bool((forest.offsets[forest.columns >= 0] >= PARENT).any())
    return Table(
        {
            "round": tree_rounds(forest)[owners] + 1,
            "label": classes[forest.outputs[owners]],
            "node": nodes,
            "feature": features,
            "offset": np.where(is_split, offsets, 0),
            **({"ancestor": np.where(is_split, generations, 0)} if has_ancestors else {}),
            "question": _spread([question.text for question in asked], is_split, ""),
            "threshold": _spread([question.threshold for question in asked], is_split, np.nan),
            "categories": _spread([question.categories for question in asked], is_split, None),
            "left": np.where(is_split, yes, -1),
            "right": np.where(is_split, 2 * lefts + 1 - yes, -1),
            "missing": _spread(_ways_of_missing(asked, shares), is_split, ""),
            "left_share": _spread(shares, is_split, np.nan),
            "surrogates": _spread(surrogates, is_split, ()),
            "outside": _spread([_way(q.outside_says_yes) for q in asked], is_split, ""),
            "value": forest.tree_weights[owners] * forest.values[places],
            "gain": np.where(is_split, forest.gains[places], 0).astype(np.float64),
            "weight": forest.weights[places].astype(np.float64),
        }
    )


def _ways_of_missing(asked: list[Question], shares: list[float]) -> list[str]:
    """Where missing values go at each split: to the left, to the right, or both ways."""
    return [
        _way(question.missing_says_yes) if np.isnan(share) else "both"
        for question, share in zip(asked, shares, strict=True)
    ]


def _way(says_yes: bool) -> str:
    return "left" if says_yes else "right"


def _spread(of_splits: list[Any], is_split: NDArray[np.bool_], of_leaves: Any) -> NDArray[Any]:
    """A column with the values of the splits, and the same value for every leaf."""
    dtype = type(of_leaves) if isinstance(of_leaves, bool | float) else np.object_
    column = np.fromiter((of_leaves for _ in is_split), dtype, len(is_split))
    column[is_split] = np.fromiter(of_splits, dtype, len(of_splits))
    return column
