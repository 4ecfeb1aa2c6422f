"""The command line: one file per command, and what the commands share."""

from hedgerow.cli.program import main

__all__ = ["main"]
