"""Loading: from a model file to an estimator."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from hedgerow.estimator import Estimator
from hedgerow.linear_crf import LinearCRF
from hedgerow.persist import CHECKPOINT, DamagedFileError, ForeignFileError, read
from hedgerow.state import ModelFileError
from hedgerow.tree_crf import TreeCRF

__all__ = ["load"]

WANTED = "; pass the path of a model file, as written by save() or the command 'hedgerow train'"
ESTIMATORS: dict[str, type[Estimator]] = {"LinearCRF": LinearCRF, "TreeCRF": TreeCRF}


def load(source: str | os.PathLike[str] | bytes | BinaryIO) -> Estimator:
    """Load a model that `save` wrote.

    Its parameters are plain values, except ``base`` and ``queries``. Other objects are not saved,
    and are None in a loaded model: ``callbacks``, ``objective`` and ``eval_metric`` unless they are
    names, and ``random_state`` unless it is a number.

    Parameters
    ----------
    source
        A path, the bytes of a file, or a file opened in binary mode.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ModelFileError
        The file is damaged, truncated, not a model file, or written by a newer version.
    """
    if isinstance(source, (str, os.PathLike)):
        name = repr(os.fspath(source))
        try:
            data = Path(source).read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(f"cannot load {name}: there is no such file{WANTED}") from None
    elif isinstance(source, (bytes, bytearray, memoryview)):
        data, name = bytes(source), "the model"
    elif not hasattr(source, "read"):
        raise TypeError(
            f"cannot load {source!r}; expected the path of a model file, its bytes, or a file "
            "opened in binary mode"
        )
    else:
        data = source.read()
        name = repr(source.name) if hasattr(source, "name") else "the model"
        if not isinstance(data, bytes):
            raise TypeError(f"{name} is not opened in binary mode; open it with mode 'rb'")
    try:
        kind, state = read(data)
        return _find_estimator(kind).from_state(state)
    except ModelFileError as error:
        raise ModelFileError(f"cannot load {name}: {error}{_advise(error)}") from error.__cause__


def _advise(error: ModelFileError) -> str:
    """What to do if a file cannot be read."""
    if isinstance(error, ForeignFileError):
        return WANTED
    if isinstance(error, DamagedFileError):
        return "; copy it again from an intact original, or train the model again"
    return ""


def _find_estimator(kind: str) -> type[Estimator]:
    if kind == CHECKPOINT:
        raise ModelFileError(
            "it is the checkpoint of a training run, not a model; pass it to fit to resume that "
            "run: fit(..., checkpoint=hedgerow.Checkpoint(path))"
        )
    if kind not in ESTIMATORS:
        raise ModelFileError(
            f"it holds a {kind!r}, which this version of hedgerow does not know; upgrade hedgerow"
        )
    return ESTIMATORS[kind]
