"""Model files that are damaged, foreign or make no sense are refused in words."""

import io
import json
import re

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors

import hedgerow
from hedgerow import LinearCRF, ModelFileError, persist
from reference.model_files import FRAMES, ITEMS, Y, changed, mutants, put, put_together, take_apart


def refuses(source, message):
    with pytest.raises(ModelFileError, match=re.escape(message)):
        hedgerow.load(source)


def test_messages_name_the_file(data, tmp_path):
    path = tmp_path / "broken"
    path.write_bytes(b"")
    message = "the file is too short to be a model file"
    refuses(path, f"cannot load {str(path)!r}: {message}")
    with path.open("rb") as file:
        refuses(file, f"cannot load {str(path)!r}: {message}")
    refuses(b"", f"cannot load the model: {message}")
    refuses(io.BytesIO(), f"cannot load the model: {message}")
    assert issubclass(ModelFileError, ValueError)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        hedgerow.load(tmp_path / "missing")


def test_a_file_in_text_mode():
    with pytest.raises(
        TypeError, match="the model is not opened in binary mode; open it with mode"
    ):
        hedgerow.load(io.StringIO("text"))


@pytest.mark.parametrize(
    ("foreign", "message"),
    [
        (b"1234567", "the file is too short to be a model file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "the file is truncated, or not a hedgerow model file"),
        (b"PK\x03\x04" + bytes(100), "the file is truncated, or not a hedgerow model file"),
        (
            b"\x80\x04\x95\x0f\x00\x00\x00\x00" + bytes(99),
            "the file is truncated, or not a hedgerow",
        ),
        (bytes(100), "the file is truncated, or not a hedgerow model file"),
        (b"lCRF" + bytes(100), "the file is truncated, or not a hedgerow model file"),
        (b"{}".ljust(100), "the file is truncated, or not a hedgerow model file"),
        ((2).to_bytes(8, "little") + b"{}", "the file is not a hedgerow model file"),
        ((2).to_bytes(8, "little") + b"{]", "not a hedgerow model file, or its header is damaged"),
        (
            (5).to_bytes(8, "little") + b'{"a":',
            "not a hedgerow model file, or its header is damaged",
        ),
        (save_tensors({"weight": np.zeros(3)}), "the file is not a hedgerow model file"),
        (
            save_tensors({"weight": np.zeros(3)}, {"format": "pt"}),
            "the file is not a hedgerow model file",
        ),
        (
            save_tensors({"weight": np.zeros(3)}, {"hedgerow": "00 no JSON"}),
            "not a hedgerow model file, or its metadata are damaged",
        ),
        (
            save_tensors({"weight": np.zeros(3)}, {"hedgerow": "00 [1]"}),
            "not a hedgerow model file, or its metadata are damaged",
        ),
        (
            (20).to_bytes(8, "little") + b'{"__metadata__": 5} ',
            "the file is not a hedgerow model file",
        ),
        (
            (100_008).to_bytes(8, "little") + b'{"a":' + b"[" * 100_003,
            "not a hedgerow model file, or its header is damaged",
        ),
    ],
    ids=range(16),
)
def test_foreign_files(foreign, message):
    refuses(foreign, message)


def test_every_truncated_file_is_refused(data):
    for length in range(len(data)):
        with pytest.raises(ModelFileError, match=r"truncated|too short"):
            hedgerow.load(data[:length])


def test_more_bytes_than_there_should_be(data):
    refuses(data + b"\0", "the file is damaged or truncated")


NO_COLUMNS = {"kind": "items", "n_features": 0, "names": None, "text": []}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"format": 99},
            "it has format 99 and this version of hedgerow reads up to format 5; upgrade hedgerow",
        ),
        ({"format": 0}, "the file does not hold a valid model: its format"),
        ({"format": None}, "the file does not hold a valid model: its format"),
        ({"format": "1"}, "the file does not hold a valid model: its format"),
        ({"format": True}, "the file does not hold a valid model: its format"),
        ({"decode": None}, "the file does not hold a valid model: how it decodes"),
        ({"parameters": {"start_labels": [{}]}}, "does not hold a valid model: its parameters"),
        ({"parameters": {"objective": 1.0}}, "does not hold a valid model: its parameters"),
        (
            {"parameters": {"class_weight": {"pairs": [["a", 1.0], ["a", 2.0]]}}},
            "does not hold a valid model: a parameter has a key twice",
        ),
        ({"classes": {"dtype": "<i8", "labels": [0, True]}}, "a valid model: its labels"),
        (
            {"model": "ForestCRF"},
            "it holds a 'ForestCRF', which this version of hedgerow does not know; upgrade",
        ),
        ({"model": None}, "it holds a 'None', which this version of hedgerow does not know"),
        ({"model": ["LinearCRF"]}, "which this version of hedgerow does not know"),
        ({"parameters": None}, "the file does not hold a valid model: unknown parameters"),
        ({"parameters": {"depth": 3}}, "the file does not hold a valid model: unknown parameters"),
        ({"parameters": {"class_weight": {}}}, "does not hold a valid model: its parameters"),
        ({"parameters": {"class_weight": {"pairs": [], "x": 1}}}, "a valid model: its parameters"),
        ({"parameters": {"class_weight": {"pairs": 5}}}, "a valid model: its parameters"),
        ({"parameters": {"class_weight": {"pairs": [[1]]}}}, "a valid model: its parameters"),
        ({"parameters": {"class_weight": {"pairs": [[[], 1]]}}}, "a valid model: its parameters"),
        ({"recipe": ["conll"]}, "the file does not hold a valid model: its recipe"),
        ({"classes": None}, "the file does not hold a valid model: its labels"),
        ({"classes": {}}, "the file does not hold a valid model: its labels"),
        ({"loss": 4}, "does not hold a valid model: its loss"),
        ({"classes": {"dtype": "a1", "labels": ["a", "b", "c"]}}, "a valid model: its labels"),
        ({"classes": {"dtype": 7, "labels": [0, 1, 2]}}, "does not hold a valid model: its labels"),
        ({"classes": {"dtype": "<U1", "labels": ["a", "b", "long"]}}, "a valid model: its labels"),
        ({"classes": {"dtype": "<U1", "labels": []}}, "does not hold a valid model: its labels"),
        ({"classes": {"dtype": "<U1", "labels": "abc"}}, "a valid model: its labels"),
        ({"classes": {"dtype": "<U1", "labels": ["b", "a", "c"]}}, "a valid model: its labels"),
        ({"classes": {"dtype": "<U1", "labels": ["a", "b", "b"]}}, "a valid model: its labels"),
        ({"classes": {"dtype": "<U1", "labels": ["a", "b", 3]}}, "a valid model: its labels"),
        ({"classes": {"dtype": "<U1", "labels": [["a"], ["b"]]}}, "a valid model: its labels"),
        ({"classes": {"dtype": "<i8", "labels": ["a", "b", "c"]}}, "a valid model: its labels"),
        ({"classes": {"dtype": "|u1", "labels": [1, 2, 300]}}, "a valid model: its labels"),
        ({"classes": {"dtype": "<i8", "labels": [1.5, 2.5, 3.5]}}, "a valid model: its labels"),
        ({"classes": {"dtype": "|O", "labels": ["a", "b", "c"]}}, "a valid model: its labels"),
        ({"classes": {"dtype": "<f8", "labels": [1.0, 2.0, 3.0]}}, "a valid model: its labels"),
        ({"classes": {"dtype": "nonsense", "labels": ["a"]}}, "a valid model: its labels"),
        ({"schema": None}, "the file does not hold a valid model: TypeError"),
        ({"schema": {"kind": "items"}}, "not hold a valid model: KeyError('n_features')"),
        ({"schema": {"n_features": 10**15}}, "not hold a valid model: its number of columns"),
        ({"schema": {"n_features": -1}}, "not hold a valid model: its number of columns"),
        ({"schema": {"n_features": True}}, "not hold a valid model: its number of columns"),
        ({"schema": {"n_features": 10**400}}, "not hold a valid model: its number of columns"),
        ({"schema": {**NO_COLUMNS, "n_features": 1}}, "a valid model: columns of attributes"),
        ({"schema": {**NO_COLUMNS, "names": []}}, "a valid model: columns of attributes"),
        ({"parameters": {"group_column": ["day"]}}, 'a valid model: ValueError("group_column is'),
        ({"parameters": {"missing_label": [0]}}, "a valid model: ValueError('missing_label is"),
        ({"parameters": {"n_jobs": "all"}}, "a valid model: ValueError(\"n_jobs is 'all';"),
        ({"parameters": {"objective": [np.nan]}}, "not hold a valid model: the number NaN"),
        ({"loss": None}, "the file does not hold a valid model: its loss"),
        ({"loss": "low"}, "the file does not hold a valid model: its loss"),
        ({"loss": True}, "the file does not hold a valid model: its loss"),
        ({"loss": 10**400}, "the file does not hold a valid model: its loss"),
        ({"loss": np.nan}, "the file does not hold a valid model: the number NaN"),
        ({"decode": "best"}, "the file does not hold a valid model: how it decodes"),
        ({"decode": []}, "the file does not hold a valid model: how it decodes"),
        ({"n_iter": None}, "the file does not hold a valid model: its n iter"),
        ({"n_iter": np.inf}, "the file does not hold a valid model: the number Infinity"),
        ({"n_iter": -1}, "the file does not hold a valid model: its n iter"),
        ({"n_iter": 10**400}, "the file does not hold a valid model: its n iter"),
        ({"history": 5}, "the file does not hold a valid model: its history"),
        ({"history": [["loss", [1.0]]]}, "the file does not hold a valid model: its history"),
        ({"history": {"loss": 1.0}}, "the file does not hold a valid model: its history"),
        ({"history": {"loss": ["low"]}}, "the file does not hold a valid model: its history"),
        ({"history": {"loss": [10**400]}}, "the file does not hold a valid model: its history"),
        ({"history": {"loss": [-np.inf]}}, "not hold a valid model: the number -Infinity"),
    ],
    ids=repr,
)
def test_metadata_that_make_no_sense(data, changes, message):
    kind, state = take_apart(data)
    content = {"format": 3, "model": kind, **state.metadata, **changes}
    refuses(put_together(state.tensors, content), message)


