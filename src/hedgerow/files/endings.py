"""File extensions: what the name of a file says about its format."""

from __future__ import annotations

import os
import re

from hedgerow.files.errors import Path
from hedgerow.files.recipe import Format

FORMAT_OF_ENDING: dict[str, Format] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".crfsuite": "crfsuite",
    ".conll": "conll",
    ".conllu": "conll",
}
# Extensions that files of a format may have, although they do not determine it.
ALSO: dict[Format, tuple[str, ...]] = {
    "csv": (".tsv", ".txt"),
    "jsonl": (".json",),
    "conll": (".txt", ".tsv"),
    "crfsuite": (".txt",),
    "facts": (".txt", ".tsv"),  # their output: labels only
}
# Extensions of other programs, for which no table or text is written.
FOREIGN_ENDINGS = (
    *(".xlsx", ".xls", ".xlsm", ".ods", ".doc", ".docx", ".pdf", ".html", ".htm", ".xml", ".yaml"),
    *(".json", ".pkl", ".pickle", ".joblib", ".npy", ".npz", ".mat", ".h5", ".hdf5", ".avro"),
    *(".orc", ".db", ".sqlite", ".onnx", ".hedgerow", ".safetensors"),
    *(".zip", ".7z", ".tar", ".tgz", ".bz2", ".xz", ".zst"),
)


def ending_of(path: Path) -> str:
    """The extension of a name, such as ``.csv``, in lower case; for ``a.csv.gz`` it is ``.csv``."""
    return os.path.splitext(re.sub(r"\.gz$", "", os.fspath(path), flags=re.IGNORECASE))[1].lower()


def format_of_name(path: Path) -> Format | None:
    """The format given by the name of a file, if any."""
    return FORMAT_OF_ENDING.get(ending_of(path))


def endings_of(format: Format) -> tuple[str, ...]:
    """Extensions of files with rows of this format."""
    own = (ending for ending, name in FORMAT_OF_ENDING.items() if name == format)
    return (*own, *ALSO.get(format, ()))


def may_hold(path: Path, format: Format) -> bool:
    """Whether a file of this name may contain rows of this format.

    Tables have one of a few extensions, or none. CoNLL columns and labels as text may also have an
    extension that no other format is known to use.
    """
    ending = ending_of(path)
    if not ending or ending in endings_of(format):
        return True
    is_taken = ending in FOREIGN_ENDINGS or ending in FORMAT_OF_ENDING
    return format in ("conll", "crfsuite", "facts") and not is_taken
