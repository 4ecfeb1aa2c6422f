"""What is saved of a TreeCRF comes back."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import hedgerow
from data import make_models
from hedgerow import TreeCRF
from reference.boosting import assert_same_model
from reference.linear import hide, to_dicts
from reference.model_files import CHUNKS, FRAMES, ITEMS, X, Y

NUMBERS = [["abc".index(label) for label in labels] for labels in Y]
GAPS = [np.where(np.abs(x) < 0.3, np.nan, x) for x in X]
MANY = pd.DataFrame({"word": [f"w{n % 400}" for n in range(1200)], "n": np.arange(1200) % 5})
MODELS = {
    "arrays": (X, Y, {}),
    "missing values": (GAPS, Y, {"window": 1}),
    "flat array": (np.concatenate(X), np.concatenate(Y), {}),
    "dicts": (to_dicts(X), Y, {"window": (0, 2)}),
    "items": (ITEMS, [["ä🙂" if label == "a" else label for label in labels] for labels in Y], {}),
    "no attributes": ([[{}] * len(labels) for labels in Y], Y, {}),
    "sparse": ([sparse.csr_array(x) for x in X], Y, {}),
    "frames": ([frame[["p", "q", "r"]] for frame in FRAMES], Y, {}),
    "text columns": (FRAMES, Y, {}),
    "many categories": (MANY, np.array(["even", "odd"])[np.arange(1200) % 2], {"order": 0}),
    "int labels": (X, NUMBERS, {"class_weight": {0: 2, np.int64(2): 0.5}}),
    "bool labels": (X, [[label == "a" for label in labels] for labels in Y], {}),
    "one label": (X, [["only"] * len(labels) for labels in Y], {}),
    "order 0": (X, Y, {"order": 0}),
    "order 2": (X, Y, {"order": np.int64(2), "newton": False}),
    "patterns": (X, Y, {"label_patterns": [("a", "b"), ("b", "c", "a")]}),
    "a scheme": (X, CHUNKS, {"constraints": "BIO"}),
    "a scheme and order 2": (ITEMS, CHUNKS, {"constraints": "BIO", "order": 2}),
    "partial labels": (X, hide(Y, "?"), {"missing_label": "?"}),
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
}


def make(**parameters):
    return TreeCRF(**{"n_rounds": 4, "min_child_weight": 0, **parameters})


def to_plain(value):
    """Parameters as they are in a file, where tuples are lists."""
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_saved_comes_back(kind, tmp_path):
    X, y, parameters = MODELS[kind]
    crf = make(**parameters).fit(X, y, eval_set=(X, y))
    path = tmp_path / "model.hedgerow"
    crf.save(path)
    loaded = hedgerow.load(path)
    assert type(loaded) is TreeCRF
    assert_same_model(loaded, crf)
    assert loaded.classes_.dtype == crf.classes_.dtype
    for name in ("loss_", "n_rounds_", "best_round_", "history_", "label_patterns_"):
        assert getattr(loaded, name) == getattr(crf, name)
    assert loaded.get_params() == {k: to_plain(v) for k, v in crf.get_params().items()}
    for name in ("n_features_in_", "feature_names_in_"):
        assert hasattr(loaded, name) == hasattr(crf, name)
        np.testing.assert_array_equal(getattr(loaded, name, 0), getattr(crf, name, 0))
    np.testing.assert_array_equal(loaded.feature_importances_, crf.feature_importances_)
    np.testing.assert_array_equal(loaded.predict_proba(X), crf.predict_proba(X))
    np.testing.assert_array_equal(loaded.log_likelihood(X, y), crf.log_likelihood(X, y))
    for table in ("importances", "transitions", "patterns"):
        one, two = getattr(loaded, table)(), getattr(crf, table)()
        assert one.keys() == two.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], two[name])
    assert os.listdir(tmp_path) == ["model.hedgerow"]
    data = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == data
    assert loaded.fit(X, y, eval_set=(X, y)).loss_ == crf.loss_


def test_equal_models_give_equal_files(tmp_path):
    for name in ("one", "two"):
        make(random_state=1, subsample=0.5).fit(FRAMES, Y).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_loaded_model_reads_new_data_as_the_saved_one_did(tmp_path):
    crf = make().fit(FRAMES, Y)
    crf.save(tmp_path / "model")
    loaded = hedgerow.load(tmp_path / "model")
    new = [frame.assign(sign="neither", p=np.nan, q=1e9) for frame in FRAMES]
    np.testing.assert_array_equal(loaded.predict_proba(new), crf.predict_proba(new))
    with pytest.raises(ValueError, match="column 'q' was numeric when TreeCRF was fitted"):
        loaded.predict([frame.astype({"q": str}) for frame in FRAMES])
    with pytest.raises(ValueError, match=r"X\[0\] has inf at position 0, column 'q'"):
        loaded.predict([frame.assign(q=np.inf) for frame in FRAMES])


def test_callbacks_are_left_out(tmp_path):
    crf = make(callbacks=[lambda now: None], random_state=np.random.RandomState(0)).fit(X, Y)
    crf.save(tmp_path / "model")
    loaded = hedgerow.load(tmp_path / "model")
    assert loaded.callbacks is None
    assert loaded.random_state is None


# The kept file.

NAME = "tree_crf_format_2.hedgerow"
DIGEST = "5bf3ff00e7cd9cb07f11d8ce041a7b14a54482ad5c95fa434971d123a6b1a76b"
LABELS = [["B-NP", "I-NP", "O"], ["B-NP", "O"]]
LOG_LIKELIHOODS = [-0.5751879610066699, -0.7660556690460627]


def test_a_file_of_an_older_version_loads():
    path = Path(__file__).parents[1] / "data" / NAME
    data = path.read_bytes()
    assert len(data) < 20_000
    assert hashlib.sha256(data).hexdigest() == DIGEST
    loaded, frames = hedgerow.load(path), make_models.FRAMES
    assert [labels.tolist() for labels in loaded.predict(frames)] == LABELS
    found = loaded.log_likelihood(frames, LABELS)
    np.testing.assert_allclose(found, LOG_LIKELIHOODS, rtol=1e-12)
    assert loaded.n_rounds_ == 6
    assert loaded.window == [1, 0]
    assert loaded.label_patterns_[-1] == ("O", "B-NP", "O")
    assert set(loaded.importances()["offset"]) == {-1, 0}
    assert set(loaded.importances()["feature"]) == {"size", "word"}
    assert loaded.log_likelihood(frames[1:], [["O", "I-NP"]])[0] == -np.inf


def test_a_file_of_format_3_remembers_what_its_rounds_were_for():
    path = Path(__file__).parents[1] / "data" / "tree_crf_format_3.hedgerow"
    data, X, y = path.read_bytes(), make_models.FRAMES, make_models.Y
    digest = "34c7febf237b7a29be1f96c7268dd320aa678755d18f290620a6c04edc419e0f"
    assert hashlib.sha256(data).hexdigest() == digest
    loaded = hedgerow.load(data)
    assert (loaded.decode_, loaded.n_rounds_) == ("marginal", 8)
    log_likelihoods = [-0.006871392356704198, -0.005261056898490939]
    np.testing.assert_allclose(loaded.log_likelihood(X, y), log_likelihoods, rtol=1e-12)
    fitted = make_models.tree_crf_3()
    np.testing.assert_allclose(fitted.log_likelihood(X, y), log_likelihoods, rtol=1e-5)
    # The curvatures of label pairs had fewer digits then, so the rounds that follow are alike.
    more = clone(fitted).set_params(n_rounds=2)
    found, expected = (clone(more).fit(X, y, init=init) for init in (loaded, fitted))
    forests = found._trees.forest, expected._trees.forest
    for name in ("tree_offsets", "columns", "offsets", "lefts"):
        np.testing.assert_array_equal(*(getattr(forest, name) for forest in forests))
    np.testing.assert_allclose(*(forest.values for forest in forests), rtol=1e-4, atol=1e-6)
    assert found.n_warm_rounds_ == expected.n_warm_rounds_


def test_a_file_of_format_4_remembers_its_group_column():
    path = Path(__file__).parents[1] / "data" / "tree_crf_format_4.hedgerow"
    digest = "a209f116398c723e3ab596f8383f6d512f33146712a782f27a2df9409e9609fb"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    loaded, y = hedgerow.load(path), [label for labels in make_models.Y for label in labels]
    log_likelihoods = [-0.7434991728481871, -0.5394593497004556]
    for model, rtol in ((loaded, 1e-12), (make_models.tree_crf_4(), 1e-5)):
        found = model.log_likelihood(make_models.TABLE, y)
        np.testing.assert_allclose(found, log_likelihoods, rtol=rtol)


def test_a_file_of_format_5_keeps_the_weights_of_its_trees():
    path = Path(__file__).parents[1] / "data" / "tree_crf_format_5.hedgerow"
    digest = "3e585e5020ca1879dc06d1c33937a31e412659d52e2d15d60769edea2ad4d560"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    log_likelihoods = [-0.664148654109018, -0.6932440623726885]
    for model, rtol in ((hedgerow.load(path), 1e-12), (make_models.tree_crf_5(), 1e-5)):
        forest = model._trees.forest
        assert forest.tree_weights.tolist() == [1.0] * 4 + [0.125] * 12
        assert forest.outputs.tolist() == [0, 1, 2, 3] * 4
        assert forest.round_offsets.tolist() == [0, 4, 8, 12, 16]
        found = model.log_likelihood(make_models.FRAMES, make_models.Y)
        np.testing.assert_allclose(found, log_likelihoods, rtol=rtol)


def test_the_kept_file_can_be_made_again():
    loaded = hedgerow.load(Path(__file__).parents[1] / "data" / NAME)
    fitted, frames = make_models.tree_crf_2(), make_models.FRAMES
    assert loaded.label_patterns_ == fitted.label_patterns_
    assert set(loaded.get_params()) <= set(fitted.get_params())
    found = fitted.log_likelihood(frames, LABELS)
    np.testing.assert_allclose(found, LOG_LIKELIHOODS, rtol=1e-5)
