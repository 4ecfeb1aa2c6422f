"""The command line: a file a command, and what the commands share."""

from hedgerow.cli.program import main

__all__ = ["main"]
