"""The device of these tests: the CPU by a shim, or with HEDGEROW_TEST_DEVICE=cuda a real GPU."""

import os

import pytest


@pytest.fixture(scope="session")
def device(tmp_path_factory):
    if os.environ.get("HEDGEROW_TEST_DEVICE") == "cuda":
        from hedgerow.cuda.cupy_device import find_device

        return find_device()
    from reference.cuda_shim import COMPILER, ShimDevice

    if COMPILER is None:
        pytest.skip("no C++ compiler")
    # Of all processes that run tests side by side.
    return ShimDevice(tmp_path_factory.getbasetemp().parent)
