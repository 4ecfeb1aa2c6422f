"""Model files: what is saved comes back, and what is damaged is refused in words."""

import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors

import hedgerow
from data import make_models
from hedgerow import LinearCRF
from reference.linear import to_dicts
from reference.model_files import FRAMES, ITEMS, X, Y

NUMBERS = [["abc".index(label) for label in labels] for labels in Y]
MODELS = {
    "arrays": (X, Y, {}),
    "flat array": (np.concatenate(X), np.concatenate(Y), {}),
    "dicts": (to_dicts(X), Y, {}),
    "items": (ITEMS, [["ä🙂" if label == "a" else label for label in labels] for labels in Y], {}),
    "frames": ([frame[["p", "q", "r"]] for frame in FRAMES], Y, {}),
    "text columns": (FRAMES, Y, {}),
    "int labels": (X, NUMBERS, {}),
    "uint8 labels": (X, [np.array(labels, np.uint8) for labels in NUMBERS], {}),
    "bool labels": (X, [[label == "a" for label in labels] for labels in Y], {}),
    "one label": (X, [["only"] * len(labels) for labels in Y], {"max_iter": 1, "tol": 0}),
    "edges": (X, Y, {"transition_attributes": True}),
    "edges of dicts": (ITEMS, Y, {"transition_attributes": True, "all_pairs": True}),
    "class_weight by text": (X, Y, {"class_weight": {"a": 2.0, "c": np.float64(0.5)}}),
    "class_weight by int": (X, NUMBERS, {"class_weight": {0: 2, np.int64(2): 0.5}}),
    "balanced": (X, Y, {"class_weight": "balanced"}),
    "other parameters": (X, Y, {"reg_alpha": np.float32(0.5), "n_jobs": 2, "random_state": 5}),
    "no attributes": ([[{}] * len(labels) for labels in Y], Y, {}),
}


def assert_same_model(loaded, model, X):
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.attributes_ == model.attributes_
    assert loaded.n_weights_ == model.n_weights_
    for table in ("weights", "transitions"):
        one, two = getattr(loaded, table)(), getattr(model, table)()
        assert one.keys() == two.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], two[name])


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_saved_comes_back(kind, tmp_path):
    X, y, parameters = MODELS[kind]
    crf = LinearCRF(**parameters).fit(X, y, eval_set=(X, y))
    path = tmp_path / "model.hedgerow"
    crf.save(path)
    loaded = hedgerow.load(path)
    assert_same_model(loaded, crf, X)
    assert (loaded.loss_, loaded.n_iter_, loaded.history_) == (crf.loss_, crf.n_iter_, crf.history_)
    assert loaded.get_params() == crf.get_params()
    for name in ("n_features_in_", "feature_names_in_"):
        assert hasattr(loaded, name) == hasattr(crf, name)
        np.testing.assert_array_equal(getattr(loaded, name, 0), getattr(crf, name, 0))
    for decode in ("viterbi", "marginal"):
        found, expected = loaded.predict(X, decode=decode), crf.predict(X, decode=decode)
        np.testing.assert_array_equal(np.hstack(found), np.hstack(expected))
    np.testing.assert_array_equal(loaded.log_likelihood(X, y), crf.log_likelihood(X, y))
    assert os.listdir(tmp_path) == ["model.hedgerow"]
    assert loaded.fit(X, y).loss_ == crf.loss_
    loaded.save(path)
    assert_same_model(hedgerow.load(path), loaded, X)


def test_parameters_come_back_as_plain_values(tmp_path):
    crf = LinearCRF(class_weight={np.int64(1): np.float32(2)}, n_jobs=np.int64(1)).fit(X, NUMBERS)
    crf.save(tmp_path / "model")
    loaded = hedgerow.load(tmp_path / "model")
    assert type(loaded.n_jobs) is int
    assert {type(part) for part in next(iter(loaded.class_weight.items()))} == {int, float}


def test_what_cannot_be_saved_of_the_parameters_is_left_out(tmp_path):
    crf = LinearCRF(random_state=np.random.RandomState(0)).fit(X, Y)
    crf.save(tmp_path / "model")
    assert hedgerow.load(tmp_path / "model").random_state is None


def test_every_way_to_load(model, data, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(data)
    with path.open("rb") as file:
        sources = [path, str(path), data, bytearray(data), memoryview(data), io.BytesIO(data), file]
        for source in sources:
            assert_same_model(hedgerow.load(source), model, ITEMS)


def test_every_way_to_save(model, data, tmp_path):
    model.save(tmp_path / "one")
    model.save(str(tmp_path / "two"))
    for name in ("one", "two"):
        assert_same_model(hedgerow.load(tmp_path / name), model, ITEMS)
        assert (tmp_path / name).stat().st_size == len(data)


def test_a_loaded_model_keeps_its_own_memory(data, tmp_path):
    buffer = bytearray(data)
    loaded = hedgerow.load(buffer)
    before = loaded.predict_proba(ITEMS)
    buffer[:] = bytes(len(buffer))
    np.testing.assert_array_equal(loaded.predict_proba(ITEMS), before)


def test_a_file_is_readable_without_hedgerow_and_holds_no_pickle(data):
    tensors = load_tensors(data)
    assert {array.dtype.kind for array in tensors.values()} <= {"f", "i", "u"}
    size = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + size])["__metadata__"]
    digest, _, text = metadata.pop("hedgerow").partition(" ")
    assert len(digest) == 64
    assert metadata == {}
    content = json.loads(text)
    assert (content["format"], content["model"]) == (1, "LinearCRF")
    for trace in (b"pickle", b"numpy", b"__reduce__", b"builtins", b"c__main__"):
        assert trace not in data


def test_equal_models_give_equal_files(model, data, tmp_path):
    for name in ("one", "two"):
        model.save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == data
    hedgerow.load(data).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == data


def test_files_of_older_versions_load():
    path = Path(__file__).parent / "data" / "linear_crf_format_1.hedgerow"
    loaded, fitted = hedgerow.load(path), make_models.linear_crf()
    assert loaded.get_params() == fitted.get_params()
    assert loaded.attributes_ == fitted.attributes_
    X, y = make_models.X, make_models.Y
    assert [labels.tolist() for labels in loaded.predict(X)] == y
    np.testing.assert_allclose(loaded.log_likelihood(X, y), fitted.log_likelihood(X, y), rtol=1e-6)


# Writing.


def test_saving_replaces_an_older_file(model, tmp_path):
    path = tmp_path / "model"
    path.write_text("something else")
    model.save(path)
    assert_same_model(hedgerow.load(path), model, ITEMS)
    assert os.listdir(tmp_path) == ["model"]


def test_a_save_that_fails_leaves_the_old_file(model, data, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(data)
    other = LinearCRF().fit(X, Y)
    other.tol = float("nan")
    with pytest.raises(ValueError, match="not JSON compliant"):
        other.save(path)
    assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["model"]


def test_a_save_to_nowhere_leaves_nothing(model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        model.save(tmp_path / "missing" / "model")
    assert os.listdir(tmp_path) == []


def test_a_save_onto_a_folder_leaves_nothing_behind(model, tmp_path):
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="folder"):
        model.save(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]
