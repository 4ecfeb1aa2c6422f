"""Files of sequences: CoNLL columns, CSV, Parquet, Feather, JSON lines, CRFsuite attributes.

`make_recipe` finds out how to read a file; `read_file` reads all of it, `stream_file` reads a file
of any length in bounded memory, and `open_writer` writes its rows with additional columns.
"""

from hedgerow.files.batch import Batch
from hedgerow.files.errors import FileError, display_name
from hedgerow.files.parquet_sets import count_rows, read_parquet_files
from hedgerow.files.reading import read_file, stream_file
from hedgerow.files.recipe import Recipe
from hedgerow.files.sniff import adapt_recipe, make_recipe
from hedgerow.files.template import Template
from hedgerow.files.writing import Writer, open_writer

__all__ = [
    "Batch",
    "FileError",
    "Recipe",
    "Template",
    "Writer",
    "adapt_recipe",
    "count_rows",
    "display_name",
    "make_recipe",
    "open_writer",
    "read_file",
    "read_parquet_files",
    "stream_file",
]
