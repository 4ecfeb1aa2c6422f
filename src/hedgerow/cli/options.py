"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from hedgerow.cli.errors import CommandError
from hedgerow.suggestions import suggest

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Descriptions and examples as they are written; options in two columns."""

    def __init__(self, prog: str, **rest: Any) -> None:
        super().__init__(prog, max_help_position=26, **rest)


class Parser(argparse.ArgumentParser):
    """A parser whose error messages are one line."""

    def parse_known_args(self, *arguments: Any, **named: Any) -> Any:
        """Raise an error for unknown arguments here, where the options of the command are known."""
        options, unknown = super().parse_known_args(*arguments, **named)
        for argument in unknown:
            if argument.startswith("-"):
                near = suggest(argument.partition("=")[0], self._option_string_actions)
                self.error(f"there is no option {argument}{near}")
        if unknown:
            self.error(f"unexpected argument {unknown[0]}")
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise an error for a value that is not among the choices, such as an unknown command."""
        if action.choices is None or value in action.choices:
            return
        known = list(map(str, action.choices))
        if isinstance(action, argparse._SubParsersAction):
            near = suggest(str(value), known) or f"; the commands are {', '.join(known)}"
            self.error(f"there is no command {value!r}{near}")
        *most, last = known
        expected = f"{', '.join(most)} or {last}" if most else last
        self.error(f"{'/'.join(action.option_strings)} is {value}; expected {expected}")

    def error(self, message: str) -> NoReturn:
        """Report an error in the arguments."""
        see = " See" if message.endswith("?") else "; see"
        raise CommandError(f"{message}{see} {self.prog} --help")


def begin_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], None],
    summary: str,
    description: str,
    examples: str,
) -> Parser:
    """Begin a command; the caller adds its options."""
    parser: Parser = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=f"examples:\n{examples}",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def add_model(parser: Parser) -> None:
    """Argument MODEL."""
    parser.add_argument("model", metavar="MODEL", help="model file, written by `hedgerow train`")


def add_jobs(parser: Parser) -> None:
    """Option --jobs."""
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="number of threads, by default all cores; the result does not depend on it",
    )


def add_decode(parser: Parser) -> None:
    """Option --decode."""
    parser.add_argument(
        "--decode",
        choices=("viterbi", "marginal"),
        help="decoder: viterbi finds the best labelling as a whole, marginal the best label of "
        "each position; by default the decoder of the model",
    )


def read_columns(text: str) -> list[str]:
    """Names or numbers of columns, separated by commas."""
    return [column.strip() for column in text.split(",")]


def read_window(text: str) -> int | tuple[int, int]:
    """Number of positions on each side: N, or BEFORE,AFTER."""
    sides = text.split(",")
    if not all(re.fullmatch(r"\d+", side) for side in sides) or len(sides) > 2:
        raise argparse.ArgumentTypeError(f"expected N or BEFORE,AFTER, not {text!r}")
    return int(sides[0]) if len(sides) == 1 else (int(sides[0]), int(sides[1]))


def read_assignment(text: str) -> tuple[str, Any]:
    """A parameter and its value, see `read_value`."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, not {text!r}")
    return key.strip(), read_value(value)


def read_value(text: str) -> Any:
    """The value of a parameter: JSON, a Python literal, or plain text."""
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text
