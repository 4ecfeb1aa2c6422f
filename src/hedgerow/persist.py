"""Model files: one safetensors file each, checked when read; never pickle.

Tensors and metadata are stored in the format of safetensors. The metadata contain one string,
``hedgerow``: a digest (SHA-256, in hexadecimal) of everything that follows, a space, and a JSON
object with the format version, the kind of model and everything that is not a tensor. Equal models
give equal files, byte for byte. Files of this format stay readable; a change that older versions
cannot read increases `FORMAT`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from hedgerow import _core
from hedgerow.atomic_write import open_atomic
from hedgerow.counting import count_of
from hedgerow.decoding import Decode
from hedgerow.parameters import is_object, plain_value
from hedgerow.sequences import MAX_FEATURES, Schema
from hedgerow.state import ModelFileError, State, expecting, read_array, require

# From format 5 on, each tree has its output, weight and round; from format 6 on, each split has a
# direction for positions beyond the ends of a sequence; from format 7 on, a model may be of
# tree-shaped graphs, with splits on ancestors, and may contain a base model.
FORMAT = 7
# Used in a checkpoint instead of a model's class.
CHECKPOINT = "Checkpoint"
# How every file continues after the 8 bytes with the size of its header.
MARK = b'{"__metadata__":{"hedgerow":"'
MAX_HEADER_SIZE = 100_000_000  # the limit of safetensors
# First bytes of files that are often mistaken for a model.
BEGINNINGS = {
    b"\x1f\x8b": "it is compressed with gzip",
    b"PK\x03\x04": "it is a zip archive",
    b"\x80": "it looks like a pickle, which is read with pickle or joblib",
    b"lCRF": "it is a CRFsuite model",
    b"{": "it looks like JSON",
}
# Text, integers and bools, of any size.
DTYPES_OF_LABELS = re.compile("[<>|][Uiub][0-9]{1,9}")


class DamagedFileError(ModelFileError):
    """The file was a model file, but is damaged."""


class ForeignFileError(ModelFileError):
    """The file is not a model file."""


def write(path: Path, kind: str, state: State) -> None:
    """Write a model of class `kind`, or a checkpoint, atomically."""
    text = json.dumps({"format": FORMAT, "model": kind, **state.metadata}, allow_nan=False)
    tensors = {name: np.ascontiguousarray(array) for name, array in state.tensors.items()}
    write_file(path, save_tensors(tensors, {"hedgerow": f"{_digest(text, tensors)} {text}"}))


def write_file(path: Path, data: bytes) -> None:
    """Write a file atomically: to a temporary file, which is then renamed."""
    with open_atomic(path) as file:
        file.write(data)


def read(data: bytes) -> tuple[str, State]:
    """Parse the bytes of a file that `write` wrote: its kind, and its state."""
    if b'"hedgerow-model"' in data[:40]:
        raise ForeignFileError("the file is a model as JSON, which hedgerow cannot load")
    header = _read_header(data)
    metadata = header.get("__metadata__", {})
    if not isinstance(metadata, dict) or not isinstance(metadata.get("hedgerow"), str):
        raise _foreign(data)
    digest, _, text = metadata["hedgerow"].partition(" ")
    content = _parse_json(text, DamagedFileError("the file is damaged: its metadata are not JSON"))
    version = content.get("format")
    if type(version) is not int or version < 1:  # True is an int too
        raise ModelFileError(
            "the contents of the file are not valid: its format is not a positive integer"
        )
    if version > FORMAT:
        raise ModelFileError(
            f"it has format {version} and this version of hedgerow reads up to format {FORMAT}; "
            "upgrade hedgerow"
        )
    try:
        tensors = load_tensors(data)
    except (SafetensorError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise _incomplete(data, header) from error
    if _digest(text, tensors) != digest:
        raise DamagedFileError("the file is damaged: its checksum does not match")
    return str(content.pop("model", None)), State(tensors, content)


def pack_index(index: _core.StringIndex) -> dict[str, NDArray[Any]]:
    """Names of attributes as arrays."""
    text, offsets = index.to_arrays()
    return {"names.text": text, "names.offsets": offsets}


def unpack_index(state: State) -> _core.StringIndex:
    """Read the output of `pack_index`."""
    text = read_array(state, "names.text", np.uint8)
    offsets = read_array(state, "names.offsets", np.int64)
    try:
        return _core.StringIndex.from_arrays(text, offsets)
    except ValueError as error:
        raise ModelFileError(
            f"the contents of the file are not valid: its attribute names are not valid ({error})"
        ) from error


def pack_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values of parameters as JSON values; a dict becomes a list of pairs."""
    return {name: _pack_value(value) for name, value in parameters.items()}


def _pack_value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {"pairs": [[key, _pack_value(item)] for key, item in value.items()]}


