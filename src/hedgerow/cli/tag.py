"""hedgerow tag: label a file of any length."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

from hedgerow.cli.errors import CommandError, telling
from hedgerow.cli.models import find_label, labels_by_text, load_model, recipe_of
from hedgerow.cli.options import Commands, add_decode, add_jobs, add_model, begin_command
from hedgerow.cli.outputs import check_output, check_rows_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hedgerow.estimator import Estimator
    from hedgerow.files import Batch, Recipe

SUMMARY = "label a file of any length"
DESCRIPTION = """\
Label a file. The output has the rows of the file with additional columns. For a
CRFsuite file or tables of facts, it has only the additional columns.

The file is read like the training file, and streamed: it may have any length.
Only tables of facts are read into memory whole.

The file need not have labels: tables may lack the label column, and so may
CoNLL files if it is the last one; in CRFsuite files, the first field may be
empty.

The additional columns are, in this order (with their names in tables):

  predicted        the label
  probability      with --marginals or --all-marginals, the probability of that
                   label at that position
  p(LABEL)         with --all-marginals, the probability of each label; written
                   as LABEL/PROBABILITY in files that are not tables, such as
                   CoNLL

  predicted_1, probability_1, predicted_2, ...
                   with --k-best N, N labellings of the whole sequence and the
                   probability of each; if there are fewer, the other labels
                   are _ or empty, and their probability is 0
"""
EXAMPLES = """\
  hedgerow tag chunks.hedgerow new.txt > labelled.txt
  zcat big.txt.gz | hedgerow tag chunks.hedgerow | cut -d ' ' -f 1,4
  hedgerow tag days.hedgerow new.parquet -o labelled.parquet --marginals
  hedgerow tag chunks.hedgerow half.txt --known 2 -o whole.txt
"""
# Per sequence; each takes two columns.
MOST_LABELLINGS = 1000


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = begin_command(commands, "tag", run, SUMMARY, DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add_model(parser)
    add(
        "file",
        metavar="FILE",
        nargs="?",
        default="-",
        help="file to label; by default standard input",
    )
    add(
        "-o",
        "--output",
        metavar="OUT",
        default="-",
        help="output file, may end with .gz; by default standard output",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--marginals", action="store_true", help="add the probability of the predicted label"
    )
    form.add_argument(
        "--all-marginals",
        action="store_true",
        help="add the probabilities of the predicted label and of every label",
    )
    form.add_argument(
        "--k-best", type=int, metavar="N", help="write the N most probable labellings"
    )
    add(
        "--known",
        metavar="COL",
        help="column of known labels, which are kept; an empty cell, _ or ? means unknown",
    )
    add_decode(parser)
    add_jobs(parser)


def run(options: argparse.Namespace) -> None:
    """Label batch by batch."""
    from hedgerow.files import display_name, open_writer, stream_file

    if options.k_best is not None and options.decode is not None:
        raise CommandError("--k-best finds labellings as a whole; leave out --decode")
    if options.k_best is not None and not 1 <= options.k_best <= MOST_LABELLINGS:
        raise CommandError(
            f"--k-best is {options.k_best}; expected a number from 1 to {MOST_LABELLINGS:,}"
        )
    model = load_model(options.model, options.jobs)
    recipe = recipe_of(model, options.model, options.file)
    named = recipe.is_table
    file = display_name(options.file)
    as_csv = choose_csv(options, recipe, file)
    with telling(), open_writer(options.output, recipe, as_csv=as_csv) as writer:
        is_empty = True
        for batch in stream_file(options.file, recipe, known=options.known):
            with telling(f"{file}: "):
                columns = label_batch(model, batch, options, named=named)
            writer.write(batch, columns)
            is_empty = False
        if is_empty and named:  # the output would not be a table
            raise CommandError(f"{file}: the table has no rows to label")


def choose_csv(options: argparse.Namespace, recipe: Recipe, file: str) -> bool:
    """Whether Parquet or Arrow rows become CSV; raises CommandError for an unsuitable output."""
    from hedgerow.files.endings import format_of_name

    has_types = recipe.format in ("parquet", "arrow")
    if options.output == "-":
        if has_types and sys.stdout.isatty():
            raise CommandError(
                f"{file} holds {recipe.format}, which a terminal cannot show; write it to a file, "
                f"-o labelled.{recipe.format}, or as text, -o labelled.csv"
            )
        return False
    check_output(options.output, "labels", [options.model])
    if has_types and format_of_name(options.output) == "csv":
        return True
    check_rows_name(options.output, file, recipe.format)
    return False


def label_batch(
    model: Estimator, batch: Batch, options: argparse.Namespace, *, named: bool
) -> dict[str, list[Any]]:
    """The additional columns of some sequences; probabilities are numbers if `named`, else text."""
    known = None if options.known is None else read_known(model, batch)
    if options.k_best is not None:
        found = model.predict_k_best(batch.X, options.k_best, known=known, **batch.graph)
        return best_columns(found, batch, options.k_best, named)
    predicted = model.predict(batch.X, known=known, decode=options.decode, **batch.graph)
    columns = {"predicted": predicted}
    if options.marginals or options.all_marginals:
        marginals = model.predict_marginals(batch.X, known=known, **batch.graph)
        columns["probability"] = [
            as_written(pick(model, both, labels), named)
            for both, labels in zip(marginals, predicted, strict=True)
        ]
    if options.all_marginals:
        for code, label in enumerate(model.classes_.tolist()):
            prefix = "" if named else f"{label}/"
            columns[f"p({label})"] = [as_written(one[:, code], named, prefix) for one in marginals]
    return columns


def read_known(model: Estimator, batch: Batch) -> list[list[Any]]:
    """Labels that are already known, None where they are not."""
    assert batch.known is not None
    labels: dict[Any, Any] = {None: None, "?": None, "_": None, **labels_by_text(model)}
    for cell in chain.from_iterable(batch.known):
        if cell not in labels:
            find_label(model, "--known", cell)
    return [[labels[cell] for cell in cells] for cells in batch.known]


def pick(
    model: Estimator, marginals: NDArray[np.float64], labels: NDArray[Any]
) -> NDArray[np.float64]:
    """The marginals of the chosen labels, (T,)."""
    codes = model.classes_.searchsorted(labels)
    chosen: NDArray[np.float64] = marginals[range(len(labels)), codes]
    return chosen


def best_columns(
    found: list[list[tuple[NDArray[Any], float]]], batch: Batch, k: int, named: bool
) -> dict[str, list[Any]]:
    """One column of labels and one of probabilities for each of the k labellings."""
    columns: dict[str, list[Any]] = {}
    nothing = None if named else "_"
    for rank in range(k):
        labels: list[Any] = []
        probabilities: list[Any] = []
        for best, x in zip(found, batch.X, strict=True):
            if rank < len(best):
                chosen, log_prob = best[rank]
                labels.append(chosen)
                probability = math.exp(log_prob)
            else:
                labels.append([nothing] * len(x))
                probability = 0.0
            probabilities.append(as_written([probability] * len(x), named))
        columns[f"predicted_{rank + 1}"] = labels
        columns[f"probability_{rank + 1}"] = probabilities
    return columns


def as_written(shares: Iterable[float], named: bool, prefix: str = "") -> Any:
    """Numbers for tables, whose columns are `named`; otherwise text."""
    return shares if named else [f"{prefix}{share:.6f}" for share in shares]
