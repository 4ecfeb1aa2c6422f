"""The door: what users have becomes `Sequences`."""

from hedgerow.encode.categories import number_categories
from hedgerow.encode.door import encode
from hedgerow.encode.schema import check_schema

__all__ = ["check_schema", "encode", "number_categories"]
