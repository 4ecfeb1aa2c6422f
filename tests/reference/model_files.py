"""Models for tests of model files, and changes of their files."""

import json
import re
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

import hedgerow
from hedgerow import LinearCRF, ModelFileError, TreeCRF, persist
from hedgerow.state import State
from reference.estimators import small
from reference.linear import make_data
from reference.trainings import saved

X, Y = make_data()


def to_chunks(labels):
    """Labels of the scheme BIO: c is outside, a run of the others is a chunk."""
    chunks = []
    for label in labels:
        inside = chunks and chunks[-1] != "O"
        chunks.append("O" if label == "c" else "I-X" if inside else "B-X")
    return chunks


CHUNKS = list(map(to_chunks, Y))
FRAMES = [
    pd.DataFrame(x, columns=["p", "q", "r"]).assign(sign=np.where(x[:, 0] > 0, "plus", "minus"))
    for x in X
]
ITEMS = [
    [{"mot": "été", "n": value, "nested": {"🙂": ["a", "b"]}} for value in x[:, 0].tolist()]
    for x in X
]
WORDS = {"B-X": "begin", "I-X": "again", "O": "never"}
# For each estimator a model with everything that a file can contain, and its X.
FULL = {
    LinearCRF: (LinearCRF(transition_attributes=True, order=2, constraints="BIO"), ITEMS),
    TreeCRF: (
        small(TreeCRF, learning_rate=0.5, window=1, order=2, constraints="BIO", min_split_gain=0),
        [
            frame.assign(word=[WORDS[label] for label in labels])
            for frame, labels in zip(FRAMES, CHUNKS, strict=True)
        ],
    ),
}
INVALID = "the contents of the file are not valid: "


@cache
def file_of(estimator):
    """The bytes of the file of the model in `FULL`."""
    crf, X = FULL[estimator]
    with tempfile.TemporaryDirectory() as folder:
        return saved(crf.fit(X, CHUNKS), Path(folder))


def refuses_file(source, message):
    with pytest.raises(ModelFileError, match=re.escape(message)):
        hedgerow.load(source)


def take_apart(data):
    """The state of a saved model, without the keys that `persist.write` adds."""
    size = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + size])["__metadata__"]["hedgerow"]
    content = json.loads(metadata.partition(" ")[2])
    kind = content.pop("model")
    del content["format"]
    return kind, State(load_tensors(data), content)


def put_together(tensors, content):
    """A file with a valid checksum, whatever it contains."""
    text = json.dumps(content)
    return save_tensors(tensors, {"hedgerow": f"{persist._digest(text, tensors)} {text}"})


def alter(data, change=None, **metadata):
    """A file with a valid checksum, with changed arrays or metadata."""
    kind, state = take_apart(data)
    if change is not None:
        change(state.tensors)
    tensors = {name: np.ascontiguousarray(array) for name, array in state.tensors.items()}
    content = {"format": persist.FORMAT, "model": kind, **state.metadata, **metadata}
    return put_together(tensors, content)


def changed(name, change):
    def apply(tensors):
        tensors[name] = change(tensors[name].copy())

    return apply


def put(position, value):
    def change(array):
        array[position] = value
        return array

    return change


def mutants(data, count):
    """Damaged copies, each in one of six ways."""
    rng = np.random.default_rng(0)

    def place():
        return int(rng.integers(len(data)))

    for number in range(count):
        mutant, at = bytearray(data), place()
        size = int(rng.integers(1, 17))
        match number % 6:
            case 0:
                mutant[at] ^= 1 << int(rng.integers(8))
            case 1:
                for _ in range(size):
                    mutant[place()] = int(rng.integers(256))
            case 2:
                del mutant[at : at + size]
            case 3:
                mutant[at:at] = rng.bytes(size)
            case 4:
                del mutant[at:]
            case 5:
                other = place()
                mutant[at : at + size], mutant[other : other + size] = (
                    data[other : other + size],
                    data[at : at + size],
                )
        yield bytes(mutant)
