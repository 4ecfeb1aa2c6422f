"""Shared fixtures: both estimators, a model, the bytes of its file, and Ctrl-C.

The main process of pytest-xdist imports this file too, so slow imports are in fixtures.
"""

import gc
import os
import signal
import time
from functools import partial

# Tests run in parallel: more BLAS and OpenMP threads than this would wait for each other in spin
# locks. NumPy reads these variables when it is imported.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

import pytest
from hypothesis import HealthCheck, settings

import hedgerow

# The time to draw a case depends on the load of the machine.
settings.register_profile(
    "suite", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

gc.disable()  # while thousands of tests are collected, none of which can be freed


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session):
    """In a fresh clone one worker compiles the modules that all import, while the others wait.

    Should that worker fail, they wait a minute and a half.
    """
    worker = getattr(session.config, "workerinput", {}).get("workerid")
    cache, key = getattr(session.config, "cache", None), "hedgerow/compiled"
    if worker is None or cache is None:
        return (yield)
    end = time.monotonic() + 90
    while worker != "gw0" and not cache.get(key, False) and time.monotonic() < end:
        time.sleep(0.05)
    result = yield
    if worker == "gw0":
        cache.set(key, True)
    return result


def pytest_collection_finish():
    """Exclude all objects created so far from garbage collection."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", params=["LinearCRF", "TreeCRF"])
def estimator(request):
    """Each of the estimators in turn."""
    return getattr(hedgerow, request.param)


@pytest.fixture(scope="module")
def make(estimator):
    """A function that makes estimators that train fast."""
    from reference.estimators import small

    return partial(small, estimator)


@pytest.fixture(scope="module")
def model():
    """A model with everything that a file can contain."""
    from reference.model_files import CHUNKS, FULL

    crf, X = FULL[hedgerow.LinearCRF]
    return hedgerow.LinearCRF(**crf.get_params()).fit(X, CHUNKS)


@pytest.fixture(scope="module")
def data():
    from reference.model_files import file_of

    return file_of(hedgerow.LinearCRF)


@pytest.fixture(autouse=True, scope="session")
def write_without_waiting():
    """Do not wait for the disk: files of the tests need not survive a power failure."""
    before, os.fsync = os.fsync, lambda descriptor: None
    yield
    os.fsync = before


@pytest.fixture(autouse=True, scope="session")
def use_one_core():
    """Let `n_jobs=None` be one thread: tests run in parallel, and idle threads wait for work.

    Tests of several threads say how many.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        patch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def heed_ctrl_c():
    """Enable SIGINT, which programs started in the background of a shell ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def device(request, tmp_path_factory):
    """A GPU for kernels: the CPU by a shim, or with HEDGEROW_TEST_DEVICE=cuda a real one."""
    if os.environ.get("HEDGEROW_TEST_DEVICE") == "cuda":
        from hedgerow.cuda.cupy_device import find_device

        return find_device()
    from reference.cuda_shim import COMPILER, ShimDevice

    if COMPILER is None:
        pytest.skip("no C++ compiler")
    # Of all processes that run tests side by side, and of later runs.
    cache = getattr(request.config, "cache", None)
    folder = cache.mkdir("kernels") if cache else tmp_path_factory.getbasetemp().parent
    return ShimDevice(folder)


@pytest.fixture
def use_device(device, monkeypatch):
    """Let TreeCRF(device="cuda") use that device."""
    from hedgerow.cuda import cupy_device

    monkeypatch.setattr(cupy_device, "find_device", lambda: device)
