"""Damaged, foreign or inconsistent model files are refused with a clear error."""

import io
import json

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors

import hedgerow
from hedgerow import LinearCRF, ModelFileError, TreeCRF, persist
from reference.estimators import ESTIMATORS, small
from reference.model_files import (
    FRAMES,
    FULL,
    INVALID,
    Y,
    alter,
    file_of,
    mutants,
    put_together,
    refuses_file,
    take_apart,
)
from reference.trainings import saved


@pytest.fixture(scope="module")
def data(estimator):
    return file_of(estimator)


def test_messages_name_the_file(tmp_path):
    path = tmp_path / "broken"
    path.write_bytes(b"")
    message = "the file is empty; copy it again from an intact original, or train the model again"
    refuses_file(path, f"cannot load {str(path)!r}: {message}")
    with path.open("rb") as file:
        refuses_file(file, f"cannot load {str(path)!r}: {message}")
    refuses_file(b"", f"cannot load the model: {message}")
    refuses_file(io.BytesIO(), f"cannot load the model: {message}")
    assert issubclass(ModelFileError, ValueError)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        hedgerow.load(tmp_path / "missing")


def test_a_file_in_text_mode():
    with pytest.raises(
        TypeError, match="the model is not opened in binary mode; open it with mode"
    ):
        hedgerow.load(io.StringIO("text"))


def after_length(header):
    """The beginning of a file with this header."""
    return len(header).to_bytes(8, "little") + header


FOREIGN = "the file is not a hedgerow model file{}; pass the path of a model file, "
OTHER = FOREIGN.format("")
DAMAGED = "the file is damaged: its {} not JSON; copy it again from an intact original"
MARK = b'{"__metadata__":{"hedgerow":"'
TENSORS = {"weight": np.zeros(3)}


