"""Queries about facts as attributes: accuracy compared with flat attributes, and cost.

    relational.py shell [--sessions N] [--noise P]      # files that are the same, under new names
    relational.py deprel --data DIR [--sentences N]     # dependency relations, UD-EWT
    relational.py cost [--largest N]                    # seconds, queries and memory

`shell` trains on sessions of a shell and tests on sessions with other files. The label of a command
is whether its file is that of the previous command, of the one before that, or of neither; with
probability `--noise` it is random. Only the equality of files is informative, so flat attributes
cannot be better than the most frequent label.

`deprel` labels words with their relation to their head, given the words, their parts of speech and
the dependency tree: a flat window of two words to each side, compared with queries about heads,
children and siblings. `relational_trees.py` has trees that find longer queries themselves.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common

from hedgerow import LinearCRF, TreeCRF
from hedgerow.relational import At, Atoms, RelationalFeatures
from hedgerow.relational.database import Database, Relation

COMMANDS = ("cd", "ls", "mv", "tex")
# Words as in a flat window; links to heads, to the left or to the right; and the reverse links, to
# children.
FLAT = ["word(+t,#w)", "ending(+t,#e)", "upos(+t,#u)"]
HEADS = ["left(+t,-t)", "right(+t,-t)"]
CHILDREN = ["left(-t,+t)", "right(-t,+t)"]
# Modes and depths; three literals reach the children of the head.
VARIANTS: dict[str, tuple[list[str], int]] = {
    "flat": (FLAT, 1),
    "heads": ([*FLAT, *HEADS], 2),
    "heads and children": ([*FLAT, *HEADS, *CHILDREN], 2),
    "and siblings": ([*FLAT, *HEADS, *CHILDREN], 3),
}


def draw_sessions(
    n_sessions: int, first: int, noise: float, rng: np.random.Generator
) -> tuple[list[Any], list[Any], list[Any]]:
    """Sessions of 20 commands, each session with its own files; labels; and labels without
    noise."""
    sequences, labels, clean = [], [], []
    for session in range(first, first + n_sessions):
        files: list[str] = []
        truth = []
        for number in range(20):
            choice = str(rng.choice(["1 before", "2 before", "other"]))
            if len(files) < 2 or (choice == "2 before" and files[-1] == files[-2]):
                choice = "other"
            file = {"1 before": files[-1:], "2 before": files[-2:-1]}.get(choice) or [""]
            files.append(file[0] if choice != "other" else f"f{session}.{number}")
            truth.append(choice)
        wrong = rng.random(20) < noise
        drawn = rng.choice(["1 before", "2 before", "other"], 20)
        sequences.append([[(str(rng.choice(COMMANDS)), file)] for file in files])
        labels.append(np.where(wrong, drawn, truth).tolist())
        clean.append(truth)
    return sequences, labels, clean


def flatten(sequences: list[Any]) -> list[Any]:
    """Commands and files of a window of two positions to each side, as dicts."""
    found = []
    for sequence in sequences:
        rows: list[dict[str, str]] = [{} for _ in sequence]
        for place, [(command, file)] in enumerate(sequence):
            for offset in range(-2, 3):
                if 0 <= place + offset < len(rows):
                    rows[place + offset] |= {f"{offset}:command": command, f"{offset}:file": file}
        found.append(rows)
    return found


def measure_shell(options: argparse.Namespace) -> Iterator[common.Record]:
    """Accuracy on sessions whose files did not occur in training."""
    rng = np.random.default_rng(0)
    X, y, _ = draw_sessions(options.sessions, 0, options.noise, rng)
    X_test, y_test, clean = draw_sessions(options.sessions, options.sessions, options.noise, rng)
    labels, truth = np.concatenate(y_test), np.concatenate(clean)
    frequent = max((labels == label).mean() for label in set(labels))
    yield {
        "most frequent label": round(float(frequent), 4),
        "ceiling": round(float((labels == truth).mean()), 4),
    }
    modes = [f"{command}(+t,+-file)" for command in COMMANDS]
    features = RelationalFeatures(modes, window=2, min_count=5)
    with common.Stopwatch() as watch:
        queries, queries_test = features.fit_transform(X), features.transform(X_test)
    inputs = {
        "flat": (flatten(X), flatten(X_test)),
        "relational": (queries, queries_test),
    }
    short = RelationalFeatures([f"{command}(+t,-file)" for command in COMMANDS], depth=1, window=2)
    short.set_params(modes=[*short.modes, *(f"{command}(+t,+file)" for command in COMMANDS)])
    crf = TreeCRF(n_rounds=60, n_jobs=1, queries=short, max_literals=2)
    with common.Stopwatch() as training:
        crf.fit(X, y)
    yield {
        "model": "TreeCRF",
        "input": "refined",
        "accuracy": round(crf.score(X_test, y_test), 4),
        "queries": crf.queries_.n_queries_,
        "seconds to train": round(training.cpu_seconds, 2),
    }
    for crf in (LinearCRF(n_jobs=1), TreeCRF(n_rounds=60, n_jobs=1)):
        for name, (train, test) in inputs.items():
            with common.Stopwatch() as training:
                crf.fit(train, y)
            yield {
                "model": type(crf).__name__,
                "input": name,
                "accuracy": round(crf.score(test, y_test), 4),
                "queries": features.n_queries_ if name == "relational" else None,
                "seconds for queries": round(watch.cpu_seconds, 2) if name != "flat" else None,
                "seconds to train": round(training.cpu_seconds, 2),
            }


def read_sentences(path: Path, n_sentences: int | None) -> tuple[list[Any], list[Any]]:
    """Sentences as facts, and relations to the head without subtypes."""
    sequences: list[Any] = []
    labels: list[Any] = []
    words: list[list[str]] = []
    with gzip.open(path, "rt", encoding="utf8") as lines:
        for line in lines:
            columns = line.rstrip("\n").split("\t")
            if columns[0].isdigit():
                words.append(columns)
            elif columns == [""] and words:
                sequences.append(list(map(describe_word, words)))
                labels.append([word[7].partition(":")[0] for word in words])
                words = []
                if len(labels) == n_sentences:
                    break
    return sequences, labels


def describe_word(word: list[str]) -> list[tuple[Any, ...]]:
    number, head = int(word[0]), int(word[6])
    facts: list[tuple[Any, ...]] = [
        ("word", word[1].lower()),
        ("ending", word[1].lower()[-3:]),
        ("upos", word[3]),
    ]
    if head:
        facts.append(("left" if head < number else "right", At(head - 1)))
    return facts


def join_names(one: Any, two: Any) -> list[Any]:
    """The names of both at each position."""
    return [
        [sorted({*a, *b}) for a, b in zip(x, y, strict=True)] for x, y in zip(one, two, strict=True)
    ]


def measure_deprel(options: argparse.Namespace) -> Iterator[common.Record]:
    """Accuracy of dependency relations, with and without queries about the tree."""
    folder = options.data / "ud_english_ewt"
    X, y = read_sentences(folder / "en_ewt-ud-train.conllu.gz", options.sentences)
    X_test, y_test = read_sentences(folder / "en_ewt-ud-test.conllu.gz", options.sentences)
    yield {"words to train on": sum(map(len, y)), "words to test on": sum(map(len, y_test))}
    # Trees have a window; a linear model needs attributes of the window.
    window = RelationalFeatures(FLAT, depth=1, window=2, min_count=options.min_count)
    around, around_test = window.fit_transform(X), window.transform(X_test)
    for name in options.variants or VARIANTS:
        modes, depth = VARIANTS[name]
        features = RelationalFeatures(
            modes, depth=depth, min_count=options.min_count, max_queries=10**6
        )
        with common.Stopwatch() as watch:
            train, test = features.fit_transform(X), features.transform(X_test)
        inputs: dict[Any, Any] = {
            LinearCRF(n_jobs=1, max_iter=100, tol=0): (
                join_names(train, around),
                join_names(test, around_test),
            ),
            TreeCRF(window=2, n_rounds=options.rounds, n_jobs=1): (train, test),
        }
        for crf, (given, asked) in inputs.items():
            with common.Stopwatch() as training:
                crf.fit(given, y)
            yield {
                "model": type(crf).__name__,
                "input": name,
                "accuracy": round(crf.score(asked, y_test), 4),
                "queries": features.n_queries_,
                "seconds for queries": round(watch.cpu_seconds, 2),
                "seconds to train": round(training.cpu_seconds, 2),
            }


def draw_database(n_facts: int, n_predicates: int, rng: np.random.Generator) -> Database:
    """One fact of each predicate at every position; sequences of 100, with their own constants."""
    n_positions = n_facts // n_predicates
    offsets = np.unique([*range(0, n_positions, 100), n_positions]).astype(np.int64)
    positions = np.arange(n_positions, dtype=np.int32)
    sequence_of = positions // 100
    relations = {
        f"p{number}": Relation(
            (True, False),
            np.column_stack(
                [positions, 20 * sequence_of + rng.integers(0, 20, n_positions)]
            ).astype(np.int32),
            sequence_of,
            positions.astype(np.int64) * n_predicates + number,
        )
        for number in range(n_predicates)
    }
    return Database.of(offsets, [f"c{n}" for n in range(20 * len(offsets))], relations)


def measure_cost(options: argparse.Namespace) -> Iterator[common.Record]:
    """Seconds, queries and memory, by number of facts, of predicates, and of literals."""
    cases = [(n, 4, 2) for n in (10**3, 10**4, 10**5, 10**6, 10**7) if n <= options.largest]
    middle = min(10**5, options.largest)
    cases += [(middle, 4, depth) for depth in (1, 2, 3)]
    cases += [(middle, n_predicates, 2) for n_predicates in (1, 2, 4, 8)]
    for n_facts, n_predicates, depth in cases:
        X = Atoms.from_database(draw_database(n_facts, n_predicates, np.random.default_rng(0)))
        modes = [f"p{number}(+t,+-c)" for number in range(n_predicates)]
        features = RelationalFeatures(modes, window=1, depth=depth, min_count=2)
        with common.Stopwatch() as watch:
            features.fit_transform(X)
        with common.Stopwatch() as again:
            features.transform(X)
        yield {
            "facts": n_facts,
            "positions": n_facts // n_predicates,
            "predicates": n_predicates,
            "depth": depth,
            "queries": features.n_queries_,
            "attributes": int(features.counts_.sum()),
            "seconds": round(watch.cpu_seconds, 3),
            "seconds to transform": round(again.cpu_seconds, 3),
            "MiB": round(peak_mib(lambda f=features, x=X: f.fit_transform(x)), 1),
        }


def peak_mib(call: Callable[[], object]) -> float:
    """Peak memory that a call allocates, including its result."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1024**2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    shell = commands.add_parser("shell")
    shell.add_argument("--sessions", type=int, default=200, help="to train on, and to test on")
    shell.add_argument("--noise", type=float, default=0.05, help="share of random labels")
    deprel = commands.add_parser("deprel")
    deprel.add_argument("--data", type=Path, required=True, help="folder with ud_english_ewt")
    deprel.add_argument("--sentences", type=int, help="of each file; all by default")
    deprel.add_argument("--min-count", type=int, default=3)
    deprel.add_argument("--rounds", type=int, default=60)
    deprel.add_argument("--variants", nargs="*", choices=VARIANTS, help="only these")
    cost = commands.add_parser("cost")
    cost.add_argument("--largest", type=int, default=10**6, help="number of facts")
    options = parser.parse_args()
    measure = {"shell": measure_shell, "deprel": measure_deprel, "cost": measure_cost}
    machine, results = common.machine_facts(), []
    for record in measure[options.command](options):
        common.log(str({name: value for name, value in record.items() if value is not None}))
        results.append(record)
    common.print_json({"results": results, "machine": machine})


if __name__ == "__main__":
    main()
