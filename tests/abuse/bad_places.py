"""Bad places and moments: full disks, read-only folders, closed pipes, and kills.

A file that existed before is unchanged afterwards. Nothing else is left except the temporary file
of a writer that was killed, which the next writer removes.
"""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from abuse.children import fork, wait
from abuse.commands import FAST, FORMATS, SUFFIXES, TABLE_OPTIONS, base_file, trained
from abuse.kind import Case, Kind
from abuse.training import Training
from abuse.trainings import trainings
from hedgerow import Checkpoint, load
from hedgerow.cli import main

__all__ = ["KINDS"]

NOBODY = 65534


def run_child(
    work: Callable[[], int], meanwhile: Callable[[int], None] = lambda pid: None, out: int = -1
) -> tuple[int, str]:
    """Exit status of a child process, below 0 for a signal, and what it wrote to standard error.

    ``meanwhile(pid)`` runs at the same time. Its standard output is the descriptor `out`, or is
    discarded.
    """
    reader, writer = os.pipe()

    def redirected() -> int:
        os.dup2(os.open(os.devnull, os.O_WRONLY) if out < 0 else out, 1)
        os.dup2(writer, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        return work()

    pid = fork(redirected)
    os.close(writer)
    meanwhile(pid)
    with os.fdopen(reader, errors="replace") as file:
        err = file.read()
    return wait(pid), err


def command_of(case: Case, folder: Path) -> tuple[list[str], Path]:
    """A command that writes a file, and the file."""
    form = case["format"]
    path, model = folder / f"data.{SUFFIXES[form]}", folder / "model.hedgerow"
    path.write_bytes(base_file(form))
    model.write_bytes(trained(form, case["model"]))
    place = folder / "there" / f"written.{SUFFIXES[form]}"
    place.parent.mkdir()
    if case["command"] == "train":
        options = TABLE_OPTIONS if form in ("csv", "parquet") else []
        options = [*options, *FAST[case["model"]], "--quiet"]
        return ["train", str(path), "-m", str(place), *options], place
    if case["command"] == "report":
        return ["report", str(model), str(path), "-o", str(place)], place
    return ["tag", str(model), str(path), "-o", str(place)], place


def check_refusal(status: int, err: str, place: Path, before: bytes | None) -> None:
    """The command ended with status 2 and one line of output, and nothing has changed."""
    assert status == 2, f"exit status {status}: {err}"
    assert err.startswith("hedgerow: "), err
    assert err.count("\n") == 1, err
    assert (place.read_bytes() if place.exists() else None) == before
    left = [path.name for path in place.parent.iterdir() if path != place]
    assert left == [], left


@st.composite
def place_cases(draw: st.DrawFn) -> Case:
    return {
        "format": draw(st.sampled_from(FORMATS)),
        "model": draw(st.sampled_from(["linear", "trees"])),
        "command": draw(st.sampled_from(["train", "tag", "report"])),
        "old": draw(st.booleans()),
        "trouble": draw(st.sampled_from(["full", "read-only"])),
        "n_bytes": draw(st.integers(0, 100)),
    }


def check_place(case: Case) -> None:
    """A disk that is full after some bytes, or a folder that is not writable."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments, place = command_of(case, folder)
        before = b"what was there" if case["old"] else None
        if before is not None:
            place.write_bytes(before)

        def work() -> int:
            if case["trouble"] == "full":
                import resource  # not on Windows

                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (case["n_bytes"],) * 2)
            elif os.getuid() == 0:
                os.chmod(folder, 0o755)
                os.setuid(NOBODY)
            return main(arguments)

        if case["trouble"] == "read-only":
            place.parent.chmod(0o555)
        try:
            check_refusal(*run_child(work), place, before)
        finally:
            place.parent.chmod(0o755)


@st.composite
def pipe_cases(draw: st.DrawFn) -> Case:
    return {
        "format": draw(st.sampled_from(["conll", "csv", "crfsuite"])),
        "model": draw(st.sampled_from(["linear", "trees"])),
        "command": draw(st.sampled_from(["tag", "eval", "inspect", "help"])),
        "n_bytes": draw(st.sampled_from([0, 1, 100])),
    }


def check_pipe(case: Case) -> None:
    """A reader that closes the pipe, as ``head`` does: no traceback, and the status for a broken
    pipe."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, model = folder / f"data.{SUFFIXES[case['format']]}", folder / "model"
        # Much more than fits into a pipe, with distinct groups.
        path.write_bytes(long_file(case["format"]))
        model.write_bytes(trained(case["format"], case["model"]))
        arguments = [case["command"], str(model), str(path)]
        if case["command"] in ("inspect", "help"):
            arguments = {"inspect": ["inspect", str(model)], "help": ["--help"]}[case["command"]]
        reader, writer = os.pipe()

        def work() -> int:
            os.close(reader)
            os.close(writer)
            return main(arguments)

        def leave(pid: int) -> None:
            os.close(writer)
            if case["n_bytes"]:
                os.read(reader, case["n_bytes"])
            os.close(reader)

        status, err = run_child(work, leave, out=writer)
        # Output that fits into the pipe may be written before the reader closes it.
        assert status in (0, 141), f"exit status {status}: {err}"
        assert err == "", err


def long_file(form: str) -> bytes:
    """The base file many times over, about 100 kB."""
    data = base_file(form)
    if form != "csv":
        return (data.rstrip(b"\n") + b"\n\n") * (100_000 // len(data))
    head, *rows = data.splitlines()
    parts = [b"%d%s" % (i, row) for i in range(100_000 // len(data)) for row in rows]
    return b"\n".join([head, *parts, b""])


@st.composite
def kill_cases(draw: st.DrawFn) -> Case:
    return {
        "training": draw(trainings()),
        "what": draw(st.sampled_from(["save", "checkpoint"])),
        "milliseconds": draw(st.floats(0, 60)),
    }


def check_kill(case: Case) -> None:
    """SIGKILL at a random moment: the file is complete, old or new, and the next writer
    succeeds."""
    training = Training.of(case["training"])
    changes = {"max_iter": 40} if case["training"]["estimator"] == "LinearCRF" else {"n_rounds": 15}
    model = training.fit(**changes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, goal = folder / "there" / "model", folder / "goal"
        path.parent.mkdir()
        model.save(goal)

        def work() -> int:
            while True:
                if case["what"] == "save":
                    model.save(path)
                else:
                    training.fit(Checkpoint(path, every=1), **changes)
                    path.unlink()

        def kill(pid: int) -> None:
            time.sleep(case["milliseconds"] / 1000)
            os.kill(pid, signal.SIGKILL)

        assert run_child(work, kill) == (-signal.SIGKILL, "")
        if case["what"] == "save":
            if path.exists():
                assert path.read_bytes() == goal.read_bytes()
            model.save(path)
            load(path)
        else:
            training.fit(Checkpoint(path, every=1), **changes).save(folder / "resumed")
            assert (folder / "resumed").read_bytes() == goal.read_bytes()
            left = [place.name for place in path.parent.iterdir() if place != path]
            assert not any("." in place[1:] for place in left), left


KINDS = (
    [
        Kind("inputs-places", place_cases(), check_place, in_suite=4),
        Kind("inputs-pipes", pipe_cases(), check_pipe, in_suite=3, share=0.5),
        Kind("inputs-kills", kill_cases(), check_kill, in_suite=4),
    ]
    if hasattr(os, "fork")
    else []
)
