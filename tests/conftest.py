"""A fitted model and the bytes of its file, for all tests of model files."""

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
