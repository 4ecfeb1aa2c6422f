"""Files that are written whole or not at all."""

import os

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


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="there is no /dev/null here")
def test_devices_and_links_stay_what_they_are(tmp_path):
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    for path in ("/dev/null", link):
        with open_whole(path) as file:
            file.write(b"new")
    assert not os.path.isfile("/dev/null")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_what_cannot_be_written_is_named(tmp_path):
    with pytest.raises(OSError, match="No space left") as full, open_whole("/dev/full") as file:
        file.write(b"new")
    assert full.value.filename == "/dev/full"
    path = tmp_path / ("n" * 240)  # too long for what is written beside it
    with pytest.raises(OSError, match="too long") as long, open_whole(path):
        pass
    assert long.value.filename == str(path)
