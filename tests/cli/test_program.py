"""The program: start, help, mistakes in the arguments, exit codes."""

import io
import os
import subprocess
import sys

import pytest

import hedgerow
from hedgerow.cli import main
from reference.command_line import complaint, train

COMMANDS = ["train", "tag", "eval", "inspect", "report", "export", "queries", "demo"]


def test_starting_imports_nothing_that_takes_time():
    code = (
        "import sys; from hedgerow.cli import main; code = main(['--help']); "
        "slow = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'tqdm'} & set(sys.modules); "
        "sys.exit(str(slow) if slow else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "hedgerow COMMAND --help" in done.stdout


def test_it_is_a_module_too():
    done = subprocess.run(
        [sys.executable, "-m", "hedgerow", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"hedgerow {hedgerow.__version__}\n")


def test_without_arguments_it_says_what_it_can_do(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(f"    {command} " in out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert f"examples:\n  hedgerow {command}" in out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["xyzzy"], "there is no command 'xyzzy'; the commands are train, tag, eval, inspect, "),
        (["train", "x", "-m", "y", "--model", "tree"], "--model is tree; expected linear or trees"),
        (
            ["train", "x", "-m", "y", "--decode", "best"],
            "--decode is best; expected auto, viterbi or marginal",
        ),
        (["tag", "m", "in", "out"], "unexpected argument out; see hedgerow tag --help"),
        (["tag", "m", "--xyzzy"], "there is no option --xyzzy; see hedgerow"),
        (["train", "x", "-m", "y", "--order", "two"], "argument --order: invalid int value: 'two'"),
        (
            ["train", "x", "-m", "y", "--window", "1,2,3"],
            "argument --window: expected N or BEFORE,AFTER, not '1,2,3'; see hedgerow train --help",
        ),
    ],
)
def test_mistakes_in_the_arguments(argv, message, capsys):
    assert message in complaint(capsys, *argv)


def test_letters_that_standard_output_has_not(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("a \u65e5\nb x\n", encoding="utf-8")
    model = train(file, tmp_path / "model")
    out = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out, "ascii"))
    assert main(["eval", str(model), str(file)]) == 0
    assert b"\\u65e5" in out.getvalue()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="nothing is forbidden here")
def test_a_folder_that_is_not_writable(tmp_path, capsys):
    tmp_path.chmod(0o500)
    message = complaint(capsys, "train", "nothing", "-m", tmp_path / "model")
    assert message == f"the folder {str(tmp_path)!r} for the model is not writable"
