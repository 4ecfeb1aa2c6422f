"""hedgerow report: write a page about a model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.errors import CommandError, tell, telling
from hedgerow.cli.models import load_model, recipe_of
from hedgerow.cli.options import Commands, add_decode, add_model, begin_command
from hedgerow.cli.outputs import check_output, check_page_name
from hedgerow.cli.text import format_size

if TYPE_CHECKING:
    from hedgerow.estimator import Estimator

SUMMARY = "write a report page about a model, or about two"
DESCRIPTION = """\
Write a report about a model: one HTML file that needs no network.

It shows learning curves, transitions, the most important features, and trees.
With a labelled file it also shows the confusion matrix, segments, calibration,
and a browser of the sequences, the worst ones first. If you name a second model
between the first one and the file, the two are compared on that file.
"""
EXAMPLES = """\
  hedgerow report chunks.hedgerow -o report.html
  hedgerow report chunks.hedgerow test.txt -o report.html
  hedgerow report new.hedgerow old.hedgerow test.txt -o comparison.html
"""


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = begin_command(commands, "report", run, SUMMARY, DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add_model(parser)
    add(
        "files",
        metavar="[MODEL] DATA",
        nargs="*",
        help="labelled file to evaluate the model on; before it, a second model to compare with",
    )
    add("-o", "--output", metavar="PAGE", required=True, help="output: an .html file")
    add_decode(parser)
    add("--title", metavar="TEXT", help="title of the page; by default the name of the model file")


def run(options: argparse.Namespace) -> None:
    """Write the page."""
    from hedgerow.files import display_name
    from hedgerow.report import write_report

    if len(options.files) > 2:
        raise CommandError(f"unexpected argument {options.files[2]}; see hedgerow report --help")
    if len(options.files) == 2 and options.files[1] == "-":
        raise CommandError(
            "two models read the data twice, so data cannot come from standard input; name a file"
        )
    check_output(options.output, "page", [options.model, *options.files])
    check_page_name(options.output)
    model = load_model(options.model)
    title = options.title or Path(options.model).name
    with telling():
        arguments = {"title": title, "decode": options.decode} | _read_data(options, model)
        prefix = f"{display_name(options.files[-1])}: " if options.files else ""
        with telling(prefix):
            notes = write_report(model, options.output, **arguments)
    for note in notes:
        tell(f"warning: {note}")
    print(f"{options.output}: {format_size(Path(options.output).stat().st_size)}")


def _read_data(options: argparse.Namespace, model: Estimator) -> dict[str, Any]:
    """The contents of the files, as arguments of `write_report`."""
    from hedgerow.files import display_name, read_file

    if not options.files:
        return {}
    file = options.files[-1]
    data = read_file(file, recipe_of(model, options.model, file))
    arguments = {
        "X": data.X,
        "y": data.y,
        "parents": data.parents,
        "names": None if data.names is None else list(map(str, data.names)),
        "source": display_name(file),
    }
    if len(options.files) == 2:
        path = options.files[0]
        compare = load_model(path)
        other = read_file(file, recipe_of(compare, path, file))
        arguments |= {
            "compare": compare,
            "X_compare": other.X,
            "parents": other.parents if data.parents is None else data.parents,
            "compare_title": Path(path).name,
        }
    return arguments
