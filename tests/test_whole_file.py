"""Files that are written whole or not at all."""

import pytest

from hedgerow.whole_file import open_whole


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_file_that_is_not_finished_leaves_no_trace(error, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half():
        with open_whole(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_takes_its_place_when_it_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with open_whole(str(path)) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_must_be_there(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match=r"cannot save to .*: the folder .* does not exist"),
        open_whole(tmp_path / "nowhere" / "file"),
    ):
        pass
