"""A mistake, the list of all of them, and a shell to make them in."""

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hedgerow.cli import main

MISTAKES = []

# What is said of several mistakes; {} is where.
TORN_APART = (
    "4 of the 4 groups of {} were in the training data too, with other rows ('w0', 'w1', 'w2', "
    "...), so scores are too high; keep sequences whole: split with hedgerow.model_selection, such "
    "as cv=SequenceKFold(group_column=...)"
)
UNKNOWN_LABEL = (
    "{} has labels that did not occur in training: 'swim', at 1 position, first at y[0][0]; the "
    "model cannot predict them, so they count as mistakes, and are left out of losses and "
    "likelihoods"
)


@dataclass(frozen=True)
class Mistake:
    """What a user does, what is said about it, and how good that is.

    ``...`` in the message stands for any text.
    """

    make: Callable[[], object]
    grade: Literal["A", "B"]
    kind: type[Exception]  # an error, or a warning
    message: str

    @property
    def name(self):
        return f"{self.make.__module__.rpartition('.')[2]}-{self.make.__name__}"


def mistake(grade, kind, *message):
    """Put a function that makes a mistake on the list."""

    def add(make):
        MISTAKES.append(Mistake(make, grade, kind, " ".join(message)))
        return make

    return add


class Refused(Exception):  # noqa: N818, for it is not raised by the library
    """The one line of a command that ended with 2."""


class Told(UserWarning):
    """What a command that went well writes to standard error."""


class Terminal(io.StringIO):
    """What looks like a terminal."""

    def isatty(self):
        return True


def shell(command, out=None):
    """Run a command as from a shell, in a folder of its own."""
    out, err = out or io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(command.split()[1:])
    lines = [line.removeprefix("hedgerow: ") for line in err.getvalue().splitlines()]
    if code:
        assert (code, len(lines)) == (2, 1), err.getvalue()
        raise Refused(lines[0])
    for line in lines:
        warnings.warn(line, Told, stacklevel=2)
