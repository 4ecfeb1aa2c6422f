"""A mistake, the list of all mistakes, and a shell for those on the command line."""

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hedgerow.cli import main

MISTAKES = []

# Messages of several mistakes; {} is the place.
TORN_APART = (
    "4 of the 4 groups of {} were in the training data too ('w0', 'w1', 'w2', ...), at least one "
    "of them with a different number of rows. If a sequence was divided into a part for training "
    "and a part for testing, scores are too high; keep sequences whole: use a splitter from "
    "hedgerow.model_selection, such as cv=SequenceKFold(group_column=...)"
)
UNKNOWN_LABEL = (
    "{} has labels that did not occur in training: 'swim', at 1 position, first at y[0][0]; the "
    "model cannot predict them, so they count as mistakes, and are left out of losses and "
    "likelihoods"
)


@dataclass(frozen=True)
class Mistake:
    """The action of a user, its message, and the grade of the message.

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
    """Register a function that makes a mistake."""

    def add(make):
        MISTAKES.append(Mistake(make, grade, kind, " ".join(message)))
        return make

    return add


class Refused(Exception):  # noqa: N818, for it is not raised by the library
    """The error line of a command that ended with status 2."""


class Told(UserWarning):
    """The standard error of a command that succeeded."""


class Terminal(io.StringIO):
    """A fake terminal."""

    def isatty(self):
        return True


def shell(command, out=None):
    """Run a command as from a shell, in a separate folder."""
    out, err = out or io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(command.split()[1:])
    lines = [line.removeprefix("hedgerow: ") for line in err.getvalue().splitlines()]
    if code:
        assert (code, len(lines)) == (2, 1), err.getvalue()
        raise Refused(lines[0])
    for line in lines:
        warnings.warn(line, Told, stacklevel=2)
