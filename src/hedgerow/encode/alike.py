"""Encoding of an X that must match the training data of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.encode.parents import GivenParents
from hedgerow.encode.reading import encode
from hedgerow.encode.schema import check_schema
from hedgerow.sequences import Schema, Sequences

if TYPE_CHECKING:
    from hedgerow._core import StringIndex


def encode_alike(
    X: Any,
    groups: Any,
    schema: Schema,
    index: StringIndex,
    *,
    group_column: str | int | None,
    parents: GivenParents | None = None,
    name: str,
    n_threads: int = 1,
) -> Sequences:
    """Turn X into `Sequences` of this schema, without attributes that are not in the index.

    Named columns may be in any order.

    ``name`` is the name of the model in messages. See `encode` for the other parameters.
    """
    given = encode(
        X,
        groups,
        index,
        grow=False,
        group_column=group_column,
        parents=parents,
        n_threads=n_threads,
    )
    sequences = _in_order(given, schema)
    check_schema(schema, sequences.schema, name)
    # Attributes have the names of the columns used in training, even if X has none or others.
    return replace(sequences, schema=schema)


def _in_order(sequences: Sequences, fitted: Schema) -> Sequences:
    """Columns in the order used in training, if they have the same names."""
    given, names = sequences.schema, fitted.names
    if given.names is None or names is None or given.names == names:
        return sequences
    if sorted(given.names) != sorted(names):
        return sequences  # `check_schema` raises an error
    place_of = {name: place for place, name in enumerate(given.names)}
    places = [place_of[name] for name in names]
    kinds = np.array(given.numeric)
    among_kind = np.where(kinds, np.cumsum(kinds), np.cumsum(~kinds)) - 1
    numbers = [int(among_kind[place]) for place in places if kinds[place]]
    texts = [int(among_kind[place]) for place in places if not kinds[place]]
    dense = sequences.dense
    return replace(
        sequences,
        schema=replace(given, names=names, numeric=tuple(bool(kinds[place]) for place in places)),
        dense=None if dense is None else np.ascontiguousarray(dense[:, numbers]),
        categorical=tuple(sequences.categorical[text] for text in texts),
    )