@pytest.mark.parametrize("name", ["schema", "loss", "n_iter", "history", "classes", "parameters"])
def test_metadata_that_are_missing(data, name):
    kind, state = take_apart(data)
    content = {"format": 3, "model": kind, **state.metadata}
    del content[name]
    refuses(put_together(state.tensors, content), "the file does not hold a valid model: ")


def test_numbers_that_no_float_can_hold(data):
    kind, state = take_apart(data)
    content = {"format": 3, "model": kind, **state.metadata, "loss": "LOSS"}
    text = json.dumps(content).replace('"LOSS"', "1e999")
    digest = persist._digest(text, state.tensors)
    refuses(
        save_tensors(state.tensors, {"hedgerow": f"{digest} {text}"}),
        "the file does not hold a valid model: the number 1e999",
    )


def test_a_column_schema_that_contradicts_itself(tmp_path):
    LinearCRF().fit(FRAMES, Y).save(tmp_path / "model")
    kind, state = take_apart((tmp_path / "model").read_bytes())
    for changes in (
        {"n_features": 3},
        {"names": ["p", "q"]},
        {"names": ["p", "q", "r", 7]},
        {"names": ["p", "q", "r", []]},
        {"text": [7]},
        {"kind": "rows"},
    ):
        schema = {**state.metadata["schema"], **changes}
        content = {"format": 3, "model": kind, **state.metadata, "schema": schema}
        refuses(put_together(state.tensors, content), "does not hold a valid model: its columns")