@pytest.mark.parametrize(
    ("foreign", "message"),
    [
        (b"1234567", "the file is too short to be a model file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), OTHER),
        (b"PK\x03\x04" + bytes(100), FOREIGN.format(": it is a zip archive")),
        (
            b"\x80\x04\x95\x0f\x00\x00\x00\x00" + bytes(99),
            FOREIGN.format(": it looks like a pickle, which is read with pickle or joblib"),
        ),
        (b"\x1f\x8b\x08" + bytes(99), FOREIGN.format(": it is compressed with gzip")),
        (bytes(100), OTHER),
        (b"12345678", OTHER),
        (b"lCRF" + bytes(100), FOREIGN.format(": it is a CRFsuite model")),
        (b"{}".ljust(100), FOREIGN.format(": it looks like JSON")),
        (after_length(b"{}"), OTHER),
        (after_length(b"{]"), OTHER),
        (after_length(b'{"a":'), OTHER),
        (after_length(MARK), DAMAGED.format("header is")),
        (after_length(MARK)[:-1], "the file is truncated: it has 36 bytes, but should have more"),
        (after_length(b'{"__metadata__": 5} '), OTHER),
        (after_length(b'{"a":' + b"[" * 100_003), OTHER),
        (save_tensors(TENSORS), OTHER),
        (save_tensors(TENSORS, {"format": "pt"}), OTHER),
        (save_tensors(TENSORS, {"hedgerow": "00 no JSON"}), DAMAGED.format("metadata are")),
        (save_tensors(TENSORS, {"hedgerow": "00 [1]"}), DAMAGED.format("metadata are")),
    ],
    ids=range(20),
)
def test_foreign_files(foreign, message):
    refuses_file(foreign, message)


def test_every_truncated_file_is_refused(data):
    for length in (*range(0, len(data), 11), *range(len(data) - 99, len(data))):
        with pytest.raises(ModelFileError, match=r"truncated|too short|empty"):
            hedgerow.load(data[:length])
    refuses_file(
        data[:-5],
        f"the file is truncated: it has {len(data) - 5:,} bytes, but should have {len(data):,}; "
        "copy it again from an intact original, or train the model again",
    )


def test_more_bytes_than_there_should_be(data):
    refuses_file(data + b"\0", "the file is damaged: it has 1 byte too many; copy it again")


# Metadata.

NO_COLUMNS = {"kind": "items", "n_features": 0, "names": None, "text": []}


def labelled(dtype, *labels):
    return {"classes": {"dtype": dtype, "labels": [*labels]}}


# What is put in place of metadata, and the message.
METADATA = [
    ({"format": 0}, "its format is not a positive integer"),
    ({"format": None}, "its format is not a positive integer"),
    ({"format": "1"}, "its format is not a positive integer"),
    ({"format": True}, "its format is not a positive integer"),
    ({"decode": None}, "its decoder is not known"),
    ({"decode": "best"}, "its decoder is not known"),
    ({"decode": []}, "its decoder is not known"),
    ({"parameters": None}, "it has unknown parameters"),
    ({"parameters": {"depth": 3}}, "it has unknown parameters"),
    ({"parameters": {"start_labels": [{}]}}, "its parameters are not valid"),
    ({"parameters": {"objective": 1.0}}, "its parameters are not valid"),
    ({"parameters": {"class_weight": {}}}, "its parameters are not valid"),
    ({"parameters": {"class_weight": {"pairs": [], "x": 1}}}, "its parameters are not valid"),
    ({"parameters": {"class_weight": {"pairs": 5}}}, "its parameters are not valid"),
    ({"parameters": {"class_weight": {"pairs": [[1]]}}}, "its parameters are not valid"),
    ({"parameters": {"class_weight": {"pairs": [[[], 1]]}}}, "its parameters are not valid"),
    (
        {"parameters": {"class_weight": {"pairs": [["a", 1.0], ["a", 2.0]]}}},
        "a parameter has a key twice",
    ),
    ({"parameters": {"group_column": ["day"]}}, 'ValueError("group_column is'),
    ({"parameters": {"missing_label": [0]}}, "ValueError('missing_label is"),
    ({"parameters": {"decode": "best"}}, "ValueError(\"decode is 'best'; expected 'auto', "),
    ({"parameters": {"n_jobs": "all"}}, "ValueError(\"n_jobs is 'all';"),
    ({"parameters": {"objective": [np.nan]}}, "the number NaN is not finite"),
    ({"recipe": ["conll"]}, "its recipe is not valid"),
    *(
        (labels, "its labels are not valid")
        for labels in (
            *({"classes": None}, {"classes": {}}, {"classes": {"dtype": "<U1", "labels": "abc"}}),
            *(labelled("<i8", 0, True), labelled("a1", *"abc"), labelled(7, 0, 1, 2)),
            *(labelled("<U1", "a", "b", "long"), labelled("<U1"), labelled("<U1", *"bac")),
            *(labelled("<U1", *"abb"), labelled("<U1", "a", "b", 3), labelled("<U1", ["a"], ["b"])),
            *(labelled("<i8", *"abc"), labelled("|u1", 1, 2, 300), labelled("<i8", 1.5, 2.5, 3.5)),
            *(labelled("|O", *"abc"), labelled("<f8", 1.0, 2.0, 3.0), labelled("nonsense", "a")),
        )
    ),
    ({"schema": None}, "TypeError"),
    ({"schema": {"kind": "items"}}, "KeyError('n_features')"),
    *(
        ({"schema": {"n_features": number}}, "its number of columns is not valid")
        for number in (10**15, -1, True, 10**400)
    ),
    *(({"loss": loss}, "its loss is not a number") for loss in (None, "low", True, 10**400, 4)),
    ({"loss": np.nan}, "the number NaN is not finite"),
    *(
        ({"history": history}, "its history is not valid")
        for history in (5, [["loss", [1.0]]], {"loss": 1.0}, {"loss": ["low"]}, {"loss": [10**400]})
    ),
    ({"history": {"loss": [-np.inf]}}, "the number -Infinity"),
]
OWN_METADATA = {
    LinearCRF: [
        (
            {"schema": {**NO_COLUMNS, "n_features": 1}},
            "it lists columns, but its model has attributes",
        ),
        ({"schema": {**NO_COLUMNS, "names": []}}, "it lists columns, but its model has attributes"),
        *(({"n_iter": number}, "n_iter is not a valid number") for number in (None, -1, 10**400)),
        ({"n_iter": np.inf}, "the number Infinity"),
    ],
    TreeCRF: [
        *(
            ({"best_round": number}, "best_round is not a valid number")
            for number in ("first", [1], 10**400)
        ),
        ({"best_round": np.inf}, "the number Infinity"),
        *(
            ({"warm_rounds": number}, "warm_rounds is not a valid number")
            for number in ("some", -1)
        ),
        ({"warm_rounds": 10**9}, "it has more warm-up rounds than rounds"),
        ({"categories": None}, "its categories are not valid"),
        (labelled("<U3", "B-X", "I-X"), ""),
    ],
}
MISSING = {LinearCRF: ["n_iter"], TreeCRF: ["best_round", "warm_rounds", "sparse", "categories"]}


@pytest.mark.parametrize(
    ("estimator", "changes", "message"),
    [
        *((LinearCRF, *case) for case in (*METADATA, *OWN_METADATA[LinearCRF])),
        *((TreeCRF, *case) for case in OWN_METADATA[TreeCRF]),
    ],
)
def test_metadata_that_make_no_sense(estimator, changes, message):
    refuses_file(alter(file_of(estimator), **changes), INVALID + message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"format": 99},
            "it has format 99 and this version of hedgerow reads up to format 7; upgrade hedgerow",
        ),
        (
            {"model": "ForestCRF"},
            "it holds a 'ForestCRF', which this version of hedgerow does not know; upgrade",
        ),
        ({"model": None}, "it holds a 'None', which this version of hedgerow does not know"),
        ({"model": ["LinearCRF"]}, "which this version of hedgerow does not know"),
    ],
)
def test_files_of_newer_versions(data, changes, message):
    refuses_file(alter(data, **changes), message)


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (estimator, name)
        for estimator in ESTIMATORS
        for name in ("schema", "loss", "history", "classes", "parameters", *MISSING[estimator])
    ],
)
def test_metadata_that_are_missing(estimator, name):
    kind, state = take_apart(file_of(estimator))
    del state.metadata[name]
    content = {"format": persist.FORMAT, "model": kind, **state.metadata}
    refuses_file(put_together(state.tensors, content), INVALID)


