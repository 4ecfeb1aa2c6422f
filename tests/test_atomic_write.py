"""Atomic writes."""

import os
import stat

import pytest

from hedgerow.atomic_write import check_place, open_atomic

needs_modes = pytest.mark.skipif(os.name == "nt", reason="permissions are others here")


@pytest.fixture
def path(tmp_path):
    """A file that is there already."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    return path


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_file_that_is_not_finished_leaves_no_trace(error, path, tmp_path):

    def write_half():
        with open_atomic(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_takes_its_place_when_it_is_whole(path, tmp_path):
    with open_atomic(str(path)) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_must_be_there(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match=r"cannot save to .*: the folder .* does not exist"),
        open_atomic(tmp_path / "nowhere" / "file"),
    ):
        pass


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="there is no /dev/null here")
def test_devices_and_links_stay_what_they_are(tmp_path):
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    for path in ("/dev/null", link):
        with open_atomic(path) as file:
            file.write(b"new")
    assert not os.path.isfile("/dev/null")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_what_cannot_be_written_is_named(tmp_path):
    with pytest.raises(OSError, match="No space left") as full, open_atomic("/dev/full") as file:
        file.write(b"new")
    assert full.value.filename == "/dev/full"


def test_names_may_be_as_long_as_the_file_system_allows(tmp_path):
    path = tmp_path / ("n" * 255)
    with open_atomic(path) as file:
        file.write(b"new")
    assert list(tmp_path.iterdir()) == [path]
    path = tmp_path / ("n" * 256)
    with pytest.raises(OSError, match="too long") as long, open_atomic(path):
        pass
    assert long.value.filename == str(path)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@needs_modes
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640, 0o400, 0o666])
def test_the_permissions_of_what_is_replaced_stay(mode, path, tmp_path):
    path.chmod(mode)
    with open_atomic(path) as file:
        file.write(b"new")
        assert [mode_of(new) for new in tmp_path.iterdir() if new != path] == [0o600]
    assert mode_of(path) == mode
    assert path.read_bytes() == b"new"


@needs_modes
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_new_files(mask, tmp_path):
    before = os.umask(mask)
    try:
        with open_atomic(tmp_path / "file"):
            pass
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "file") == 0o666 & ~mask


@needs_modes
def test_the_owner_and_group_of_what_is_replaced_stay(path, monkeypatch):
    asked = []
    path.chmod(0o640)
    others = os.stat_result((path.stat().st_mode, 1, 1, 1, 1234, 4321, 0, 0, 0, 0))
    monkeypatch.setattr("hedgerow.atomic_write._find", lambda place: others)
    monkeypatch.setattr(os, "fchown", lambda _, owner, group: asked.append((owner, group)))
    with open_atomic(path):
        pass
    assert asked == [(-1, 4321), (1234, -1)]
    assert mode_of(path) == 0o640


@needs_modes
@pytest.mark.parametrize(("mode", "after"), [(0o640, 0o600), (0o664, 0o644), (0o646, 0o646)])
def test_another_group_may_do_no_more_than_everybody(mode, after, path, monkeypatch):
    others = os.stat_result((stat.S_IFREG | mode, 1, 1, 1, 1234, 4321, 0, 0, 0, 0))

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr("hedgerow.atomic_write._find", lambda place: others)
    monkeypatch.setattr(os, "fchown", refuse)
    with open_atomic(path):
        pass
    assert mode_of(path) == after


def test_of_two_writers_the_last_one_wins(tmp_path):
    path = tmp_path / "file"
    with open_atomic(path) as last:
        last.write(b"last")
        with open_atomic(path) as first:
            first.write(b"first")
        assert path.read_bytes() == b"first"
    assert path.read_bytes() == b"last"
    assert list(tmp_path.iterdir()) == [path]


def test_places_where_no_file_can_be_made(tmp_path):
    with pytest.raises(FileExistsError, match=r"cannot save to '.*': it is a folder; name a file"):
        check_place(tmp_path)
    path = tmp_path / ("n" * 256)
    with pytest.raises(OSError, match="too long") as long:
        check_place(path)
    assert long.value.filename == str(path)
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        check_place(tmp_path / "nowhere" / "file")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(OSError, match="symbolic links"):
        check_place(tmp_path / "circle")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_is_no_place_for_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match=r"it is a device or a pipe; name a file"):
        check_place(tmp_path / "pipe")
