"""Files and models for the tests of all commands."""

import pytest

from reference.command_line import SENTENCES, conll, train


@pytest.fixture(scope="session")
def chunks(tmp_path_factory):
    """A CoNLL file of words, tags and chunks."""
    path = tmp_path_factory.mktemp("files") / "chunks.txt"
    path.write_text(conll(SENTENCES))
    return path


@pytest.fixture(scope="session")
def chunk_model(chunks):
    """A linear model of chunks."""
    return train(chunks, chunks.with_name("chunks.hedgerow"), "--constraints", "BIO")
