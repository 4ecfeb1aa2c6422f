"""What tests of many files share: a fitted model, the bytes of its file, and Ctrl-C."""

import signal

import pytest

from hedgerow import LinearCRF
from reference.model_files import CHUNKS, ITEMS


@pytest.fixture(scope="module")
def model():
    """It has everything that a file can hold."""
    return LinearCRF(transition_attributes=True, order=2, constraints="BIO").fit(ITEMS, CHUNKS)


@pytest.fixture(scope="module")
def data(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    model.save(path)
    return path.read_bytes()


@pytest.fixture(autouse=True, scope="session")
def heed_ctrl_c():
    """Programs that a shell starts in the background ignore it; the tests that press it need it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
