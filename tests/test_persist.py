"""Model files: what is saved comes back, and what is damaged is refused in words."""

import hashlib
import io
import json
import os
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as load_tensors
from sklearn.base import clone

import hedgerow
from data import make_models
from hedgerow import LinearCRF
from hedgerow.objectives import Pointwise
from hedgerow.parameters import changed_parameters
from reference.linear import hide, to_dicts
from reference.model_files import CHUNKS, FRAMES, ITEMS, X, Y

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
    "wide labels": (X, [np.array(labels, "U9") for labels in Y], {}),
    "bool labels": (X, [[label == "a" for label in labels] for labels in Y], {}),
    "one label": (X, [["only"] * len(labels) for labels in Y], {"max_iter": 1, "tol": 0}),
    "edges": (X, Y, {"transition_attributes": True}),
    "edges by a prefix": (ITEMS, Y, {"transition_attributes": "nested"}),
    "edges of dicts": (ITEMS, Y, {"transition_attributes": True, "all_pairs": True}),
    "class_weight by text": (X, Y, {"class_weight": {"a": 2.0, "c": np.float64(0.5)}}),
    "class_weight by int": (X, NUMBERS, {"class_weight": {0: 2, np.int64(2): 0.5}}),
    "balanced": (X, Y, {"class_weight": "balanced"}),
    "other parameters": (X, Y, {"reg_alpha": np.float32(0.5), "n_jobs": 2, "random_state": 5}),
    "no attributes": ([[{}] * len(labels) for labels in Y], Y, {}),
    "order 0": (X, Y, {"order": 0}),
    "order 2": (X, Y, {"order": np.int64(2)}),
    "order 3 and edges": (ITEMS, Y, {"order": 3, "transition_attributes": True}),
    "rare patterns left out": (X, Y, {"order": 2, "min_pattern_count": 2}),
    "patterns of text": (X, Y, {"label_patterns": [("a", "b"), ("b", "c", "a")]}),
    "patterns of int": (X, NUMBERS, {"label_patterns": [[0, 1], (np.int64(2), 1, 0)]}),
    "an array of patterns": (X, Y, {"label_patterns": np.array([["a", "b"], ["c", "c"]])}),
    "a scheme": (X, CHUNKS, {"constraints": "BIO"}),
    "a scheme and order 2": (X, CHUNKS, {"constraints": "BIO", "order": 2}),
    "a scheme and edges": (ITEMS, CHUNKS, {"constraints": "BIO", "transition_attributes": True}),
    "forbidden": (X, CHUNKS, {"forbidden": [("O", "I-X")], "start_labels": {"O", "B-X"}}),
    "allowed": (
        X,
        [[label != "a" for label in labels] for labels in Y],
        {"allowed": ((True, True), (True, False), [False, True], [False, False])},
    ),
    "one label to begin with": (X, [[0] * len(y) for y in Y], {"start_labels": 0, "end_labels": 0}),
    "partial labels": (X, hide(Y), {}),
    "missing_label by text": (X, hide(Y, "?"), {"missing_label": "?", "order": 2}),
    "missing_label by int": (X, hide(NUMBERS, -1), {"missing_label": np.int64(-1)}),
}


def to_plain(value):
    """Parameters as they are in a file, where all that holds labels is a list, sets in order."""
    if isinstance(value, set):
        value = sorted(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        return [to_plain(item) for item in value]
    return value


def assert_same_model(loaded, model, X):
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.attributes_ == model.attributes_
    assert loaded.n_weights_ == model.n_weights_
    assert loaded.label_patterns_ == model.label_patterns_
    for table in ("weights", "transitions", "patterns"):
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
    expected = {name: to_plain(value) for name, value in crf.get_params().items()}
    assert loaded.get_params() == expected
    for name in ("n_features_in_", "feature_names_in_"):
        assert hasattr(loaded, name) == hasattr(crf, name)
        np.testing.assert_array_equal(getattr(loaded, name, 0), getattr(crf, name, 0))
    for decode in ("viterbi", "marginal"):
        found, expected = loaded.predict(X, decode=decode), crf.predict(X, decode=decode)
        np.testing.assert_array_equal(np.hstack(found), np.hstack(expected))
    np.testing.assert_array_equal(loaded.log_likelihood(X, y), crf.log_likelihood(X, y))
    for method, options in (
        ("predict", {"known": y}),
        ("predict_pattern_marginals", {}),
        ("sample", {"n": 3, "random_state": 0}),
    ):
        found, expected = getattr(loaded, method)(X, **options), getattr(crf, method)(X, **options)
        for one, two in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, two)
    for found, expected in zip(loaded.predict_k_best(X, 3), crf.predict_k_best(X, 3), strict=True):
        for (labels, log_prob), (same, value) in zip(found, expected, strict=True):
            assert (labels.tolist(), log_prob) == (same.tolist(), value)
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
    patterns = np.array([["a", "b"], ["c", "c"]])
    LinearCRF(label_patterns=patterns, start_labels={"a", "b", "c"}).fit(X, Y).save(
        tmp_path / "model"
    )
    loaded = hedgerow.load(tmp_path / "model")
    assert loaded.label_patterns == [["a", "b"], ["c", "c"]]
    assert {type(label) for pattern in loaded.label_patterns for label in pattern} == {str}
    assert sorted(loaded.start_labels) == ["a", "b", "c"]


