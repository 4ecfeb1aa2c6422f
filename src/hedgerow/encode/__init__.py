"""Encoding: user input becomes `Sequences`."""

from hedgerow.encode.alike import encode_alike
from hedgerow.encode.categories import number_categories
from hedgerow.encode.group_column import check_group_column, has_group_column
from hedgerow.encode.items import find_occurrences, number_by_count, renumber_items, seen_items
from hedgerow.encode.joined_columns import check_same_schema, join_categories
from hedgerow.encode.parents import GivenParents
from hedgerow.encode.reading import encode
from hedgerow.encode.schema import check_schema

__all__ = [
    "GivenParents",
    "check_group_column",
    "check_same_schema",
    "check_schema",
    "encode",
    "encode_alike",
    "find_occurrences",
    "has_group_column",
    "join_categories",
    "number_by_count",
    "number_categories",
    "renumber_items",
    "seen_items",
]
