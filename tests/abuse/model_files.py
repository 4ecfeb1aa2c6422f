"""Model files and checkpoints that were changed, with a valid checksum.

A changed file is refused with one of our errors, or it loads as changed: saved again it is the same
file, and every method of the model works. Nothing crashes, hangs or is silently dropped.
"""

import copy
import json
import math
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from safetensors.numpy import load as load_tensors

from abuse.kind import Case, Kind
from abuse.odd_values import check_worded
from abuse.training import Training
from abuse.trainings import trainings
from hedgerow import Checkpoint, LinearCRF, ModelFileError, TreeCRF, load
from reference.model_files import put_together

__all__ = ["KINDS"]

Content = dict[str, Any]
Tensors = dict[str, np.ndarray]

# Replacements of a value in the JSON part.
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3.5, 1e308, -0.0, 2**31, 2**63, -(2**63), 10**400, 10**8),
    *("", "x", "a", "0", "viterbi", "marginal", "\ud800", "\0", "x" * 1000),
    *([], [0], [None], ["a"], ["a", "b"], [[]], {}, {"": 0}, {"pairs": []}, {"pairs": [["a", 1]]}),
]
NUMBERS = [0, 1, -1, 2, 5, 127, 255, 2**15, 2**31 - 1, -(2**31), 2**62, -(2**62)]
FLOATS = [0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e300, -1e300, 1e5, 5e-324]
DTYPES = ["f8", "f4", "i8", "i4", "i2", "u1", "u8", "?"]


@st.composite
def changes(draw: st.DrawFn) -> list[Any]:
    place = st.integers(0, 10**4)
    json_change = st.one_of(
        st.tuples(st.just("replace"), place, st.integers(0, len(VALUES) - 1)),
        st.tuples(st.just("remove"), place, st.just(0)),
        st.tuples(st.just("add"), place, st.integers(0, len(VALUES) - 1)),
        st.tuples(st.just("copy"), place, place),
    )
    tensor_change = st.one_of(
        st.tuples(st.just("put"), place, place, st.integers(0, len(NUMBERS) - 1)),
        st.tuples(st.just("put"), place, place, st.integers(0, len(NUMBERS) - 1)),
        st.tuples(st.just("move"), place, place, place),
        st.tuples(st.just("dtype"), place, st.integers(0, len(DTYPES) - 1)),
        st.tuples(st.just("shorten"), place, st.integers(1, 3)),
        st.tuples(st.just("lengthen"), place, st.integers(1, 3)),
        st.tuples(st.just("reshape"), place),
        st.tuples(st.just("drop"), place),
        st.tuples(st.just("exchange"), place, place),
    )
    found = draw(st.lists(st.one_of(json_change, tensor_change), min_size=1, max_size=3))
    return [list(change) for change in found]


@st.composite
def file_cases(draw: st.DrawFn) -> Case:
    return {"training": draw(trainings(based=True)), "changes": draw(changes())}


def read_file(data: bytes) -> tuple[Content, Tensors]:
    """The JSON part of a file, with format and model, and its tensors."""
    size = int.from_bytes(data[:8], "little")
    text = json.loads(data[8 : 8 + size])["__metadata__"]["hedgerow"].partition(" ")[2]
    return json.loads(text), {name: array.copy() for name, array in load_tensors(data).items()}


