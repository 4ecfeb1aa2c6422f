"""State: the contents of model files and checkpoints, and readers that check every part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LARGEST_WEIGHT",
    "ModelFileError",
    "State",
    "expecting",
    "history_from_json",
    "history_to_json",
    "pack_base",
    "pack_history",
    "read_array",
    "read_count",
    "read_loss",
    "read_weights",
    "require",
    "unpack_base",
    "unpack_history",
]

# Values that JSON cannot represent.
NOT_FINITE = ("nan", "inf", "-inf")
# Prefix of the names of the arrays of a base model.
BASE = "base."
# Larger weights would make scores overflow, whatever the numbers of X.
LARGEST_WEIGHT = 1e150


class ModelFileError(ValueError):
    """A model file cannot be read: it is damaged, not a model file, or of a newer version."""


@dataclass(frozen=True, eq=False)
class State:
    """A model as arrays and JSON values."""

    tensors: dict[str, NDArray[Any]]
    metadata: dict[str, Any]

    def __or__(self, other: State) -> State:
        return State(self.tensors | other.tensors, self.metadata | other.metadata)


def require(holds: object, what: str) -> None:
    """Raise ModelFileError unless `holds`, a condition that every valid file meets."""
    if not holds:
        raise ModelFileError(f"the contents of the file are not valid: {what}")


@contextmanager
def expecting(what: str | None = None) -> Iterator[None]:
    """Turn errors about an invalid value into a ModelFileError that names it.

    Without `what` it says what the error was.
    """
    try:
        yield
    except ModelFileError:
        raise
    except (
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:
        raise ModelFileError(
            f"the contents of the file are not valid: {what or repr(error)}"
        ) from error


def read_array(
    state: State, name: str, dtype: type[np.generic], n_dimensions: int = 1
) -> NDArray[Any]:
    """One of the arrays; raises ModelFileError if it is missing or has another type."""
    array = state.tensors.get(name)
    require(array is not None, f"{name} is missing")
    assert array is not None
    require(array.dtype == dtype and array.ndim == n_dimensions, f"{name} has the wrong type")
    return array


def read_weights(state: State, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """An array of finite numbers; raises ModelFileError."""
    array = read_array(state, name, np.float64, len(shape))
    require(array.shape == shape, f"{name} has the wrong shape")
    require(np.isfinite(array).all(), f"{name} is not finite")
    require((np.abs(array) <= LARGEST_WEIGHT).all(), f"{name} is out of range")
    return array


def pack_base(kind: str, base: State) -> State:
    """A model of class `kind` as part of another one."""
    tensors = {f"{BASE}{name}": array for name, array in base.tensors.items()}
    return State(tensors, {"base": {"model": kind, **base.metadata}})


def unpack_base(state: State) -> tuple[str, State]:
    """Read the output of `pack_base`: the class of the model, and its state."""
    metadata = dict(state.metadata["base"])
    tensors = {
        name.removeprefix(BASE): array
        for name, array in state.tensors.items()
        if name.startswith(BASE)
    }
    return metadata.pop("model"), State(tensors, metadata | {"format": state.metadata["format"]})


def pack_history(history: Mapping[str, list[float]]) -> State:
    """History of unfinished training, which need not be finite."""
    figures = {f"history.{name}": np.array(history[name], np.float64) for name in history}
    return State(figures, {"history": list(history)})


def unpack_history(state: State) -> dict[str, list[float]]:
    """Read the output of `pack_history`."""
    with expecting("its history is not valid"):
        return {
            name: read_array(state, f"history.{name}", np.float64).tolist()
            for name in state.metadata["history"]
        }


def history_to_json(history: Mapping[str, list[float]]) -> dict[str, list[float | str]]:
    """History of finished training as JSON values; those that are not finite as text."""
    return {
        name: [figure if np.isfinite(figure) else str(float(figure)) for figure in figures]
        for name, figures in history.items()
    }


def history_from_json(metadata: dict[str, Any]) -> dict[str, list[float]]:
    """Read the output of `history_to_json` under "history"."""
    history = metadata.get("history")
    require(isinstance(history, dict), "its history is not valid")
    assert isinstance(history, dict)
    for figures in history.values():
        valid = isinstance(figures, list) and all(
            _is_number(figure) or figure in NOT_FINITE for figure in figures
        )
        require(valid, "its history is not valid")
    return {
        name: [float(figure) if isinstance(figure, str) else figure for figure in figures]
        for name, figures in history.items()
    }


def read_loss(metadata: dict[str, Any]) -> float:
    """The training loss of a model."""
    loss = metadata.get("loss")
    require(type(loss) is float, "its loss is not a number")
    assert isinstance(loss, float)
    return loss


def read_count(metadata: dict[str, Any], name: str) -> int:
    """A number of steps."""
    count = metadata.get(name)
    require(type(count) is int and 0 <= count < 2**63, f"{name} is not a valid number")
    assert isinstance(count, int)
    return count


def read_optional_count(metadata: dict[str, Any], name: str) -> int | None:
    """A number of steps, or None if there is none."""
    require(name in metadata, f"{name} is missing")
    return None if metadata[name] is None else read_count(metadata, name)


def _is_number(value: Any) -> bool:
    """Whether a JSON value is a float, or an integer that fits into 64 bits."""
    return type(value) is float or (type(value) is int and abs(value) < 2**63)