def test_a_model_that_was_loaded_is_trained_as_the_one_that_was_saved(tmp_path):
    crf = LinearCRF(
        start_labels=pd.Series(["B-X", "O"]),
        end_labels=pd.Index(["B-X", "I-X", "O"]),
        forbidden={("O", "I-X"): 1}.keys(),
        label_patterns={("O", "O"), ("B-X", "I-X", "O"), ("B-X", "I-X")},
        class_weight=MappingProxyType({"O": 2, "B-X": 1}),
        reg_lambda=Fraction(1, 2),
    ).fit(X, CHUNKS)
    crf.save(tmp_path / "model")
    loaded = hedgerow.load(tmp_path / "model")
    assert changed_parameters(loaded) == {
        "start_labels": ["B-X", "O"],
        "end_labels": ["B-X", "I-X", "O"],
        "forbidden": [["O", "I-X"]],
        "label_patterns": [["B-X", "I-X"], ["B-X", "I-X", "O"], ["O", "O"]],
        "class_weight": {"B-X": 1, "O": 2},
        "reg_lambda": 0.5,
    }
    again = clone(loaded).fit(X, CHUNKS)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    for model in (crf, clone(loaded)):
        with pytest.raises(
            ValueError, match=r"y\[0\]\[0\] is 'I-X' at the beginning of a sequence"
        ):
            model.fit([X[0], *X], [["I-X", *CHUNKS[0][1:]], *CHUNKS])


def test_constraints_hold_in_a_loaded_model(tmp_path):
    LinearCRF(constraints="BIO", order=2).fit(X, CHUNKS).save(tmp_path / "model")
    loaded = hedgerow.load(tmp_path / "model")
    known = [["O", "I-X", None, None, None]]
    with pytest.raises(ValueError, match=r"known\[0\]\[1\] is 'I-X' after 'O', which .* forbids"):
        loaded.predict(X[:1], known=known)
    assert loaded.log_likelihood(X[1:2], [["I-X"]])[0] == -np.inf
    for labels in loaded.sample(X, 20, random_state=0):
        assert "I-X" not in labels[:, 0]


def test_what_cannot_be_saved_of_the_parameters_is_left_out(tmp_path):
    crf = LinearCRF(random_state=np.random.RandomState(0)).fit(X, Y)
    crf.save(tmp_path / "model")
    assert hedgerow.load(tmp_path / "model").random_state is None


def test_a_parameter_that_no_file_can_keep_is_told(tmp_path):
    crf = LinearCRF().fit(X, Y)
    crf.start_labels = ["a", object()]
    with pytest.raises(TypeError, match=r"^start_labels\[1\] is of type object; expected numbers"):
        crf.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_an_objective_that_was_not_saved_must_be_set_to_train_again(tmp_path):
    crf = LinearCRF(objective=Pointwise()).fit(X, Y)
    crf.save(tmp_path / "model")
    loaded = hedgerow.load(tmp_path / "model")
    assert loaded.objective is None
    message = r"has None if it was trained for an object, which no file keeps: set it again, set_pa"
    for model in (loaded, clone(loaded)):
        with pytest.raises(TypeError, match=message):
            model.fit(X, Y)
    assert loaded.set_params(objective=Pointwise()).fit(X, Y).loss_ == crf.loss_


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
    assert {array.dtype.kind for array in tensors.values()} <= set("fiub")
    size = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + size])["__metadata__"]
    digest, _, text = metadata.pop("hedgerow").partition(" ")
    assert len(digest) == 64
    assert metadata == {}
    content = json.loads(text)
    assert (content["format"], content["model"]) == (5, "LinearCRF")
    for trace in (b"pickle", b"numpy", b"__reduce__", b"builtins", b"c__main__"):
        assert trace not in data


