"""Training files, which are read by this process or by the workers of a cluster."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from hedgerow.cli.errors import CommandError
from hedgerow.counting import count_of

if TYPE_CHECKING:
    from hedgerow.estimator import Estimator
    from hedgerow.files import Batch, Recipe

# Reading fewer rows is too fast for a progress bar.
MANY_ROWS = 1 << 20


class TrainingFiles(Protocol):
    """Training data."""

    def features(self) -> Any:
        """The features: all rows, or the first rows of Parquet files."""

    def fit(self, model: Any, **arguments: Any) -> None:
        """Train a model on the data."""

    def describe(self) -> str:
        """The size of the data, as text."""


def find_estimator(name: str, options: argparse.Namespace) -> Any:
    """The estimator of this name, for one machine or for a cluster."""
    if options.workers is None and options.cluster is None:
        return getattr(import_module("hedgerow"), name)
    try:
        return getattr(import_module("hedgerow.dask"), name)
    except ImportError as error:
        raise CommandError(
            f"--workers and --cluster need further packages ({error}); pip install 'hedgerow[dask]'"
        ) from error


def open_training_files(options: argparse.Namespace, recipe: Recipe) -> TrainingFiles:
    """Open the TRAIN files; unless a cluster reads them, they are read here."""
    from hedgerow.files import read_file

    files = options.train
    on_cluster = options.cluster is not None or options.workers is not None
    if len(files) > 1 or on_cluster:
        check_parquet(
            files, recipe, "--cluster and --workers" if on_cluster else "training on several files"
        )
    if on_cluster:
        return ClusterFiles(options, recipe)
    if recipe.format != "parquet" or files == ["-"]:
        return ReadFiles(read_file(files[0], recipe), recipe, files)
    return ReadFiles(read_with_bar(files, recipe, options.quiet), recipe, files)


def check_parquet(files: list[str], recipe: Recipe, what: str) -> None:
    """Raise CommandError unless all files are Parquet files."""
    from hedgerow.files import adapt_recipe

    formats = {files[0]: recipe.format} | {f: adapt_recipe(recipe, f).format for f in files[1:]}
    for file, format in formats.items():
        if format != "parquet" or file == "-":
            raise CommandError(
                f"{file} is not a Parquet file; all files must be Parquet files for {what}"
            )


def read_with_bar(files: list[str], recipe: Recipe, quiet: bool) -> Batch:
    """Read Parquet files part by part."""
    from hedgerow.files import count_rows, read_parquet_files
    from hedgerow.progress import Progress

    n_rows = sum(map(count_rows, files))
    with Progress(n_rows, int(not quiet and n_rows >= MANY_ROWS), unit=" rows") as progress:
        return read_parquet_files(files, recipe, lambda n: progress.update({}, n))


def name_training_files(files: list[str]) -> str:
    """A name for all files together."""
    from hedgerow.files import display_name

    return display_name(files[0]) if len(files) == 1 else count_of(len(files), "file")


class ReadFiles:
    """Files that this process has read."""

    def __init__(self, batch: Batch, recipe: Recipe, files: list[str]) -> None:
        self._batch = batch
        self._recipe = recipe
        self._files = files

    def features(self) -> Any:
        """All features, or the features of the first rows of Parquet files."""
        from hedgerow.encode.table_store import StoredTable

        stored = isinstance(self._batch.X, StoredTable)
        return first_features(self._files[0], self._recipe) if stored else self._batch.X

    def fit(self, model: Estimator, **arguments: Any) -> None:
        """Train a model on the data."""
        batch = self._batch
        model.fit(batch.X, batch.y, sample_weight=batch.weights, **batch.graph, **arguments)

    def describe(self) -> str:
        """The size of the data, as text."""
        sequences = count_of(self._batch.n_sequences, "sequence")
        return f"{sequences}, {count_of(self._batch.n_positions, 'position')}"


class ClusterFiles:
    """Parquet files that the workers of a cluster read."""

    def __init__(self, options: argparse.Namespace, recipe: Recipe) -> None:
        self._options = options
        self._recipe = recipe

    def features(self) -> Any:
        """The features of the first rows."""
        return first_features(self._options.train[0], self._recipe)

    def fit(self, model: Any, **arguments: Any) -> None:
        """Train a model on the data."""
        from hedgerow.dask import WorkerError

        files = [os.path.abspath(file) for file in self._options.train]
        with connect(self._options) as client:
            try:
                model.fit_files(files, self._recipe, client=client, **arguments)
            except WorkerError as error:
                raise CommandError(str(error)) from error

    def describe(self) -> str:
        """The size of the data, as text."""
        from hedgerow.files import count_rows

        return count_of(sum(map(count_rows, self._options.train)), "position")


@contextmanager
def connect(options: argparse.Namespace) -> Iterator[Any]:
    """A client of the requested cluster."""
    from distributed import Client, LocalCluster

    if options.cluster is not None:
        try:
            client = Client(options.cluster, timeout=30)
        except (OSError, ValueError) as error:
            raise CommandError(
                f"there is no Dask scheduler at {options.cluster}: {error}; start one with the "
                "command 'dask scheduler', or give --workers N for workers on this machine"
            ) from error
        with client:
            yield client
        return
    n_threads = max(1, (os.cpu_count() or 1) // options.workers)
    with (
        LocalCluster(
            n_workers=options.workers,
            threads_per_worker=n_threads,
            dashboard_address=":0",
            silence_logs="CRITICAL",  # an error of a worker is raised here too
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def first_features(file: str, recipe: Recipe) -> Any:
    """Features of the first rows of a file."""
    from hedgerow.files import stream_file

    return next(stream_file(file, recipe)).X
