"""State: the queries of a model or of a training run, in its file."""

from __future__ import annotations

import numpy as np

from hedgerow.relational.features import RelationalFeatures
from hedgerow.state import State, read_array

__all__ = ["pack_queries", "unpack_queries"]

NAME = "queries"


def pack_queries(queries: RelationalFeatures | None) -> State:
    """The queries as JSON, in an array, since it may be long; empty if there are no queries."""
    if queries is None:
        return State({}, {})
    return State({NAME: np.frombuffer(queries.to_bytes(), np.uint8)}, {})


def unpack_queries(state: State) -> RelationalFeatures | None:
    """Read what `pack_queries` wrote; raises ModelFileError."""
    if NAME not in state.tensors:
        return None
    return RelationalFeatures.from_bytes(read_array(state, NAME, np.uint8).tobytes())