ALL_TENSORS = [
    *["names.text", "names.offsets", "attributes.offsets", "attributes.labels"],
    *["attributes.weights", "labels.weights", "edges.pairs", "edges.weights"],
    *["patterns.offsets", "patterns.labels", "patterns.weights"],
    *["constraints.start", "constraints.end"],
]
# Offsets that fall, though the differences of neighbours, as 64-bit integers, do not.
WRAPPING = [5 * 10**18, -5 * 10**18]


def repeat_pattern(tensors):
    """Make the second pair the same as the first."""
    tensors["patterns.labels"] = put(slice(2, 4), tensors["patterns.labels"][:2])(
        tensors["patterns.labels"].copy()
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            (lambda tensors, name=name: tensors.pop(name), f"{name} is missing")
            for name in ALL_TENSORS
        ),
        *(
            (changed(name, lambda array: array.astype(np.int16)), f"{name} has the wrong type")
            for name in ALL_TENSORS
        ),
        *(
            (changed(name, lambda array: array[None]), f"{name} has the wrong type")
            for name in ALL_TENSORS
        ),
        *(
            (changed(name, lambda array: array[:-1]), f"{name} has the wrong shape")
            for name in ALL_TENSORS
            if name.endswith(".weights")
        ),
        *(
            (changed(name, put(0, np.nan)), f"{name} is not finite")
            for name in ALL_TENSORS
            if name.endswith(".weights")
        ),
        *(
            (changed(name, put(0, -1e200)), f"{name} is beyond all bounds")
            for name in ALL_TENSORS
            if name.endswith(".weights")
        ),
        *(
            (changed(name, put(-1, -np.inf)), f"{name} is not finite")
            for name in ALL_TENSORS
            if name.endswith(".weights")
        ),
        (changed("names.offsets", put(0, 1)), "attribute names (name offsets must run from 0"),
        (changed("names.offsets", put(-1, 5)), "attribute names (name offsets must run from 0"),
        (changed("names.offsets", put(1, 40)), "attribute names (name offsets must not fall"),
        (changed("names.offsets", put(1, -1)), "attribute names (name offsets must not fall"),
        (
            changed("names.offsets", lambda array: array[:0]),
            "attribute names (name offsets must run",
        ),
        (changed("names.text", put(0, 255)), "attribute names ('utf-8' codec can't decode"),
        (
            changed("names.offsets", lambda array: array[[0, 0, 0, *range(3, len(array))]]),
            "attribute names (a name occurs twice",
        ),
        (
            changed("attributes.offsets", lambda array: array[:-1]),
            "attributes.offsets does not fit the attribute names",
        ),
        (
            changed("edges.offsets", lambda array: array[1:]),
            "edges.offsets does not fit the attribute names",
        ),
        (changed("attributes.offsets", put(0, 1)), "attributes.offsets has wrong ends"),
        (changed("attributes.offsets", put(-1, 1000)), "attributes.offsets has wrong ends"),
        (
            changed("attributes.labels", lambda array: array[:-1]),
            "attributes.offsets has wrong ends",
        ),
        (changed("edges.offsets", put(-1, -1)), "edges.offsets has wrong ends"),
        (changed("attributes.offsets", put(1, 1000)), "attributes.offsets falls"),
        (changed("attributes.offsets", put(1, -1)), "attributes.offsets falls"),
        (changed("attributes.offsets", put(1, -(2**62))), "attributes.offsets falls"),
        (changed("edges.offsets", put(2, 1000)), "edges.offsets falls"),
        (changed("attributes.labels", put(0, -1)), "attributes.labels is out of range"),
        (changed("attributes.labels", put(2, 3)), "attributes.labels is out of range"),
        (changed("edges.pairs", put(-1, 9)), "edges.pairs is out of range"),
        (
            changed("attributes.labels", lambda array: array[::-1].copy()),
            "attributes.labels is not in order",
        ),
        (changed("attributes.labels", put(1, 0)), "attributes.labels is not in order"),
        (changed("edges.pairs", lambda array: array[::-1].copy()), "edges.pairs is not in order"),
        (changed("attributes.offsets", put(slice(1, 3), WRAPPING)), "attributes.offsets falls"),
        (changed("edges.offsets", put(slice(1, 3), WRAPPING)), "edges.offsets falls"),
        (changed("patterns.offsets", put(0, 1)), "patterns.offsets does not begin at 0"),
        (
            changed("patterns.offsets", lambda array: array[:0]),
            "patterns.offsets does not begin at 0",
        ),
        (changed("patterns.offsets", put(-1, 1000)), "patterns.offsets does not fit the patterns"),
        (
            changed("patterns.labels", lambda array: array[:-1]),
            "patterns.offsets does not fit the patterns",
        ),
        *(
            (changed("patterns.offsets", put(at, value)), "a pattern has fewer than two labels")
            for at, value in ((1, 1), (1, 0), (1, -1), (2, 1000), (slice(1, 3), WRAPPING))
        ),
        (changed("patterns.labels", put(0, -1)), "patterns.labels is out of range"),
        (changed("patterns.labels", put(-1, 3)), "patterns.labels is out of range"),
        (repeat_pattern, "a pattern occurs twice"),
        *(
            (changed("constraints.allowed", change), "constraints.allowed has the wrong type")
            for change in (lambda array: array[0], lambda array: array.astype(np.uint8))
        ),
        *(
            (changed(name, lambda array: array[:-1]), "the constraints have the wrong shape")
            for name in ("constraints.allowed", "constraints.start", "constraints.end")
        ),
        (
            changed("constraints.allowed", lambda array: array[:, :2]),
            "the constraints have the wrong shape",
        ),
    ],
)
def test_arrays_that_make_no_sense(data, tmp_path, change, message):
    kind, state = take_apart(data)
    change(state.tensors)
    persist.write(tmp_path / "model", kind, state)
    refuses(tmp_path / "model", f"the file does not hold a valid model: {message}")


