"""Encoding of an X that must be like the one that a model is or was fitted on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

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
    name: str,
) -> Sequences:
    """Turn X into `Sequences` of this schema, without attributes that are not in the index.

    ``name`` is that of the model in messages. The other parameters are those of `encode`.
    """
    sequences = encode(X, groups, index, grow=False, group_column=group_column)
    check_schema(schema, sequences.schema, name)
    # Attributes have the names of the columns used to fit, also if X has none or others.
    return replace(sequences, schema=schema)
