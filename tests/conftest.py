"""A fitted model and the bytes of its file, for all tests of model files."""

import pytest

from hedgerow import LinearCRF
from reference.model_files import ITEMS, Y


@pytest.fixture(scope="module")
def model():
    return LinearCRF(transition_attributes=True).fit(ITEMS, Y)


@pytest.fixture(scope="module")
def data(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    model.save(path)
    return path.read_bytes()