def test_labels_and_arrays_of_different_number(data, tmp_path):
    kind, state = take_apart(data)
    state.metadata["classes"] = {"dtype": "<U1", "labels": ["a", "b", "c", "d"]}
    persist.write(tmp_path / "model", kind, state)
    refuses(tmp_path / "model", "the constraints have the wrong shape")
    for name in ("allowed", "start", "end"):
        del state.tensors[f"constraints.{name}"]
    persist.write(tmp_path / "model", kind, state)
    refuses(tmp_path / "model", "labels.weights has the wrong shape")


def test_offsets_that_wrap_around_where_labels_are_in_order(tmp_path):
    LinearCRF().fit([[{"p": 1}, {"q": 1}], [{"r": 1}]], [["a", "b"], ["c"]]).save(tmp_path / "m")
    kind, state = take_apart((tmp_path / "m").read_bytes())
    changed("attributes.offsets", put(slice(1, 3), WRAPPING))(state.tensors)
    persist.write(tmp_path / "m", kind, state)
    refuses(tmp_path / "m", "the file does not hold a valid model: attributes.offsets falls")


def test_constraints_that_leave_nothing_are_an_error_when_used(data, tmp_path):
    kind, state = take_apart(data)
    changed("constraints.start", put(slice(None), False))(state.tensors)
    persist.write(tmp_path / "model", kind, state)
    loaded = hedgerow.load(tmp_path / "model")
    with pytest.raises(ValueError, match=r"X\[0\], of length \d+, cannot be labelled"):
        loaded.predict(ITEMS)


