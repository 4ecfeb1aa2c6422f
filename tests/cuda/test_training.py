"""TreeCRF(device="cuda"): the same as on the CPU up to rounding, with all features of training."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from hedgerow import Checkpoint, TreeCRF, load
from hedgerow.cuda import cupy_device, predictor
from hedgerow.cuda.training import DeviceTraining

SMALL = {"max_depth": 4, "max_leaves": 8}

pytestmark = pytest.mark.usefixtures("use_device")


@pytest.fixture(scope="module")
def data():
    """Sequences whose labels depend on two columns and on the label before."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for length in rng.integers(1, 20, size=24):
        x = rng.normal(size=(length, 4)).round(2)
        x[rng.random(x.shape) < 0.1] = np.nan
        score = np.nan_to_num(x[:, 0]) + np.roll(np.nan_to_num(x[:, 1]), 1)
        labels = np.digitize(score + 0.3 * rng.normal(size=length), [-0.7, 0.7])
        X.append(x)
        y.append(np.array(["low", "mid", "high"])[labels])
    return X, y


def pair(data, *, fit=None, **parameters):
    """Models that were trained on the CPU and on the device."""
    fit = {} if fit is None else fit
    usual = {"n_rounds": 3, "random_state": 0, "decode": "viterbi", "n_jobs": 1} | SMALL
    return [
        TreeCRF(**usual | parameters, device=device).fit(*data, **fit) for device in ("cpu", "cuda")
    ]


def check_alike(cpu, gpu, X, tolerance=1e-5):
    """The same trees up to rounding, and the same loss after every round."""
    np.testing.assert_allclose(gpu.history_["loss"], cpu.history_["loss"], rtol=tolerance)
    np.testing.assert_allclose(gpu.history_["accuracy"], cpu.history_["accuracy"], atol=0.02)
    before, after = cpu.predict_marginals(X), gpu.predict_marginals(X)
    atol = 100 * tolerance
    np.testing.assert_allclose(np.concatenate(after), np.concatenate(before), atol=atol)


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": None, "max_leaves": None, "n_rounds": 2},
        {"max_leaves": None, "window": 1},
        {"decode": "marginal", "newton": False},
        {"order": 0},
        {"subsample": 0.7, "colsample_bytree": 0.5},
        {"subsample": 0.7, "stratified": True, "negative_ratio": 1.0},
        {"transition_step": "exact"},
        {"objective": "expected_accuracy", "warm_rounds": 2},
        {"objective": "f1", "warm_rounds": 1, "subsample": 0.7},
        {"learning_rate": 3.0, "max_step": None},
    ],
)
def test_a_training_is_that_of_the_cpu(data, parameters):
    check_alike(*pair(data, **parameters), data[0])


def test_two_labels(data):
    y = [labels == "low" for labels in data[1]]
    check_alike(*pair((data[0], y)), data[0])


def test_weights_of_sequences(data):
    weights = np.random.default_rng(1).uniform(0.0, 2.0, size=len(data[0]))
    check_alike(*pair(data, fit={"sample_weight": weights}), data[0])


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"class_weight": "balanced", "transition_step": "exact"},
        {"objective": "expected_accuracy", "warm_rounds": 2},
    ],
)
def test_weights_of_positions(data, parameters):
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(len(data[0])), [len(x) for x in data[0]])
    weights = rng.choice([0.0, 0.5, 2.0], size=len(groups))
    flat = tuple(map(np.concatenate, data))
    cpu, gpu = pair(flat, fit={"groups": groups, "sample_weight": weights}, **parameters)
    check_alike(cpu, gpu, data[0])


def test_eval_set_and_early_stopping(data):
    X, y = data
    fit = {"eval_set": (X[18:], y[18:])}
    cpu, gpu = pair((X[:18], y[:18]), fit=fit, early_stopping_rounds=2, n_rounds=12)
    check_alike(cpu, gpu, X, 5e-3)  # two splits gain the same but for rounding
    np.testing.assert_allclose(gpu.history_["eval_loss"], cpu.history_["eval_loss"], rtol=0.02)
    assert gpu.best_round_ == np.argmin(gpu.history_["eval_loss"]) + 1


def check_same(first, second):
    """Two models, bit for bit."""
    expected, found = first.to_state().tensors, second.to_state().tensors
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_the_same_bits_each_time(data):
    check_same(*(pair(data, n_rounds=2)[1] for _ in range(2)))