def places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values in the JSON part, except for the root."""
    found = [path] if path else []
    if isinstance(content, dict):
        keys: Any = list(content)
    else:
        keys = range(len(content)) if isinstance(content, list) else ()
    return found + [place for key in keys for place in places(content[key], (*path, key))]


def change_json(content: Content, kind: str, place: int, value: int) -> None:
    """Change one value of the JSON part."""
    paths = places(content)
    path = paths[place % len(paths)]
    holder: Any = content
    for key in path[:-1]:
        holder = holder[key]
    if kind == "replace":
        holder[path[-1]] = copy.deepcopy(VALUES[value])
    elif kind == "remove":
        del holder[path[-1]]
    elif kind == "copy":
        source: Any = content
        for key in paths[value % len(paths)]:
            source = source[key]
        holder[path[-1]] = json.loads(json.dumps(source))
    elif isinstance(holder, dict):
        holder["added"] = copy.deepcopy(VALUES[value])
    else:
        holder.append(copy.deepcopy(VALUES[value]))


def change_tensors(tensors: Tensors, kind: str, place: int, *rest: int) -> None:
    """Change one tensor."""
    names = sorted(tensors)
    if not names:
        return
    name = names[place % len(names)]
    array = tensors[name]
    flat = array.reshape(-1)  # a view: arrays are contiguous
    if kind == "drop":
        del tensors[name]
    elif kind == "exchange":
        other = names[rest[0] % len(names)]
        tensors[name], tensors[other] = tensors[other], tensors[name]
    elif kind == "dtype":
        with np.errstate(all="ignore"):
            tensors[name] = array.astype(DTYPES[rest[0]])
    elif kind == "shorten":
        tensors[name] = array[: max(0, len(array) - rest[0])]
    elif kind == "lengthen":
        tensors[name] = np.concatenate([array, array[: rest[0]]])
    elif kind == "reshape":
        tensors[name] = array.reshape(1, *array.shape)
    elif kind == "move" and flat.size:
        flat[rest[0] % flat.size] = flat[rest[1] % flat.size]
    elif kind == "put" and flat.size:
        value = NUMBERS[rest[1]]
        if array.dtype.kind == "f":
            value = FLOATS[rest[1] % len(FLOATS)]
        with np.errstate(all="ignore"):
            flat[rest[0] % flat.size] = np.array(value).astype(array.dtype)


def change_file(data: bytes, changes: list[list[Any]]) -> tuple[bytes, Content, Tensors]:
    """The changed file, and its contents."""
    content, tensors = read_file(data)
    for kind, *rest in changes:
        if kind in ("replace", "remove", "add", "copy"):
            change_json(content, kind, *rest)
        else:
            change_tensors(tensors, kind, *rest)
    tensors = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return put_together(tensors, content), content, tensors


def check_model(case: Case) -> None:
    """Load a changed model file; if it loads, it has the contents of the file, and works."""
    training = Training.of(case["training"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        training.fit().save(path)
        data, content, tensors = change_file(path.read_bytes(), case["changes"])
        try:
            model = load(data)
        except ModelFileError as error:
            check_worded(error)
            return
        use(model, training)
        model.save(path)
        check_same(path.read_bytes(), content, tensors)


def check_same(data: bytes, content: Content, tensors: Tensors) -> None:
    """Saved again, an accepted file is the same: nothing in it was ignored.

    Exceptions are differences between versions: keys that this one does not know, parameters that
    an older one did not have, of the model and of its base, older formats, which are saved as the
    newest, and strings that are wider than any label.
    """
    found, arrays = read_file(data)
    if content["format"] != found["format"]:
        return
    if content["classes"]["dtype"][1] == "U":
        content["classes"]["dtype"] = found["classes"]["dtype"]
    drop_defaults(found, content)
    assert json.dumps(known(found), sort_keys=True) == json.dumps(known(content), sort_keys=True)
    assert sorted(arrays) == sorted(tensors)
    for name, array in arrays.items():
        assert array.dtype == tensors[name].dtype, name
        assert array.shape == tensors[name].shape, name
        assert array.tobytes() == tensors[name].tobytes(), name


def drop_defaults(found: Content, content: Content) -> None:
    """Drop parameters that are not in the file, from a model and from its base."""
    found["parameters"] = {key: found["parameters"][key] for key in content["parameters"]}
    if "base" in content:
        drop_defaults(found["base"], content["base"])


def known(content: Any) -> Any:
    """Without keys that were added; the pairs of a dict have no order."""
    if isinstance(content, list):
        return [known(item) for item in content]
    if not isinstance(content, dict):
        return content
    if set(content) == {"pairs"} and isinstance(content["pairs"], list):
        return sorted(content["pairs"], key=json.dumps)
    return {key: known(item) for key, item in content.items() if key != "added"}


def use(model: LinearCRF | TreeCRF, training: Training) -> None:
    """Every method works, or raises one of our errors."""
    X, y, groups = training.X, training.y, training.ask_parameters
    sequence = training.sequences()[0][0]
    calls = [
        lambda: model.predict(X, **groups),
        lambda: model.predict_marginals(X, **groups),
        lambda: model.predict_k_best(X, 2, **groups),
        lambda: model.sample(X, 1, random_state=0, **groups),
        lambda: model.log_likelihood(X, y, **groups),
        lambda: model.explain(sequence, 0),
        model.patterns,
        model.transition_weights,
        model.weights if isinstance(model, LinearCRF) else model.trees,
        lambda: repr(model),
    ]
    for call in calls:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                call()
        except (ValueError, TypeError) as error:
            check_worded(error)


def check_checkpoint(case: Case) -> None:
    """Resume from a changed checkpoint: it is refused, or training ends with a complete model."""
    training = Training.of(case["training"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint")
        training.fit(Checkpoint(path, every=3))
        path.write_bytes(change_file(path.read_bytes(), case["changes"])[0])
        more = {}
        if (
            case["training"]["parameters"]["objective"] == "likelihood"
        ):  # otherwise training is complete
            linear = case["training"]["estimator"] == "LinearCRF"
            name = "max_iter" if linear else "n_rounds"
            more[name] = case["training"]["parameters"][name] + 2
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                model = training.fit(Checkpoint(path, every=3), **more)
        except ValueError as error:
            check_worded(error)
            return
        use(model, training)
        model.save(Path(folder, "model"))
        load(Path(folder, "model"))


KINDS = [
    Kind("files-models", file_cases(), check_model, in_suite=20, share=2.0),
    Kind("files-checkpoints", file_cases(), check_checkpoint, in_suite=15, share=1.5),
]
