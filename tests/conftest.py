"""What tests of many files share: both estimators, a model, the bytes of its file, and Ctrl-C.

The process that starts the others reads this file too: fixtures import what takes time.
"""

import gc
import os
import signal
from functools import partial

# Tests run side by side: more threads of BLAS and OpenMP than this would wait for each other, and
# spin while they do. They are read when NumPy is imported.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

import pytest
from hypothesis import HealthCheck, settings

import hedgerow

# How long it takes to draw a case depends on what else the machine does.
settings.register_profile(
    "suite", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

gc.disable()  # while thousands of tests are collected, which all stay


def pytest_collection_finish():
    """Nothing that is there by now goes away: the garbage collector need not look at it again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", params=["LinearCRF", "TreeCRF"])
def estimator(request):
    """Each of the estimators in turn."""
    return getattr(hedgerow, request.param)


@pytest.fixture(scope="module")
def make(estimator):
    """A maker of estimators that train in no time."""
    from reference.estimators import small

    return partial(small, estimator)


@pytest.fixture(scope="module")
def model():
    """It has everything that a file can hold."""
    from reference.model_files import CHUNKS, FULL

    crf, X = FULL[hedgerow.LinearCRF]
    return hedgerow.LinearCRF(**crf.get_params()).fit(X, CHUNKS)


@pytest.fixture(scope="module")
def data():
    from reference.model_files import file_of

    return file_of(hedgerow.LinearCRF)


@pytest.fixture(autouse=True, scope="session")
def write_without_waiting():
    """No file of the tests must outlive a power failure: they do not wait for the disk."""
    before, os.fsync = os.fsync, lambda descriptor: None
    yield
    os.fsync = before


@pytest.fixture(autouse=True, scope="session")
def heed_ctrl_c():
    """Programs that a shell starts in the background ignore it; the tests that press it need it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def device(tmp_path_factory):
    """A GPU for kernels: the CPU by a shim, or with HEDGEROW_TEST_DEVICE=cuda a real one."""
    if os.environ.get("HEDGEROW_TEST_DEVICE") == "cuda":
        from hedgerow.cuda.cupy_device import find_device

        return find_device()
    from reference.cuda_shim import COMPILER, ShimDevice

    if COMPILER is None:
        pytest.skip("no C++ compiler")
    # Of all processes that run tests side by side.
    return ShimDevice(tmp_path_factory.getbasetemp().parent)


@pytest.fixture
def use_device(device, monkeypatch):
    """Let TreeCRF(device="cuda") use that device."""
    from hedgerow.cuda import cupy_device

    monkeypatch.setattr(cupy_device, "find_device", lambda: device)