def test_a_file_of_another_kind_of_model(data, estimator):
    (other,) = set(ESTIMATORS) - {estimator}
    refuses_file(alter(data, model=other.__name__), INVALID)


def test_numbers_that_no_float_can_hold(data):
    kind, state = take_apart(data)
    content = {"format": persist.FORMAT, "model": kind, **state.metadata, "loss": "LOSS"}
    text = json.dumps(content).replace('"LOSS"', "1e999")
    metadata = {"hedgerow": f"{persist._digest(text, state.tensors)} {text}"}
    refuses_file(save_tensors(state.tensors, metadata), f"{INVALID}the number 1e999")


@pytest.mark.parametrize(
    "changes",
    [
        {"n_features": 3},
        {"names": ["p", "q"]},
        {"names": ["p", "q", "r", 7]},
        {"names": ["p", "q", "r", []]},
        {"text": [7]},
        {"kind": "rows"},
    ],
)
def test_a_column_schema_that_contradicts_itself(tmp_path, changes):
    data = saved(small(LinearCRF).fit(FRAMES, Y), tmp_path)
    schema = take_apart(data)[1].metadata["schema"] | changes
    refuses_file(alter(data, schema=schema), f"{INVALID}its columns are not valid")


# Bytes.


def test_a_checksum_that_does_not_match(data):
    message = "the file is damaged: its checksum does not match"
    kind, state = take_apart(data)
    text = json.dumps({"format": persist.FORMAT, "model": kind, **state.metadata})
    refuses_file(save_tensors(state.tensors, {"hedgerow": f"{'0' * 64} {text}"}), message)
    flipped = bytearray(data)
    flipped[-1] ^= 1
    refuses_file(bytes(flipped), message)


def test_half_a_character_in_the_metadata(data):
    # JSON can name half of a surrogate pair, which no encoding can write.
    kind, state = take_apart(data)
    text = json.dumps({"model": kind, **state.metadata, "more": "\ud83d"}, ensure_ascii=False)
    header = json.dumps({"__metadata__": {"hedgerow": f"00 {text}"}}).encode()
    with pytest.raises(ModelFileError):
        hedgerow.load(after_length(header))


def usable(files):
    """The models of those files that can be loaded."""
    for file in files:
        try:
            yield hedgerow.load(file)
        except ModelFileError:
            continue


def test_damaged_files_are_refused_or_do_no_harm(data, estimator):
    X = FULL[estimator][1]
    expected, loaded = hedgerow.load(data).predict_proba(X), list(usable(mutants(data, 400)))
    assert len(loaded) < 20
    for model in loaded:
        np.testing.assert_array_equal(model.predict_proba(X), expected)


def signed_mutants(data, count):
    """Copies with a right checksum, some numbers or bytes of which are others."""
    rng = np.random.default_rng(1)
    kind, state = take_apart(data)
    names = sorted(state.tensors)
    odd = [-1, 0, 1, 2, 255, 256, -(2**31), 2**31 - 1, 2**62, -(2**62)]
    for number in range(count):
        tensors = dict(state.tensors)
        metadata = json.loads(json.dumps(state.metadata))
        for _ in range(int(rng.integers(1, 4))):
            name = names[int(rng.integers(len(names)))]
            array = tensors[name].copy()
            if not array.size:
                continue
            at = int(rng.integers(array.size))
            match number % 5:
                case 0:
                    array.view(np.uint8).ravel()[int(rng.integers(array.nbytes))] ^= 1 << int(
                        rng.integers(8)
                    )
                case 1:
                    value = odd[int(rng.integers(len(odd)))]
                    array.ravel()[at] = np.array(value).astype(array.dtype)
                case 2:
                    array = np.delete(array, at % len(array), axis=0)
                case 3:
                    array = np.repeat(array, rng.integers(1, 3, len(array)), axis=0)
                case 4:
                    array = rng.permuted(array, axis=0)
            tensors[name] = array
        yield put_together(tensors, {"format": persist.FORMAT, "model": kind, **metadata})


def test_files_that_pass_the_checksum_are_refused_or_can_be_used(data, estimator):
    loaded = list(usable(signed_mutants(data, 80)))
    assert 0 < len(loaded) < 56
    for model in loaded:
        try:
            marginals = model.predict_proba(FULL[estimator][1])
        except ValueError:  # constraints that leave no labelling
            continue
        assert np.isfinite(marginals).all()
        assert model.patterns()["weight"].ndim == 1
