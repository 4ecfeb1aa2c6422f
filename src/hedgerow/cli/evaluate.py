"""hedgerow eval: score a model on a labelled file, or compare two models."""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from hedgerow.cli.errors import CommandError, telling
from hedgerow.cli.intervals import Intervals
from hedgerow.cli.models import DECODERS, load_model, recipe_of
from hedgerow.cli.options import Commands, add_decode, add_jobs, add_model, begin_command
from hedgerow.cli.text import FEW_LABELS, format_share, format_table
from hedgerow.counting import count_of

if TYPE_CHECKING:
    from hedgerow.decoding import Decode
    from hedgerow.estimator import Estimator
    from hedgerow.files import Batch
    from hedgerow.metrics import ChunkScores, LabelScores, Scores

SUMMARY = "score a model, or two, on a labelled file"
DESCRIPTION = """\
Compare the labels of a file with the predictions of a model.

Prints the accuracy (and the accuracy of each of the two decoders), the sequence
accuracy (the share of sequences without an error), precision, recall and F1 of
every label, the confusion matrix (its largest entries if there are many
labels), and the log-likelihood. Labels are predicted with the decoder of the
model, or with --decode. A label that did not occur in training counts as an
error.

If labels look like chunks (B-NP, I-NP, O), it also prints the scores of chunks,
counted as in the CoNLL evaluation script. For two models it prints the summary
scores of both and the result of McNemar's test, but not the scores of every
label and chunk type.

--bootstrap draws whole sequences with replacement, N times, and prints the 95 %
confidence intervals of the main scores; with two models, the intervals and
p-values of the differences between their scores.
"""
EXAMPLES = """\
  hedgerow eval chunks.hedgerow test.txt
  hedgerow eval chunks.hedgerow test.txt --strict IOB2
  hedgerow eval chunks.hedgerow test.txt other.hedgerow --bootstrap 1000
  hedgerow eval chunks.hedgerow test.txt.gz --json > scores.json
"""
N_CONFUSIONS = 10


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = begin_command(commands, "eval", run, SUMMARY, DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add_model(parser)
    add("file", metavar="FILE", help="labelled file; - is standard input")
    add("other", metavar="MODEL2", nargs="?", help="another model to compare with the first")
    add(
        "--strict",
        metavar="SCHEME",
        help="count only chunks that follow a scheme, IOB2, IOE2, IOBES or BILOU, as the strict "
        "mode of seqeval does",
    )
    add(
        "--bootstrap",
        type=int,
        metavar="N",
        help="print confidence intervals from N bootstrap samples",
    )
    add("--json", action="store_true", help="write one JSON object for programs to read")
    add_decode(parser)
    add_jobs(parser)


@dataclass
class Comparison:
    """True labels of a file and the predictions of a model."""

    decode: Decode
    n_right: Counter[Decode] = field(default_factory=Counter)  # with each decoder
    y_true: list[list[Any]] = field(default_factory=list)
    y_pred: list[list[Any]] = field(default_factory=list)
    log_likelihood: float = 0.0
    n_unknown: int = 0

    def add(self, model: Estimator, batch: Batch, file: str) -> None:
        """Label more sequences of a file, which is named in messages."""
        assert batch.y is not None
        known = set(model.classes_.tolist())
        with telling(f"{file}: "):
            for decode in DECODERS:
                labels_of = model.predict(batch.X, decode=decode, **batch.graph)
                found = [labels.tolist() for labels in labels_of]
                self.n_right[decode] += sum(map(sum, find_right(batch.y, found)))
                if decode == self.decode:
                    self.y_pred += found
            heard = [[label if label in known else None for label in y] for y in batch.y]
            log_likelihoods = model.log_likelihood(batch.X, heard, **batch.graph)
            self.log_likelihood += float(log_likelihoods.sum())
        self.y_true += batch.y
        self.n_unknown += sum(
            label not in known and label is not None for y in batch.y for label in y
        )

    @property
    def right(self) -> list[list[bool]]:
        """Whether each labelled position is correct, one list per sequence."""
        return find_right(self.y_true, self.y_pred)


def find_right(y_true: list[list[Any]], y_pred: list[list[Any]]) -> list[list[bool]]:
    """Whether each labelled position is correct, one list per sequence."""
    return [
        [label == guess for label, guess in zip(*both, strict=True) if label is not None]
        for both in zip(y_true, y_pred, strict=True)
    ]


@dataclass(frozen=True)
class Result:
    """The scores of a model."""

    path: str
    decode: Decode
    accuracies: Mapping[Decode, float]  # with each decoder
    labels: LabelScores
    chunks: ChunkScores | None
    n_sequences: int
    log_likelihood: float
    n_unknown: int

    def to_json(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "model": self.path,
            "n_sequences": self.n_sequences,
            "n_positions": self.labels.n_positions,
            "decode": self.decode,
            "accuracy": self.labels.accuracy,
            "accuracy_by_decoder": dict(self.accuracies),
            "sequence_accuracy": self.labels.sequence_accuracy,
            "log_likelihood": self.log_likelihood if math.isfinite(self.log_likelihood) else None,
            "n_unknown_labels": self.n_unknown,
            "by_label": {str(label): asdict(s) for label, s in self.labels.by_label.items()},
            "chunks": None if self.chunks is None else asdict(self.chunks),
            "labels": [str(label) for label in self.labels.labels],
            "confusion": self.labels.confusion.tolist(),
        }


def run(options: argparse.Namespace) -> None:
    """Score one or two models, and print the scores."""
    if options.other is not None and options.file == "-":
        raise CommandError("two models cannot both read standard input; save it to a file")
    first = label_file(options.model, options)
    result = score(options.model, first, options.strict)
    if options.other is None:
        print_result(result, find_intervals([result], [first], options), options)
        return
    second = label_file(options.other, options)
    if second.y_true != first.y_true:
        raise CommandError(
            f"{options.model} and {options.other} read different labels or sequences from "
            f"{options.file}; they were trained with different label or group columns: compare "
            "models that have the same ones"
        )
    results = [result, score(options.other, second, options.strict)]
    print_two(results, first, second, options)


def label_file(path: str, options: argparse.Namespace) -> Comparison:
    """Label all of a file with a model."""
    from hedgerow.files import display_name, stream_file

    model = load_model(path, options.jobs)
    comparison = Comparison(options.decode or model.decode_)
    file = display_name(options.file)
    with telling():
        recipe = recipe_of(model, path, options.file)
        for batch in stream_file(options.file, recipe, labels=True):
            comparison.add(model, batch, file)
    if not any(comparison.right):
        raise CommandError(f"{file} has no labels to compare with")
    return comparison


def score(path: str, comparison: Comparison, scheme: str | None) -> Result:
    """All scores of a model."""
    from hedgerow.metrics import label_scores
    from hedgerow.metrics.known_chunks import look_like_chunks, score_known_chunks

    labels, chunks = label_scores(comparison.y_true, comparison.y_pred), None
    if scheme is not None or look_like_chunks(labels.labels):
        with telling("" if scheme is None else "--strict: "):
            chunks = score_known_chunks(comparison.y_true, comparison.y_pred, scheme)
    return Result(
        path,
        comparison.decode,
        {name: n_right / labels.n_positions for name, n_right in comparison.n_right.items()},
        labels,
        chunks,
        len(comparison.y_true),
        comparison.log_likelihood,
        comparison.n_unknown,
    )


def find_intervals(
    results: list[Result], comparisons: list[Comparison], options: argparse.Namespace
) -> Intervals:
    """Confidence intervals of the main scores, or of their differences, if requested."""
    with telling("--bootstrap: "):
        return Intervals.find(
            comparisons[0].y_true,
            [comparison.y_pred for comparison in comparisons],
            options.bootstrap,
            have_chunks=all(result.chunks is not None for result in results),
            scheme=options.strict,
        )


def describe_size(result: Result) -> str:
    """The size of the evaluation data."""
    positions = count_of(result.labels.n_positions, "position")
    return f"{count_of(result.n_sequences, 'sequence')}, {positions}"


def print_result(result: Result, intervals: Intervals, options: argparse.Namespace) -> None:
    """The scores of a model."""
    from hedgerow.files import display_name

    if options.json:
        scores = {"file": options.file, **result.to_json(), **intervals.to_json()}
        print(json.dumps(scores, indent=2))
        return
    labels, chunks, file = result.labels, result.chunks, display_name(options.file)
    print(f"{file}: {describe_size(result)}\n")
    print(format_table(*totals([result])))
    intervals.print()
    if result.n_unknown:
        print(
            f"\npositions with a label that the model does not know: {result.n_unknown:,}\n"
            "they count as mistakes, and are left out of the log-likelihood"
        )
    print(f"\n{format_table(*score_rows('label', labels.by_label))}")
    if chunks is not None:
        print(f"\n{format_table(*score_rows('chunk', {**chunks.by_type, 'all': chunks}))}")
    print(f"\n{confusions(labels)}")


def print_two(
    results: list[Result], first: Comparison, second: Comparison, options: argparse.Namespace
) -> None:
    """The scores of two models side by side, and whether they differ."""
    from hedgerow.files import display_name
    from hedgerow.stats import mcnemar

    sides = [[s for s in comparison.right if s] for comparison in (first, second)]
    tests = {
        "positions": mcnemar(*(list(chain.from_iterable(side)) for side in sides)),
        "sequences": mcnemar(*(list(map(all, side)) for side in sides)),
    }
    intervals = find_intervals(results, [first, second], options)
    if options.json:
        models = [result.to_json() for result in results]
        answers = {name: asdict(test) for name, test in tests.items()}
        scores = {"file": options.file, "models": models, "mcnemar": answers}
        print(json.dumps(scores | intervals.to_json(), indent=2))
        return
    print(f"{display_name(options.file)}: {describe_size(results[0])}\n")
    print(format_table(*totals(results)))
    intervals.print()
    rows = [
        [name, f"{test.n_only_a:,}", f"{test.n_only_b:,}", f"{test.p_value:.3g}"]
        for name, test in tests.items()
    ]
    header = ["McNemar's test", "only the first right", "only the second right", "p"]
    print(f"\n{format_table(header, rows)}")
    print(
        "\nneighbouring positions are not independent: the test of whole sequences is more reliable"
    )


def totals(results: list[Result]) -> tuple[list[str], list[list[str]]]:
    """Summary scores, one column per model; header and rows."""
    rows = [
        ["accuracy", *(format_share(r.labels.accuracy) for r in results)],
        *(
            [words, *(format_share(r.accuracies[decode]) for r in results)]
            for decode, words in DECODERS.items()
        ),
        ["decoder", *(r.decode for r in results)],
        ["sequence accuracy", *(format_share(r.labels.sequence_accuracy) for r in results)],
    ]
    if all(r.chunks is not None for r in results):
        rows.append(["F1 of chunks", *(format_share(r.chunks.f1) for r in results if r.chunks)])
    rows.append(["log-likelihood", *(f"{r.log_likelihood:,.1f}" for r in results)])
    header = ["", *(r.path for r in results)]
    return header if len(results) > 1 else rows.pop(0), rows


def score_rows(name: str, scores: Mapping[Any, Scores]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table of precision, recall and F1."""
    header = [name, "precision", "recall", "F1", "true", "predicted", "correct"]
    rows = [
        [
            str(key),
            *(f"{100 * share:.2f}" for share in (one.precision, one.recall, one.f1)),
            *(f"{count:,}" for count in (one.n_true, one.n_predicted, one.n_correct)),
        ]
        for key, one in scores.items()
    ]
    return header, rows


def confusions(scores: LabelScores) -> str:
    """The confusion matrix if it is small, otherwise its largest off-diagonal entries."""
    names = [str(label) for label in scores.labels]
    counts = scores.confusion.tolist()
    if len(names) <= FEW_LABELS:
        rows = [[name, *map(str, row)] for name, row in zip(names, counts, strict=True)]
        return format_table(["true \\ predicted", *names], rows)
    wrong = [
        (count, true, predicted)
        for true, row in zip(names, counts, strict=True)
        for predicted, count in zip(names, row, strict=True)
        if count and true != predicted
    ]
    if not wrong:
        return "no mistakes"
    largest = sorted(wrong, key=lambda entry: -entry[0])[:N_CONFUSIONS]
    rows = [[true, predicted, f"{count:,}"] for count, true, predicted in largest]
    return format_table(["largest confusions: true", "predicted", "positions"], rows)
