"""State: a grammar in a model file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.labels.constraints import Constraints
from hedgerow.labels.grammar import Grammar
from hedgerow.labels.patterns import Patterns
from hedgerow.state import State, read_array, require

# If a model has this key, edges are scores of label patterns, so label pairs that are not patterns
# need no arcs of their own.
EDGE_PATTERNS = "edges.patterns"


def pack_grammar(grammar: Grammar) -> dict[str, NDArray[Any]]:
    """Arrays of a model file."""
    tensors: dict[str, NDArray[Any]] = {
        "patterns.offsets": grammar.patterns.offsets,
        "patterns.labels": grammar.patterns.labels,
    }
    if grammar.constraints is not None:
        tensors["constraints.allowed"] = grammar.constraints.allowed
        tensors["constraints.start"] = grammar.constraints.start
        tensors["constraints.end"] = grammar.constraints.end
    return tensors


def unpack_grammar(state: State, n_labels: int, *, has_edges: bool = False) -> Grammar:
    """Read the output of `pack_grammar`, checking every array; raises ModelFileError.

    ``has_edges`` says whether something that is not in the file also scores label pairs.
    """
    if EDGE_PATTERNS not in state.tensors:
        has_edges |= any(name.startswith("edges.") for name in state.tensors)
    patterns, constraints = _patterns(state, n_labels), _constraints(state, n_labels)
    return Grammar(n_labels, patterns, constraints, has_edges)


def _patterns(state: State, n_labels: int) -> Patterns:
    if "pairs.weights" in state.tensors:  # format 1 had all pairs
        return Patterns.pairs(n_labels)
    offsets = read_array(state, "patterns.offsets", np.int64)
    labels = read_array(state, "patterns.labels", np.int32)
    require(len(offsets) and offsets[0] == 0, "patterns.offsets does not begin at 0")
    require(offsets[-1] == len(labels), "patterns.offsets does not fit the patterns")
    rises = (offsets[:-1] < offsets[1:]).all()  # otherwise differences could overflow
    require(rises and (np.diff(offsets) >= 2).all(), "a pattern has fewer than two labels")
    require(
        not len(labels) or (labels.min() >= 0 and labels.max() < n_labels),
        "patterns.labels is out of range",
    )
    patterns = Patterns(offsets, labels)
    require(len(set(patterns)) == len(patterns), "a pattern occurs twice")
    return patterns


def _constraints(state: State, n_labels: int) -> Constraints | None:
    if not any(name.startswith("constraints.") for name in state.tensors):
        return None
    allowed = read_array(state, "constraints.allowed", np.bool_, 2)
    start = read_array(state, "constraints.start", np.bool_)
    end = read_array(state, "constraints.end", np.bool_)
    fits = allowed.shape == (n_labels, n_labels) and start.shape == end.shape == (n_labels,)
    require(fits, "the constraints have the wrong shape")
    return Constraints(allowed, start, end)