def test_a_checksum_that_does_not_match(data):
    message = "the file is damaged: its checksum does not match"
    kind, state = take_apart(data)
    text = json.dumps({"format": 3, "model": kind, **state.metadata})
    refuses(save_tensors(state.tensors, {"hedgerow": f"{'0' * 64} {text}"}), message)
    flipped = bytearray(data)
    flipped[-1] ^= 1
    refuses(bytes(flipped), message)


def test_half_a_character_in_the_metadata(data):
    # JSON can name half of a surrogate pair, which no encoding can write.
    kind, state = take_apart(data)
    text = json.dumps(
        {"format": 3, "model": kind, **state.metadata, "more": "\ud83d"}, ensure_ascii=False
    )
    header = json.dumps({"__metadata__": {"hedgerow": f"00 {text}"}}).encode()
    with pytest.raises(ModelFileError):
        hedgerow.load(len(header).to_bytes(8, "little") + header)


def test_damaged_files_are_refused_or_do_no_harm(model, data):
    expected = model.predict_proba(ITEMS)
    n_refused = 0
    for mutant in mutants(data, 2000):
        try:
            loaded = hedgerow.load(mutant)
        except ModelFileError:
            n_refused += 1
        else:
            np.testing.assert_array_equal(loaded.predict_proba(ITEMS), expected)
    assert n_refused > 1900
