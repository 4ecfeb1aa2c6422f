"""hedgerow train: train a model on a file."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.errors import CommandError, telling
from hedgerow.cli.features import describe_features, warn_of_counters
from hedgerow.cli.model_options import add_model_options, make_model
from hedgerow.cli.models import describe_training
from hedgerow.cli.options import Commands, add_jobs, begin_command, read_columns
from hedgerow.cli.outputs import check_model_name, check_output
from hedgerow.cli.text import format_share, format_size
from hedgerow.cli.training_files import (
    TrainingFiles,
    name_training_files,
    open_training_files,
)
from hedgerow.counting import count_of

if TYPE_CHECKING:
    from hedgerow.estimator import Estimator
    from hedgerow.files import Batch, Recipe

SUMMARY = "train a model on a labelled file"
DESCRIPTION = """\
Train a model on a labelled file.

The format is recognised from the file's name and first lines: CoNLL columns (a
blank line between sequences, the label last), tables in CSV, Parquet, Feather
or JSON lines (--group names the column with the sequence ids), CRFsuite
attributes; each may be gzipped, and - is standard input. TRAIN may also be a
JSON file that names tables of facts and the queries about them, see hedgerow
queries --help. The model stores how its file was read, so that tag and eval
read other files in the same way.
"""
EXAMPLES = """\
  hedgerow train train.txt -m chunks.hedgerow --dev dev.txt --constraints BIO
  hedgerow train train.txt -m chunks.hedgerow --template template
  hedgerow train days.csv -m days.hedgerow --group day --label activity
  hedgerow train days.parquet -m days.hedgerow --group day --label activity \\
      --dev other.parquet --window 2 --early-stopping 20
  hedgerow train en.conllu -m relations.hedgerow --label DEPREL --heads \\
      --features FORM,UPOS
  hedgerow train sessions.json -m sessions.hedgerow --model trees
  hedgerow train big.txt -m big.hedgerow --checkpoint big.checkpoint --every 20
  hedgerow train data/*.parquet -m days.hedgerow --group day --workers 4
"""


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = begin_command(commands, "train", run, SUMMARY, DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add(
        "train",
        metavar="TRAIN",
        nargs="+",
        help="training file; - is standard input. Several Parquet files are one data set, which "
        "may be larger than memory",
    )
    add("-m", "--model-file", metavar="MODEL", required=True, help="output file for the model")
    add(
        "--dev",
        metavar="FILE",
        action="append",
        default=[],
        help="evaluation file for metrics and early stopping; may be repeated, the last one "
        "decides when to stop",
    )
    add("--seed", type=int, metavar="N", help="random seed")
    add_jobs(parser)
    add("--quiet", action="store_true", help="print nothing but warnings and errors")

    add_model_options(parser.add_argument_group("the model"))
    add_file_options(parser.add_argument_group("the file"))
    long = parser.add_argument_group("long training runs")
    add = long.add_argument
    add(
        "--checkpoint",
        metavar="FILE",
        help="save the training state to this file, and resume from it if it exists; the file is "
        "deleted when the model has been written",
    )
    add(
        "--every",
        type=int,
        metavar="N",
        help="rounds or iterations between checkpoints; by default 10",
    )
    add(
        "--workers",
        type=int,
        metavar="N",
        help="train on Parquet files with N processes on this machine. Each reads some of the "
        "files, and the model is the same as with one process",
    )
    add(
        "--cluster",
        metavar="ADDRESS",
        help="train on Parquet files on all workers of the Dask cluster with this scheduler, such "
        "as tcp://10.0.0.1:8786. The workers read the files under the same paths, and the model "
        "is the same as with one process",
    )


def add_file_options(group: argparse._ArgumentGroup) -> None:
    """Options for reading the file."""
    add = group.add_argument
    add(
        "--format",
        choices=("conll", "csv", "parquet", "arrow", "jsonl", "crfsuite", "facts"),
        help="format of the file, if it is not recognised",
    )
    add(
        "--label",
        metavar="COL",
        help="column of the labels, by name or number (from 0; -1 is the last); by default the "
        "last, or UPOS in CoNLL-U files",
    )
    add("--group", metavar="COL", help="tables: column with the sequence ids")
    add(
        "--features",
        type=read_columns,
        metavar="COLS",
        help="feature columns, separated by commas; by default all other columns, or FORM in "
        "CoNLL-U files",
    )
    add(
        "--heads",
        nargs="?",
        const="HEAD",
        metavar="COL",
        help="tree-shaped graphs: a label depends on the label of its parent instead of the "
        "previous one. COL is the column with the parent of each position, counted from 1 in its "
        "sequence, 0 for a root; --heads without COL means the column HEAD",
    )
    add(
        "--template",
        metavar="FILE",
        help="CoNLL columns: a CRF++ template of attributes (U00:%%x[-1,0])",
    )


def run(options: argparse.Namespace) -> None:
    """Train, save, and print a summary."""
    from hedgerow.files import adapt_recipe, make_recipe, read_file

    begin = time.monotonic()
    check_options(options)
    with telling():
        recipe = make_recipe(
            options.train[0],
            format=options.format,
            label=options.label,
            group=options.group,
            features=options.features,
            template=options.template,
            heads=options.heads,
        )
    model = make_model(options, recipe)
    with telling():
        data = open_training_files(options, recipe)
        dev = {file: read_file(file, adapt_recipe(recipe, file)) for file in options.dev}
    if options.features is None:
        warn_of_counters(data.features())
    try:
        fit(model, data, dev, options)
        model.recipe_ = recipe.to_json()
        model.set_params(verbose=0, n_jobs=None)  # of this process, not of the model
        model.save(options.model_file)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(*tell_of_checkpoint(options.checkpoint)) from None
    if options.checkpoint is not None:
        Path(options.checkpoint).unlink(missing_ok=True)
    if not options.quiet:
        summarise(model, data, dev, recipe, options, time.monotonic() - begin)


def check_options(options: argparse.Namespace) -> None:
    """Check that options can be combined, before anything that takes time."""
    check_output(options.model_file, "model", [*options.train, *options.dev, options.checkpoint])
    check_model_name(options.model_file, "a model")
    if options.checkpoint is not None:
        check_output(options.checkpoint, "checkpoint", [*options.train, *options.dev])
        check_model_name(options.checkpoint, "a checkpoint")
    elif options.every is not None:
        raise CommandError("--every needs --checkpoint FILE, which is then written every N rounds")
    if [*options.train, *options.dev, options.template].count("-") > 1:
        raise CommandError("only one of TRAIN, --dev and --template can be standard input")
    if options.workers is not None and options.cluster is not None:
        raise CommandError("--workers starts a cluster, and --cluster names one; give one of them")
    if options.workers is not None and options.workers < 1:
        raise CommandError(f"--workers is {options.workers}; expected at least 1")
    for option, files in (("", options.train), ("--dev ", options.dev)):
        for file in files:
            if files.count(file) > 1:
                raise CommandError(f"{option}{file} is given twice; give it once")


def fit(
    model: Estimator, data: TrainingFiles, dev: Mapping[str, Batch], options: argparse.Namespace
) -> None:
    """Train the model, with metrics on the files `dev`, given by name."""
    from hedgerow.files import display_name

    extras: dict[str, Any] = {}
    names = name_files(list(dev))
    sets = {names[file]: {"X": batch.X, "y": batch.y, **batch.graph} for file, batch in dev.items()}
    if sets:
        extras["eval_set"] = sets if len(sets) > 1 else list(sets.values())
    if options.checkpoint is not None:
        from hedgerow import Checkpoint

        with telling():
            extras["checkpoint"] = Checkpoint(
                options.checkpoint, every=10 if options.every is None else options.every
            )
    # The names of the eval sets in the library.
    places = {
        f"eval_set ({name})" if len(sets) > 1 else "eval_set": display_name(file)
        for file, name in names.items()
    }
    try:
        with naming(places):
            data.fit(model, **extras)
    except (ValueError, TypeError) as error:
        message = str(error)
        for place, file in places.items():
            message = message.replace(f"in {place}:", f"{file}:", 1)
        raise CommandError(message) from error


def name_files(files: list[str]) -> dict[str, str]:
    """Short names of files for metrics, if they are unique; otherwise the paths."""
    short = {file: Path(file).stem for file in files}
    return short if len(set(short.values())) == len(files) else {file: file for file in files}


@contextmanager
def naming(places: Mapping[str, str]) -> Iterator[None]:
    """Replace the names of eval sets in warnings by the names of the dev files."""
    show = warnings.showwarning

    def show_named(message: Warning | str, *rest: Any, **more: Any) -> None:
        text = str(message)
        for place, file in places.items():
            text = text.replace(place, file, 1)
        show(text, *rest, **more)

    warnings.showwarning = show_named
    try:
        yield
    finally:
        warnings.showwarning = show


def tell_of_checkpoint(checkpoint: str | None) -> list[str]:
    """The message after an interrupt: whether training can be resumed."""
    if checkpoint is None or not Path(checkpoint).exists():  # the first one was not due yet
        return ["no model was written"]
    return [f"no model was written; the same command resumes from {checkpoint}"]


def summarise(
    model: Any,
    data: TrainingFiles,
    dev: Mapping[str, Batch],
    recipe: Recipe,
    options: argparse.Namespace,
    seconds: float,
) -> None:
    """Print what was trained, and its scores."""
    from hedgerow.files import display_name
    from hedgerow.shown import best_step

    size, file = Path(options.model_file).stat().st_size, name_training_files(options.train)
    print(f"{file}: {data.describe()}, {count_of(len(model.classes_), 'label')}")
    print(describe_features(recipe))
    print(f"{type(model).__name__}: {describe_training(model)}")
    if hasattr(model, "base_"):
        print(f"on top of a {type(model.base_).__name__}: {describe_training(model.base_)}")
    for name, batch in dev.items():
        predicted = model.predict(batch.X, **batch.graph)
        print(f"{display_name(name)}: {describe_scores(batch.y, predicted)}")
    if "validation_accuracy" in model.history_:
        best = best_step(model)
        assert best is not None
        figures = model.history_.at(best)
        accuracy = "no round improved on the base model"
        if figures:
            accuracy = f"accuracy {format_share(figures['validation_accuracy'])}"
        print(f"held out of {file}: {accuracy}")
    print(f"{options.model_file}: {format_size(size)}, {seconds:.1f} s")


def describe_scores(y_true: Any, y_pred: Any) -> str:
    """Accuracy, and the F1 of chunks if labels look like chunks."""
    from hedgerow.metrics import label_scores
    from hedgerow.metrics.known_chunks import look_like_chunks, score_known_chunks

    scores = label_scores(y_true, y_pred)
    text = f"accuracy {format_share(scores.accuracy)}"
    if look_like_chunks(scores.labels):
        text += f", F1 of chunks {format_share(score_known_chunks(y_true, y_pred).f1)}"
    return text
