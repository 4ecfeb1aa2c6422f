"""Model files: saving and loading; damaged files are refused with a clear error."""

import hashlib
import io
import json
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as load_tensors
from scipy import sparse
from sklearn.base import clone

import hedgerow
from data import make_models
from hedgerow import LinearCRF, TreeCRF
from reference.estimators import (
    answers,
    assert_same,
    assert_same_model,
    assert_same_training,
    refuses,
    small,
)
from reference.linear import hide, to_dicts
from reference.model_files import CHUNKS, FRAMES, ITEMS, X, Y
from reference.trainings import saved

NUMBERS = [["abc".index(label) for label in labels] for labels in Y]
GAPS = [np.where(np.abs(x) < 0.3, np.nan, x) for x in X]
MANY = pd.DataFrame({"word": [f"w{n % 400}" for n in range(1200)], "n": np.arange(1200) % 5})
OF_BOTH = {
    "flat array": (np.concatenate(X), np.concatenate(Y), {}),
    "items": (ITEMS, [["ä🙂" if label == "a" else label for label in labels] for labels in Y], {}),
    "no attributes": ([[{}] * len(labels) for labels in Y], Y, {}),
    "sparse": ([sparse.csr_array(x) for x in X], Y, {}),
    "frames": ([frame[["p", "q", "r"]] for frame in FRAMES], Y, {}),
    "text columns": (FRAMES, Y, {}),
    "uint8 labels": (X, [np.array(labels, np.uint8) for labels in NUMBERS], {}),
    "wide labels": (X, [np.array(labels, "U9") for labels in Y], {}),
    "bool labels": (X, [[label == "a" for label in labels] for labels in Y], {}),
    "one label": (X, [["only"] * len(labels) for labels in Y], {}),
    "class_weight by int": (X, NUMBERS, {"class_weight": {0: 2, np.int64(2): 0.5}}),
    "balanced": (X, Y, {"class_weight": "balanced"}),
    "order 0": (X, Y, {"order": 0}),
    "rare patterns left out": (X, Y, {"order": 2, "min_pattern_count": 2}),
    "patterns of text": (X, Y, {"label_patterns": [("a", "b"), ("b", "c", "a")]}),
    "patterns of int": (X, NUMBERS, {"label_patterns": [[0, 1], (np.int64(2), 1, 0)]}),
    "an array of patterns": (X, Y, {"label_patterns": np.array([["a", "b"], ["c", "c"]])}),
    "a scheme and order 2": (ITEMS, CHUNKS, {"constraints": "BIO", "order": 2}),
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
# Labels, their patterns and constraints are kept in the same way by both.
OF_TREES = [
    *("flat array", "items", "no attributes", "sparse", "text columns", "class_weight by int"),
    *("order 0", "a scheme and order 2", "missing_label by text"),
]
OWN = {
    LinearCRF: {
        "edges": (X, Y, {"transition_attributes": True}),
        "edges by a prefix": (ITEMS, Y, {"transition_attributes": "nested"}),
        "edges of dicts": (ITEMS, Y, {"transition_attributes": True, "all_pairs": True}),
        "order 3 and edges": (ITEMS, Y, {"order": 3, "transition_attributes": True}),
        "attributes on patterns": (ITEMS, Y, {"order": 3, "pattern_attributes": "nested"}),
        "a scheme and attributes on patterns": (
            X,
            CHUNKS,
            {"constraints": "BIO", "pattern_attributes": True, "all_pairs": True},
        ),
        "a scheme and edges": (
            ITEMS,
            CHUNKS,
            {"constraints": "BIO", "transition_attributes": True},
        ),
        "other parameters": (X, Y, {"reg_alpha": np.float32(0.5), "n_jobs": 2, "random_state": 5}),
    },
    TreeCRF: {
        "missing values": (GAPS, Y, {"window": 1, "newton": False}),
        "dicts in a window": (to_dicts(X), Y, {"window": (0, 2)}),
        "many categories": (MANY, np.array(["even", "odd"])[np.arange(1200) % 2], {"order": 0}),
        "other parameters": (
            X,
            Y,
            {
                "learning_rate": np.float16(0.5),
                "max_depth": None,
                "max_leaves": np.int64(3),
                "subsample": 0.5,
                "stratified": np.True_,
                "random_state": 5,
                "early_stopping_rounds": 2,
            },
        ),
    },
}


def to_plain(value):
    """Parameters as they are in a file, where all that holds labels is a list, sets in order."""
    if isinstance(value, set):
        value = sorted(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        return [to_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.filterwarnings("ignore:y has a single label")
@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        *((LinearCRF, kind) for kind in (*OF_BOTH, *OWN[LinearCRF])),
        *((TreeCRF, kind) for kind in (*OF_TREES, *OWN[TreeCRF])),
    ],
)
def test_what_is_saved_comes_back(estimator, kind, tmp_path):
    X, y, parameters = (OF_BOTH | OWN[estimator])[kind]
    crf = small(estimator, **parameters).fit(X, y, eval_set=(X, y))
    data = saved(crf, tmp_path)
    assert os.listdir(tmp_path) == ["model"]
    loaded = hedgerow.load(data)
    assert_same_training(loaded, crf)
    assert loaded.get_params() == {name: to_plain(v) for name, v in crf.get_params().items()}
    for name in ("n_features_in_", "feature_names_in_"):
        assert hasattr(loaded, name) == hasattr(crf, name)
        np.testing.assert_array_equal(getattr(loaded, name, 0), getattr(crf, name, 0))
    for name in ("n_iter_", "n_weights_", "attributes_", "n_rounds_", "best_round_"):
        assert getattr(loaded, name, None) == getattr(crf, name, None)
    assert_same(
        [*answers(loaded, X), *answers(loaded, X, known=y), loaded.log_likelihood(X, y)],
        [*answers(crf, X), *answers(crf, X, known=y), crf.log_likelihood(X, y)],
    )
    assert saved(loaded, tmp_path) == data
    assert loaded.fit(X, y, eval_set=(X, y)).loss_ == crf.loss_


def test_a_loaded_model_reads_new_data_as_the_saved_one_did(make, estimator, tmp_path):
    crf = make().fit(FRAMES, Y)
    loaded = hedgerow.load(saved(crf, tmp_path))
    new = [frame.assign(sign="neither", p=0.5, q=1e9) for frame in FRAMES]
    np.testing.assert_array_equal(loaded.predict_proba(new), crf.predict_proba(new))
    if estimator is TreeCRF:
        gaps = [frame.assign(p=np.nan) for frame in FRAMES]
        np.testing.assert_array_equal(loaded.predict_proba(gaps), crf.predict_proba(gaps))
    message = f"column 'q' was numeric when {estimator.__name__} was fitted"
    text = [frame.astype({"q": str}) for frame in FRAMES]
    refuses(ValueError, message, loaded.predict, text)
    message = "X[0] has inf at position 0, column 'q'"
    refuses(ValueError, message, loaded.predict, [frame.assign(q=np.inf) for frame in FRAMES])


def test_constraints_hold_in_a_loaded_model(tmp_path):
    crf = LinearCRF(constraints="BIO", order=2).fit(X, CHUNKS)
    loaded = hedgerow.load(saved(crf, tmp_path))
    known = [["O", "I-X", None, None, None]]
    with pytest.raises(ValueError, match=r"known\[0\]\[1\] is 'I-X' after 'O', which .* forbids"):
        loaded.predict(X[:1], known=known)
    assert loaded.log_likelihood(X[1:2], [["I-X"]])[0] == -np.inf
    for labels in loaded.sample(X, 20, random_state=0):
        assert "I-X" not in labels[:, 0]


def test_what_cannot_be_saved_of_the_parameters_is_left_out(make, estimator, tmp_path):
    more = {"callbacks": [lambda now: None]} if estimator is TreeCRF else {}
    crf = make(random_state=np.random.RandomState(0), **more).fit(X, Y)
    loaded = hedgerow.load(saved(crf, tmp_path))
    assert loaded.random_state is None
    assert getattr(loaded, "callbacks", None) is None


def test_a_parameter_that_no_file_can_keep_is_told(tmp_path):
    crf = LinearCRF().fit(X, Y)
    crf.start_labels = ["a", object()]
    with pytest.raises(TypeError, match=r"^start_labels\[1\] is of type object; expected numbers"):
        crf.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_every_way_to_load(model, data, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(data)
    with path.open("rb") as file:
        sources = [path, str(path), data, bytearray(data), memoryview(data), io.BytesIO(data), file]
        for source in sources:
            assert_same_model(hedgerow.load(source), model)


def test_every_way_to_save(model, data, tmp_path):
    (tmp_path / "two").write_text("something else")  # which is replaced
    model.save(tmp_path / "one")
    model.save(str(tmp_path / "two"))
    for name in ("one", "two"):
        assert_same_model(hedgerow.load(tmp_path / name), model)
        assert (tmp_path / name).stat().st_size == len(data)
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


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
    assert (content["format"], content["model"]) == (7, "LinearCRF")
    for trace in (b"pickle", b"numpy", b"__reduce__", b"builtins", b"c__main__"):
        assert trace not in data


def test_equal_models_give_equal_files(make, tmp_path):
    one, two = (saved(make(random_state=1).fit(FRAMES, Y), tmp_path) for _ in range(2))
    assert one == two


# Kept files.

FOLDER = Path(__file__).parent / "data"
# Its digest, how it was made; what it says about which data.
KEPT = {
    "linear_crf_format_1": (
        "d22a126fd401dbbaada9a82f30d24fffe7cb7c8c95fbcbc27942043df27afeed",
        make_models.linear_crf_1,
        make_models.X,
        [["D", "A", "N"], ["N", "V"]],
        [-0.4380722977627034, -0.36170358949087067],
    ),
    "linear_crf_format_2": (
        "3d0448d889a55ffaa84d69032c553ed0454ad9d22f2ecff535eabd223e13889d",
        make_models.linear_crf_2,
        make_models.X,
        [["B-NP", "I-NP", "I-NP"], ["B-NP", "O"]],
        [-0.4961952082267693, -0.43863292949598254],
    ),
    "linear_crf_format_3": (
        "9eaf34262c3ecc1a75ffe06187f9663f3e9c256cad44a6f4038f15a98a636ac4",
        make_models.linear_crf_3,
        make_models.X,
        [["D", "A", "N"], ["N", "V"]],
        [-1.3735023845303955, -0.9675994399739067],
    ),
    "linear_crf_format_4": (
        "53acb49d8ffa9d17ad1f390572e231704c3a084487baea1da153c6eecb68b181",
        make_models.linear_crf_4,
        make_models.ITEMS[:1],
        make_models.ITEM_LABELS[:1],
        [-0.8531941061765266],
    ),
    "tree_crf_format_2": (
        "5bf3ff00e7cd9cb07f11d8ce041a7b14a54482ad5c95fa434971d123a6b1a76b",
        make_models.tree_crf_2,
        make_models.FRAMES,
        [["B-NP", "I-NP", "O"], ["B-NP", "O"]],
        [-0.5751879610066699, -0.7660556690460627],
    ),
    "tree_crf_format_3": (
        "34c7febf237b7a29be1f96c7268dd320aa678755d18f290620a6c04edc419e0f",
        make_models.tree_crf_3,
        make_models.FRAMES,
        make_models.Y,
        [-0.006871392356704198, -0.005261056898490939],
    ),
    "tree_crf_format_4": (
        "a209f116398c723e3ab596f8383f6d512f33146712a782f27a2df9409e9609fb",
        make_models.tree_crf_4,
        make_models.TABLE,
        ["D", "A", "N", "N", "V"],
        [-0.7434991728481871, -0.5394593497004556],
    ),
    "tree_crf_format_5": (
        "3e585e5020ca1879dc06d1c33937a31e412659d52e2d15d60769edea2ad4d560",
        make_models.tree_crf_5,
        make_models.FRAMES,
        make_models.Y,
        [-0.664148654109018, -0.6932440623726885],
    ),
    "tree_crf_format_6": (
        "5610fdbd6d51d319b2f1c227def1e7b73608ba738596c8a3f891b06fdea7a9fd",
        make_models.tree_crf_6,
        make_models.FRAMES,
        make_models.Y,
        [-0.9442962553854185, -0.6826022785543369],
    ),
    "tree_crf_format_7": (
        "77f5bebf4ea711041fc08b44cf6ec93b2247f5314528db660fce3506cd692022",
        make_models.tree_crf_7,
        make_models.HEADED,
        make_models.HEADED_LABELS,
        [-1.1836139131546437, -1.1803828376592214],
    ),
}


def load_kept(name):
    return hedgerow.load(FOLDER / f"{name}.hedgerow")


@pytest.mark.parametrize("name", KEPT)
def test_files_of_older_versions_load(name):
    digest, make, X, y, log_likelihoods = KEPT[name]
    data = (FOLDER / f"{name}.hedgerow").read_bytes()
    assert len(data) < 20_000
    assert hashlib.sha256(data).hexdigest() == digest
    loaded, fitted = hedgerow.load(data), make()
    if name != "tree_crf_format_5":  # its labels contradict each other
        assert np.hstack(loaded.predict(X)).tolist() == np.hstack(y).tolist()
    np.testing.assert_allclose(loaded.log_likelihood(X, y), log_likelihoods, rtol=1e-12)
    # It can be made again; steps of boosting were others then.
    if isinstance(loaded, LinearCRF):
        np.testing.assert_allclose(fitted.log_likelihood(X, y), log_likelihoods, rtol=1e-6)
    parameters = {name: to_plain(value) for name, value in fitted.get_params().items()}
    assert loaded.get_params() == parameters
    for name in ("label_patterns_", "decode_", "n_rounds_", "recipe_"):
        assert getattr(loaded, name, None) == getattr(fitted, name, None)
    names = [sorted(getattr(crf, "attributes_", [])) for crf in (loaded, fitted)]
    assert names[0] == names[1]  # which were in the order of their first position then


def test_files_of_format_2_keep_their_constraints():
    linear, trees = load_kept("linear_crf_format_2"), load_kept("tree_crf_format_2")
    X, frames = make_models.X[1:], make_models.FRAMES[1:]
    assert max(map(len, linear.label_patterns_)) == 3
    for illegal in (["O", "I-NP"], ["O", "O"], ["I-NP", "O"]):
        assert linear.log_likelihood(X, [illegal])[0] == -np.inf
    assert linear.log_likelihood(X, [["?"] * 2]).tolist() == [0]
    assert trees.log_likelihood(frames, [["O", "I-NP"]])[0] == -np.inf
    assert trees.label_patterns_[-1] == ("O", "B-NP", "O")
    assert trees.window == [1, 0]
    assert set(trees.importances()["offset"]) == {-1, 0}
    assert set(trees.importances()["feature"]) == {"size", "word"}


def test_a_file_of_format_3_remembers_what_its_rounds_were_for():
    loaded, X, y = load_kept("tree_crf_format_3"), make_models.FRAMES, make_models.Y
    assert (loaded.decode_, loaded.n_rounds_) == ("marginal", 8)
    # So are those that follow.
    more = clone(loaded).set_params(n_rounds=2).fit(X, y, init=loaded)
    assert (more.n_warm_rounds_, more.n_rounds_) == (3, 10)
    assert more.loss_ < loaded.loss_


def test_a_file_of_format_4_keeps_how_its_data_were_read():
    loaded = load_kept("linear_crf_format_4")
    assert loaded.recipe_ == {"format": "conll", "label": -1}
    assert loaded.transition_attributes == "B"
    assert {"", "B:old"} <= set(loaded.transition_weights()["attribute"])


def test_a_file_of_format_5_keeps_the_weights_of_its_trees():
    forest = load_kept("tree_crf_format_5")._trees.forest
    assert forest.tree_weights.tolist() == [1.0] * 4 + [0.125] * 12
    assert forest.outputs.tolist() == [0, 1, 2, 3] * 4
    assert forest.round_offsets.tolist() == [0, 4, 8, 12, 16]
    # Positions outside were missing.
    np.testing.assert_array_equal(
        forest.outside_left[forest.sets < 0], forest.missing_left[forest.sets < 0]
    )


def test_a_file_of_format_7_asks_about_parents():
    loaded = load_kept("tree_crf_format_7")
    assert (loaded.ancestors, loaded.parents_column) == (1, "head")
    assert "size[parent]" in set(loaded.importances()["feature"])


def test_files_of_format_6_keep_their_surrogates():
    forest = load_kept("tree_crf_format_6")._trees.forest
    assert len(forest.surrogate_starts) == len(forest.columns) + 1
    assert len(forest.surrogate_columns) > 0


# Writing.


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
    loaded = hedgerow.load(saved(crf, tmp_path))
    assert loaded.recipe_ == crf.recipe_
    assert not hasattr(hedgerow.load(saved(loaded.fit(X, Y), tmp_path)), "recipe_")


def test_a_history_that_is_not_finite_is_kept(tmp_path):
    crf = LinearCRF(max_iter=3, tol=0).fit([[["a"], ["b"]]], [["x", "y"]])
    crf.history_ = {"loss": [2.5, 1], "eval_loss": [math.inf, -math.inf, math.nan]}
    assert str(dict(hedgerow.load(saved(crf, tmp_path)).history_)) == str(crf.history_)
