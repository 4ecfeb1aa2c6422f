"""hedgerow report: a page about a model."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedgerow.cli.errors import tell, telling
from hedgerow.cli.models import load_model, recipe_of
from hedgerow.cli.options import Commands, add_decode, add_model, begin_command
from hedgerow.cli.outputs import check_output, check_page_name
from hedgerow.cli.text import format_size

SUMMARY = "write a page about a model"
DESCRIPTION = """\
Write a page about a model: one HTML file that needs no network.

It shows learning curves, transitions, the most important features, and trees.
With a labelled file also confusions, calibration, and its sequences to browse,
the worst ones first.
"""
EXAMPLES = """\
  hedgerow report chunks.hedgerow -o report.html
  hedgerow report chunks.hedgerow test.txt -o report.html
"""


def add_command(commands: Commands) -> None:
    """Make the command known."""
    parser = begin_command(commands, "report", run, SUMMARY, DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add_model(parser)
    add("file", metavar="DATA", nargs="?", help="labelled file to show it on")
    add("-o", "--output", metavar="PAGE", required=True, help="where the page goes: an .html file")
    add_decode(parser)
    add("--title", metavar="TEXT", help="title of the page; the model's file unless given")


def run(options: argparse.Namespace) -> None:
    """Write the page."""
    from hedgerow.files import display_name, read_file
    from hedgerow.report import write_report

    check_output(options.output, "page", [options.model, options.file])
    check_page_name(options.output)
    model = load_model(options.model)
    title = options.title or Path(options.model).name
    with telling():
        if options.file is None:
            notes = write_report(model, options.output, title=title, decode=options.decode)
        else:
            data = read_file(options.file, recipe_of(model, options.model, options.file))
            with telling(f"{display_name(options.file)}: "):
                notes = write_report(
                    model,
                    options.output,
                    data.X,
                    data.y,
                    title=title,
                    decode=options.decode,
                    parents=data.parents,
                )
    for note in notes:
        tell(f"warning: {note}")
    print(f"{options.output}: {format_size(Path(options.output).stat().st_size)}")
