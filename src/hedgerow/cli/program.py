"""The program: parses arguments, runs a command, and returns an exit code."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence

from hedgerow.cli import demo, evaluate, export, inspect, queries, report, tag, train
from hedgerow.cli.errors import BROKEN_PIPE, INTERRUPTED, MISTAKE, CommandError, describe, tell
from hedgerow.cli.options import HelpFormatter, Parser
from hedgerow.version import __version__

DESCRIPTION = """\
Conditional random fields for labelling sequences: train a model on a file,
label other files with it, and inspect it.

Files hold CoNLL columns, tables (CSV, Parquet, Feather, JSON lines) with a
column of sequence ids, or CRFsuite attributes; each may be gzipped, and - is
standard input.
"""
EXAMPLES = """\
examples:
  hedgerow demo
  hedgerow train train.txt -m chunks.hedgerow --dev dev.txt
  hedgerow tag chunks.hedgerow new.txt > labelled.txt
  hedgerow eval chunks.hedgerow test.txt
  hedgerow train days.csv -m days.hedgerow --group day --label activity
  hedgerow report days.hedgerow test.csv -o report.html

`hedgerow COMMAND --help` lists the options of a command.
"""


def build_parser() -> Parser:
    """All commands and their options; imports nothing that is slow."""
    parser = Parser(
        prog="hedgerow",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"hedgerow {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (train, tag, evaluate, inspect, report, export, queries, demo):
        command.add_command(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv
        Arguments without the name of the program; None: ``sys.argv[1:]``.

    Returns
    -------
    int
        0, or 2 for a user error, with a message of one line; 130 after Ctrl-C; 141 if the reader of
        standard output has closed it.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # its encoding may lack letters
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        parser = build_parser()
        arguments = sys.argv[1:] if argv is None else list(argv)
        options = parser.parse_args(arguments or ["--help"])
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_: tell(f"warning: {message}")
            options.run(options)
        sys.stdout.flush()
    except CommandError as error:
        tell(str(error))
        return MISTAKE
    except BrokenPipeError:
        _forget_stdout()
        return BROKEN_PIPE
    except OSError as error:
        tell(describe(error))
        return MISTAKE
    except KeyboardInterrupt as interrupt:
        tell(f"interrupted{'; ' if interrupt.args else ''}{interrupt}")
        return INTERRUPTED
    except SystemExit as end:  # of --help and --version
        return int(end.code or 0)
    return 0


def _forget_stdout() -> None:
    """Discard the rest of the buffer: the reader is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
