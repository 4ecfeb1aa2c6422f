"""Trees of some rounds, for the page to draw."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.potentials import NodeTrees
from hedgerow.report.blob import Blob, smallest
from hedgerow.tree_crf import TreeCRF
from hedgerow.trees.forest import tree_rounds

# Maximum number of nodes in a page.
MAX_NODES = 60_000


def pack_trees(model: TreeCRF, blob: Blob, notes: list[str]) -> dict[str, Any] | None:
    """The trees of as many rounds as fit, evenly spaced; None if there are none."""
    forest = model.model_.potential(NodeTrees).forest
    sizes = np.diff(forest.tree_offsets[forest.round_offsets])  # in nodes, by round
    if not len(sizes):
        return None
    rounds = _choose_rounds(sizes)
    if len(rounds) < len(sizes):
        notes.append(f"The page has the trees of {len(rounds):,} of {len(sizes):,} rounds.")
    tables = [model.trees(round=number) for number in rounds]
    table = {name: np.concatenate([part[name] for part in tables]) for name in tables[0]}
    is_root = table["node"] == 0
    chosen = np.isin(tree_rounds(forest) + 1, rounds)
    questions, asked = np.unique(table["question"].astype(np.str_), return_inverse=True)
    looks_away = (table["offset"] != 0) | (table.get("ancestor", 0) != 0)
    columns = {
        "question": smallest(asked, len(questions)),
        "left": np.maximum(table["left"], 0).astype(np.uint16),
        "right": np.maximum(table["right"], 0).astype(np.uint16),
        "missing": _number(table["missing"], ("right", "left", "both")),
        # Only features at other positions can be beyond the ends.
        "outside": _number(np.where(looks_away, table["outside"], ""), ("right", "left")),
        **{name: table[name].astype(np.float32) for name in ("value", "gain", "weight")},
    }
    return {
        "rounds": rounds,
        "tree_round": blob.add((tree_rounds(forest)[chosen] + 1).astype(np.uint32)),
        "tree_label": blob.add(smallest(forest.outputs[chosen], forest.n_outputs)),
        "begins": blob.add(np.append(np.flatnonzero(is_root), len(is_root)).astype(np.uint32)),
        "questions": blob.add_text(questions.tolist()),
        **{name: blob.add(column) for name, column in columns.items()},
    }


def _number(ways: NDArray[Any], known: tuple[str, ...]) -> NDArray[np.uint8]:
    """Index of each direction among the known ones; others share the next index."""
    numbers = np.full(len(ways), len(known), np.uint8)
    for number, way in enumerate(known):
        numbers[ways == way] = number
    return numbers


def _choose_rounds(sizes: NDArray[np.int64]) -> list[int]:
    """Numbers of rounds, from 1, including the first and the last, with about `MAX_NODES` nodes."""
    n_rounds = len(sizes)
    most = max(1, int(MAX_NODES / sizes.mean()))
    if most >= n_rounds:
        return list(range(1, n_rounds + 1))
    spread = np.rint(np.linspace(1, n_rounds, most)).astype(np.int64)
    return np.unique(spread).tolist()  # type: ignore[no-any-return]
