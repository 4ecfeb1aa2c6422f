"""Unsupported settings of a device, and errors without a device."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from hedgerow.cuda import cupy_device
from hedgerow.relational import Atoms, RelationalFeatures

X = [np.arange(6.0).reshape(3, 2), np.arange(4.0).reshape(2, 2)]
Y = [["a", "b", "c"], ["b", "a"]]


@pytest.mark.usefixtures("use_device")
@pytest.mark.parametrize(
    ("parameters", "fit", "message"),
    [
        ({"transitions": "trees"}, {}, "transitions='trees'"),
        ({"order": 2}, {}, "order above 1, or label_patterns of more than two labels"),
        ({"forbidden": [("a", "a")]}, {}, "constraints, allowed, forbidden, start_labels"),
        ({}, {"y": [["a", None, "c"], ["b", "a"]]}, "missing labels"),
        ({"objective": "softmax_margin"}, {}, "objective='softmax_margin'"),
        ({"missing": "impute"}, {}, "missing='impute'"),
        ({"curvature": "exact"}, {}, "curvature='exact'"),
        ({"line_search": True}, {}, "direction='conjugate' or line_search=True"),
        ({"sampling_method": "gradient_based", "subsample": 0.5}, {}, "'gradient_based'"),
        ({"interaction_constraints": [[0], [1]]}, {}, "monotone_constraints and interaction"),
        ({"max_leaves": 5000}, {}, "trees with more than 1024 leaves"),
        ({}, {"parents": [[-1, 0, 0], [-1, 0]]}, "parents, which make tree-shaped graphs"),
        (
            {"base": LinearCRF(max_iter=2, tol=0, transition_attributes=True), "base_folds": 0},
            {"X_base": [[{"u": 1}] * 3, [{"v": 1}] * 2]},
            "base models that score label pairs",
        ),
    ],
)
def test_what_a_device_cannot_do_is_refused_by_name(parameters, fit, message):
    crf = TreeCRF(device="cuda", decode="viterbi", **parameters)
    with pytest.raises(ValueError, match=rf"device='cuda' does not support .*{message}"):
        crf.fit(X, fit.pop("y", Y), **fit)


@pytest.mark.usefixtures("use_device")
def test_trees_that_refine_queries():
    facts = Atoms([[{("ls", "u")}, {("ls", "v")}, {("ls", "u")}], [{("ls", "u")}, {("ls", "u")}]])
    queries = RelationalFeatures(["ls(+t,-file)", "ls(+t,+file)"], window=1)
    crf = TreeCRF(device="cuda", decode="viterbi", queries=queries)
    with pytest.raises(ValueError, match="trees that extend queries about facts"):
        crf.fit(facts, Y)


@pytest.mark.usefixtures("use_device")
def test_too_many_labels():
    rows, labels = np.arange(400.0).reshape(-1, 2), np.arange(200) % 150
    with pytest.raises(
        ValueError, match="does not support more than 128 labels; pass device='cpu'"
    ):
        TreeCRF(device="cuda", decode="viterbi").fit([rows], [labels])


@pytest.mark.usefixtures("use_device")
def test_a_trellis_of_another_kind():
    from hedgerow.trellis import build_trellis

    class Other(TreeCRF):
        def build_trellis(self, grammar):
            return build_trellis(grammar)

    rows, labels = np.arange(40.0).reshape(-1, 2), np.arange(20)
    with pytest.raises(ValueError, match="label pairs, which this model does not have"):
        Other(device="cuda", decode="viterbi", min_pattern_count=1).fit([rows], [labels])


@pytest.mark.usefixtures("use_device")
def test_training_that_does_not_fit_is_refused_before_it_begins(device, monkeypatch):
    monkeypatch.setattr(device, "free_bytes", lambda: 1000, raising=False)
    message = r"would take about .* GiB \(205 bytes for each of .*, padding included, .* are free"
    with pytest.raises(MemoryError, match=message):
        TreeCRF(device="cuda", decode="viterbi").fit(X, Y)


def test_other_devices_are_refused():
    with pytest.raises(ValueError, match="device is 'gpu'; expected 'cpu' or 'cuda'"):
        TreeCRF(device="gpu").fit(X, Y)


def fake_cupy(monkeypatch, count):
    """A fake of the functions of CuPy that find GPUs."""
    error = type("CUDARuntimeError", (RuntimeError,), {})
    runtime = SimpleNamespace(
        CUDARuntimeError=error, getDeviceCount=count(error), runtimeGetVersion=lambda: 12000
    )
    cupy = ModuleType("cupy")
    cupy.cuda = SimpleNamespace(runtime=runtime)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    cupy_device.find_device.cache_clear()


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    cupy_device.find_device.cache_clear()
    with pytest.raises(ImportError, match=r"needs CuPy.*pip install 'hedgerow\[cuda\]', or pass"):
        TreeCRF(device="cuda", decode="viterbi").fit(X, Y)


def test_without_a_gpu_or_with_an_old_driver(monkeypatch):
    def fail(error):
        def count():
            raise error("CUDA driver version is insufficient")

        return count

    fake_cupy(monkeypatch, fail)
    with pytest.raises(RuntimeError, match="driver version is insufficient; update the driver"):
        cupy_device.find_device()
    fake_cupy(monkeypatch, lambda _: lambda: 0)
    with pytest.raises(RuntimeError, match="needs an NVIDIA GPU, and there is none; pass"):
        cupy_device.find_device()