@pytest.mark.parametrize(
    ("parameters", "has_short_steps"),
    [
        ({"n_rounds": 3, "subsample": 0.7}, False),
        ({"n_rounds": 9, "max_depth": 2, "transition_step": "exact"}, False),
        ({"n_rounds": 4, "learning_rate": 3.0, "max_step": None}, True),
    ],
)
def test_trees_that_grow_before_the_loss_is_known(data, parameters, has_short_steps, monkeypatch):
    usual = {"device": "cuda", "decode": "viterbi", "random_state": 0} | SMALL
    start, launch, launched = DeviceTraining.start_measuring, DeviceTraining._launch_trees, []

    def count(self, number):
        launched.append(number)
        return launch(self, number)

    monkeypatch.setattr(DeviceTraining, "_launch_trees", count)
    ahead = TreeCRF(**usual | parameters).fit(*data)
    assert (len(launched) > parameters["n_rounds"]) == has_short_steps  # some are grown again

    def wait(self, objective, arcs, following):
        start(self, objective, arcs, None)

    monkeypatch.setattr(DeviceTraining, "start_measuring", wait)
    check_same(ahead, TreeCRF(**usual | parameters).fit(*data))


def test_training_goes_on_from_models_and_checkpoints(data, tmp_path):
    usual = {"random_state": 0, "decode": "viterbi", "device": "cuda"} | SMALL
    whole = TreeCRF(n_rounds=4, **usual).fit(*data)
    checkpoint = Checkpoint(tmp_path / "state", every=1)
    half = TreeCRF(n_rounds=2, **usual).fit(*data, checkpoint=checkpoint)
    joined = TreeCRF(n_rounds=2, **usual).fit(*data, init=half)
    assert joined.n_rounds_ == 4
    resumed = TreeCRF(n_rounds=4, **usual).fit(*data, checkpoint=checkpoint)
    for name, array in whole.to_state().tensors.items():
        np.testing.assert_array_equal(resumed.to_state().tensors[name], array)


def test_a_model_is_saved_loaded_and_used_without_a_device(data, tmp_path, monkeypatch):
    _, gpu = pair(data, n_rounds=2)
    gpu.save(tmp_path / "model")
    mine = gpu.predict(data[0])

    def find_none():
        raise RuntimeError("there is no GPU")

    monkeypatch.setattr(cupy_device, "find_device", find_none)
    loaded = load(tmp_path / "model")
    for expected, found in zip(mine, loaded.predict(data[0]), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert len(loaded.trees()["node"]) == len(gpu.trees()["node"])


def test_text_columns(data):
    X = [
        pd.DataFrame(x, columns=list("abcd")).assign(t=list("uvwxy" * 5)[: len(x)]) for x in data[0]
    ]
    check_alike(*pair((X, data[1])), X)


@pytest.mark.parametrize("decode", ["viterbi", "marginal"])
def test_predictions_are_those_of_the_cpu(data, decode, monkeypatch):
    X, y = data
    cpu = TreeCRF(n_rounds=3, decode=decode, window=1, n_jobs=1).fit(X, y)
    gpu = clone(cpu).set_params(device="cuda")
    gpu.model_ = cpu.model_
    monkeypatch.setattr(predictor, "BATCH", 50)  # in several runs
    for mine, theirs in zip(gpu.predict(X), cpu.predict(X), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    marginals = np.concatenate(cpu.predict_marginals(X))
    np.testing.assert_allclose(np.concatenate(gpu.predict_marginals(X)), marginals, atol=1e-12)
    assert gpu.score(X, y) == cpu.score(X, y)
    known = [np.full(len(x), None, object) for x in X]
    known[0][0] = "high"
    assert gpu.predict(X, known=known)[0][0] == "high"  # by the CPU


def test_models_that_a_device_cannot_use_predict_on_the_cpu(data):
    X, y = data
    cpu = TreeCRF(n_rounds=2, order=2, decode="viterbi", n_jobs=1).fit(X, y)
    gpu = clone(cpu).set_params(device="cuda")
    gpu.model_ = cpu.model_
    assert [labels.tolist() for labels in gpu.predict(X)] == [
        labels.tolist() for labels in cpu.predict(X)
    ]


def test_extreme_base_scores(data):
    scores = [np.tile([1.0, 0.0, -1e5], (len(x), 1)) for x in data[0]]
    y = [np.where(labels == "mid", "low", labels) for labels in data[1]]
    y[0][0] = "mid"
    for row, labels in zip(scores, y, strict=True):
        row[labels == "mid"] = 0.0
    cpu, gpu = pair((data[0], y), fit={"base_scores": scores}, n_rounds=3)
    np.testing.assert_allclose(gpu.history_["loss"], cpu.history_["loss"], rtol=1e-5)