def unpack_parameters(metadata: dict[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Read the output of `pack_parameters` under "parameters"."""
    packed = metadata.get("parameters")
    require(isinstance(packed, dict) and set(packed) <= set(known), "it has unknown parameters")
    assert isinstance(packed, dict)
    with expecting("its parameters are not valid"):
        parameters = {name: _unpack_value(value) for name, value in packed.items()}
        for name, value in parameters.items():  # otherwise they could not be saved again
            is_plain = not is_object(name, value) and _is_same(plain_value(name, value), value)
            require(is_plain, "its parameters are not valid")
    return parameters


def _unpack_value(value: Any) -> Any:
    return _read_pairs(**value) if isinstance(value, dict) else value


def _read_pairs(pairs: list[list[Any]]) -> dict[Any, Any]:
    found = {key: _unpack_value(item) for key, item in pairs}
    require(len(found) == len(pairs), "a parameter has a key twice")
    return found


def _is_same(first: Any, second: Any) -> bool:
    """Whether two values are the same in JSON, where 1, 1.0 and True are different."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def pack_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Labels as JSON values, and their dtype; strings are as wide as the longest label."""
    labels = classes.tolist()
    dtype = np.array(labels).dtype if classes.dtype.kind == "U" else classes.dtype
    return {"dtype": dtype.str, "labels": labels}


def unpack_classes(metadata: dict[str, Any]) -> NDArray[Any]:
    """Read the output of `pack_classes` under "classes"."""
    with expecting("its labels are not valid"):
        labels, name = metadata["classes"]["labels"], metadata["classes"]["dtype"]
        require(DTYPES_OF_LABELS.fullmatch(name), "its labels are not valid")
        dtype = np.dtype(name)
        # The labels determine the width of strings, so that a file cannot request excessive memory.
        classes = np.array(labels, dtype=np.str_ if dtype.kind == "U" else dtype)
        fits = classes.dtype.itemsize <= dtype.itemsize
        valid = fits and classes.ndim == 1 and _is_same(classes.tolist(), labels)
        rises = len(classes) and (classes[:-1] < classes[1:]).all()
        require(valid and rises, "its labels are not valid")
    return classes


def unpack_decode(metadata: dict[str, Any]) -> Decode:
    """The decoder of the model; up to format 2 it was always Viterbi."""
    decode: Any = "viterbi" if metadata["format"] <= 2 else metadata.get("decode")
    require(decode in ("viterbi", "marginal"), "its decoder is not known")
    found: Decode = decode
    return found


def unpack_schema(metadata: dict[str, Any]) -> Schema:
    """Read the output of `Schema.to_json` under "schema"."""
    with expecting():
        # Its columns are counted first, so that a file cannot request excessive memory.
        n_features = metadata["schema"]["n_features"]
        counted = type(n_features) is int and 0 <= n_features <= MAX_FEATURES
        require(counted, "its number of columns is not valid")
        schema = Schema.from_json(metadata["schema"])
        names = schema.names
        named = names is None or (len(names) == n_features and all(type(n) is str for n in names))
        is_same = named and _is_same(schema.to_json(), metadata["schema"])
        require(is_same, "its columns are not valid")
        no_columns = n_features == 0 and names is None
        require(
            no_columns or schema.kind == "columns", "it lists columns, but its model has attributes"
        )
    return schema


def _read_header(data: bytes) -> dict[str, Any]:
    """The header before the tensors; raises ModelFileError, which says what the file is."""
    if not data:
        raise DamagedFileError("the file is empty")
    if len(data) < 8:
        raise DamagedFileError("the file is too short to be a model file")
    begin, header_size = data[8 : 8 + len(MARK)], int.from_bytes(data[:8], "little")
    if header_size > len(data) - 8 or begin[:1] != b"{":
        if header_size <= MAX_HEADER_SIZE and MARK.startswith(begin):
            raise _truncated(data, f"more than {8 + header_size:,}")
        raise _foreign(data)
    damaged = DamagedFileError("the file is damaged: its header is not JSON")
    return _parse_json(data[8 : 8 + header_size], damaged if begin == MARK else _foreign(data))


def _incomplete(data: bytes, header: dict[str, Any]) -> ModelFileError:
    """Why the tensors of a file cannot be read."""
    ends = [8 + int.from_bytes(data[:8], "little")]
    with suppress(TypeError, KeyError, ValueError, IndexError):
        for name, tensor in header.items():
            if name != "__metadata__":
                ends.append(ends[0] + int(tensor["data_offsets"][1]))
    if len(data) < max(ends):
        return _truncated(data, f"{max(ends):,}")
    n_more = len(data) - max(ends)
    more = f": it has {count_of(n_more, 'byte')} too many" if n_more else ""
    return DamagedFileError(f"the file is damaged{more}")


def _truncated(data: bytes, expected: str) -> ModelFileError:
    return DamagedFileError(
        f"the file is truncated: it has {len(data):,} bytes, but should have {expected}"
    )


def _foreign(data: bytes) -> ModelFileError:
    what = next((what for begin, what in BEGINNINGS.items() if data.startswith(begin)), None)
    hint = "" if what is None else f": {what}"
    return ForeignFileError(f"the file is not a hedgerow model file{hint}")


def _parse_json(data: str | bytes, complaint: ModelFileError) -> dict[str, Any]:
    try:
        parsed = json.loads(data, parse_float=_read_float, parse_constant=_read_float)
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise complaint from error
    if not isinstance(parsed, dict):
        raise complaint
    return parsed


def _read_float(text: str) -> float:
    """A number in JSON; `write` never writes infinity or NaN."""
    number = float(text)
    require(math.isfinite(number), f"the number {text} is not finite")
    return number


def _digest(text: str, tensors: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(text.encode(errors="surrogatepass"))
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