def test_equal_models_give_equal_files(model, data, tmp_path):
    for name in ("one", "two"):
        model.save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == data
    hedgerow.load(data).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == data


KEPT = {
    "linear_crf_format_1": (
        "d22a126fd401dbbaada9a82f30d24fffe7cb7c8c95fbcbc27942043df27afeed",
        make_models.linear_crf_1,
        [["D", "A", "N"], ["N", "V"]],
        [-0.4380722977627034, -0.36170358949087067],
    ),
    "linear_crf_format_2": (
        "3d0448d889a55ffaa84d69032c553ed0454ad9d22f2ecff535eabd223e13889d",
        make_models.linear_crf_2,
        [["B-NP", "I-NP", "I-NP"], ["B-NP", "O"]],
        [-0.4961952082267693, -0.43863292949598254],
    ),
    "linear_crf_format_3": (
        "9eaf34262c3ecc1a75ffe06187f9663f3e9c256cad44a6f4038f15a98a636ac4",
        make_models.linear_crf_3,
        [["D", "A", "N"], ["N", "V"]],
        [-1.3735023845303955, -0.9675994399739067],
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_files_of_older_versions_load(name):
    digest, make, labels, log_likelihoods = KEPT[name]
    path = Path(__file__).parent / "data" / f"{name}.hedgerow"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    loaded, fitted, X = hedgerow.load(path), make(), make_models.X
    assert [found.tolist() for found in loaded.predict(X)] == labels
    np.testing.assert_allclose(loaded.log_likelihood(X, labels), log_likelihoods, rtol=1e-12)
    assert loaded.get_params() == {k: to_plain(v) for k, v in fitted.get_params().items()}
    assert loaded.attributes_ == fitted.attributes_
    assert loaded.label_patterns_ == fitted.label_patterns_
    assert loaded.decode_ == fitted.decode_
    found = fitted.log_likelihood(X, labels)
    np.testing.assert_allclose(found, log_likelihoods, rtol=1e-6)


def test_a_file_of_format_2_keeps_its_constraints():
    path = Path(__file__).parent / "data" / "linear_crf_format_2.hedgerow"
    loaded, X = hedgerow.load(path), make_models.X
    assert max(map(len, loaded.label_patterns_)) == 3
    for illegal in (["O", "I-NP"], ["O", "O"], ["I-NP", "O"]):
        assert loaded.log_likelihood(X[1:], [illegal])[0] == -np.inf
    assert loaded.log_likelihood(X, [["?"] * 3, ["?"] * 2]).tolist() == [0, 0]


def test_a_file_of_format_4_keeps_how_its_data_were_read():
    path = Path(__file__).parent / "data" / "linear_crf_format_4.hedgerow"
    digest = "53acb49d8ffa9d17ad1f390572e231704c3a084487baea1da153c6eecb68b181"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    loaded, fitted = hedgerow.load(path), make_models.linear_crf_4()
    assert loaded.recipe_ == fitted.recipe_ == {"format": "conll", "label": -1}
    assert loaded.transition_attributes == "B"
    assert {"", "B:old"} <= set(loaded.transitions()["attribute"])
    X, y = make_models.ITEMS[:1], make_models.ITEM_LABELS[:1]
    for model, rtol in ((loaded, 1e-12), (fitted, 1e-6)):
        np.testing.assert_allclose(model.log_likelihood(X, y), [-0.8531941061765266], rtol=rtol)


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


def test_a_recipe_comes_back_and_goes_with_the_next_training(tmp_path):
    crf = LinearCRF().fit(X, Y)
    crf.recipe_ = {"format": "conll", "features": [0, "pos"], "template": None}
    crf.save(tmp_path / "model")
    loaded = hedgerow.load(tmp_path / "model")
    assert loaded.recipe_ == crf.recipe_
    loaded.fit(X, Y).save(tmp_path / "model")
    assert not hasattr(hedgerow.load(tmp_path / "model"), "recipe_")


def test_a_history_that_is_not_finite_is_kept(tmp_path):
    crf = LinearCRF(max_iter=3, tol=0).fit([[["a"], ["b"]]], [["x", "y"]])
    crf.history_ = {"loss": [2.5, 1], "eval_loss": [np.inf, -np.inf, np.nan]}
    crf.save(tmp_path / "model")
    assert str(hedgerow.load(tmp_path / "model").history_) == str(
        {"loss": [2.5, 1], "eval_loss": [float("inf"), float("-inf"), float("nan")]}
    )
