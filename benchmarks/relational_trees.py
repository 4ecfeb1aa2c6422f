"""Trees that extend queries about facts: accuracy and cost.

    relational_trees.py deprel --data DIR [--sentences N]     # dependency relations, UD-EWT
    relational_trees.py entities --data DIR [--documents N]   # named entities, CoNLL-2003
    relational_trees.py growth [--largest N]                  # seconds, queries and memory

`deprel` labels words as `relational.py deprel` does. Trees begin with queries of one or two
literals, about the word, its head and its children, and find longer ones themselves. They are
compared with tree-shaped CRFs, in which the label of a word depends on that of its head.

`entities` labels documents, one sequence each, with and without relations: to the same word
elsewhere in the document, and to the kinds of entities that words were part of in other training
documents.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common

from hedgerow import TreeCRF
from hedgerow.metrics import chunk_scores
from hedgerow.relational import At, Atoms, RelationalFeatures
from hedgerow.relational.database import Database
from hedgerow.stats import bootstrap
from relational import CHILDREN, FLAT, HEADS, draw_database, peak_mib, read_sentences

# Modes, literals to begin with and by refinement, and whether labels depend on those of heads.
DEPREL: dict[str, tuple[list[str], int, int, bool]] = {
    "flat window": (FLAT, 1, 1, False),
    "heads and children": ([*FLAT, *HEADS, *CHILDREN], 2, 1, False),
    "heads and children, refined": ([*FLAT, *HEADS, *CHILDREN], 2, 3, False),
    "flat window, tree-shaped CRF": (FLAT, 1, 1, True),
    "heads and children, tree-shaped CRF": ([*FLAT, *HEADS, *CHILDREN], 2, 1, True),
}


def find_heads(sequences: list[Any]) -> list[list[int]]:
    """Index of the head of each word, -1 for a root."""
    return [
        [next((f[1].position for f in word if f[0] in ("left", "right")), -1) for word in sequence]
        for sequence in sequences
    ]


def measure_deprel(options: argparse.Namespace) -> Iterator[common.Record]:
    """Dependency relations by trees that refine queries, beside those that do not."""
    folder = options.data / "ud_english_ewt"
    X, y = read_sentences(folder / "en_ewt-ud-train.conllu.gz", options.sentences)
    X_test, y_test = read_sentences(folder / "en_ewt-ud-test.conllu.gz", options.sentences)
    for name in options.variants or DEPREL:
        modes, depth, max_literals, is_graph = DEPREL[name]
        crf = make_trees(options, modes, depth, max_literals)
        crf.set_params(ancestors=int(is_graph))
        graph, graph_test = (
            {"parents": find_heads(sequences)} if is_graph else {} for sequences in (X, X_test)
        )
        with common.Stopwatch() as training:
            crf.fit(Atoms(X), y, **graph)
        with common.Stopwatch() as prediction:
            accuracy = crf.score(Atoms(X_test), y_test, **graph_test)
        yield {
            "model": "TreeCRF",
            "input": name,
            "accuracy": round(accuracy, 4),
            "queries": crf.queries_.n_queries_,
            "refined": len(crf.queries_.refined_),
            "seconds to train": round(training.cpu_seconds, 2),
            "seconds to predict": round(prediction.cpu_seconds, 2),
        }


def make_trees(
    options: argparse.Namespace, modes: list[str], depth: int, max_literals: int
) -> TreeCRF:
    """Trees on queries, with a window of two positions to each side."""
    queries = RelationalFeatures(
        modes, depth=depth, min_count=options.min_count, max_queries=options.max_queries
    )
    return TreeCRF(
        window=2,
        n_rounds=options.rounds,
        n_jobs=1,
        queries=queries,
        max_literals=max_literals,
        decode="viterbi",
    )


def read_documents(path: Path, n_documents: int | None) -> tuple[list[Any], list[Any]]:
    """Documents of CoNLL-2003, each one sequence of (word, part of speech); and their labels."""
    documents: list[Any] = []
    labels: list[Any] = []
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        cells = line.split()
        if cells and cells[0] == "-DOCSTART-":
            documents.append([])
            labels.append([])
        elif cells:
            documents[-1].append((cells[0], cells[1]))
            labels[-1].append(cells[-1])
    kept = [n for n, document in enumerate(documents) if document][:n_documents]
    return [documents[n] for n in kept], [labels[n] for n in kept]


def describe_documents(
    documents: list[Any], named: list[set[tuple[str, str]]]
) -> tuple[list[Any], list[Any]]:
    """Facts about words, links to the next occurrence of the same word, and known entities."""
    sequences, per_sequence = [], []
    for document, known in zip(documents, named, strict=True):
        rows: list[list[tuple[Any, ...]]] = []
        last: dict[str, int] = {}
        for place, (word, tag) in enumerate(document):
            shape = "".join("A" if c.isupper() else "0" if c.isdigit() else "a" for c in word[:4])
            rows.append([("word", word), ("low", word.lower()), ("tag", tag), ("shape", shape)])
            if word in last and word[0].isupper():
                rows[last[word]].append(("again", At(place)))
                rows[place].append(("before", At(last[word])))
            last[word] = place
        sequences.append(rows)
        words = {word for word, _ in document}
        per_sequence.append([("was", *pair) for pair in sorted(known) if pair[0] in words])
    return sequences, per_sequence


def name_words(documents: list[Any], labels: list[Any]) -> list[set[tuple[str, str]]]:
    """For each document, the words in entities of other documents, with their kinds."""
    counts: dict[tuple[str, str], int] = {}
    own = []
    for document, row in zip(documents, labels, strict=True):
        pairs = zip(document, row, strict=True)
        own.append({(word, label[2:]) for (word, _), label in pairs if label != "O"})
        for pair in own[-1]:
            counts[pair] = counts.get(pair, 0) + 1
    return [{p for p, count in counts.items() if count > (p in mine)} for mine in own]


def measure_entities(options: argparse.Namespace) -> Iterator[common.Record]:
    """F1 of named entities, with and without relations, and gains with 95 % intervals."""
    folder = options.data / "conll2003"
    documents, y = read_documents(folder / "eng.train.gz", options.documents)
    tested, y_test = read_documents(folder / "eng.testb.gz", options.documents)
    everything = set().union(*name_words(documents, y))
    facts, own = describe_documents(documents, name_words(documents, y))
    facts_test, own_test = describe_documents(tested, [everything] * len(tested))
    X, X_test = Atoms(facts, per_sequence=own), Atoms(facts_test, per_sequence=own_test)
    yield {"words to train on": sum(map(len, y)), "words to test on": sum(map(len, y_test))}
    flat = ["word(+t,#w)", "low(+t,#l)", "tag(+t,#p)", "shape(+t,#s)"]
    links = ["again(+t,-t)", "before(+t,-t)"]
    known = ["word(+t,-w)", "was(+w,#kind)"]
    inputs = {
        "flat": (flat, 1, 1),
        "with links": ([*flat, *links], 2, 3),
        "with links and facts": ([*flat, *links, *known], 2, 3),
    }
    found: dict[str, Any] = {}
    for name, (modes, depth, max_literals) in inputs.items():
        crf = make_trees(options, modes, depth, max_literals)
        with common.Stopwatch() as training:
            crf.fit(X, y)
        found[name] = crf.predict(X_test)
        gain = bootstrap("chunk_f1", y_test, found[name], found["flat"], random_state=0)
        yield {
            "model": "TreeCRF",
            "input": name,
            "F1": round(chunk_scores(y_test, found[name]).f1, 4),
            "gain": [round(each, 4) for each in (gain.value, gain.low, gain.high)],
            "queries": crf.queries_.n_queries_,
            "refined": len(crf.queries_.refined_),
            "seconds to train": round(training.cpu_seconds, 2),
        }


def label_positions(database: Database) -> NDArray[np.bool_]:
    """Whether the constant of p0 equals the previous or the next one; one in ten is random."""
    rng = np.random.default_rng(1)
    constants = database.relations["p0"].arguments[:, 1]
    same = constants[1:] == constants[:-1]
    labels = np.append(False, same) | (np.append(same, False) & (constants % 2 == 0))
    return np.where(rng.random(len(labels)) < 0.1, rng.random(len(labels)) < 0.5, labels)


def measure_growth(options: argparse.Namespace) -> Iterator[common.Record]:
    """Seconds and memory of trees that refine queries, by facts, predicates and literals."""
    largest = options.largest
    cases = [(n, 4, 3) for n in (10**3, 10**4, 10**5, 10**6) if n <= largest]
    middle = min(10**4, largest)
    cases += [(middle, 4, max_literals) for max_literals in (2, 4, 5)]
    cases += [(middle, n_predicates, 3) for n_predicates in (1, 2, 8)]
    for n_facts, n_predicates, max_literals in cases:
        rng = np.random.default_rng(0)
        database = draw_database(n_facts, n_predicates, rng)
        X = Atoms.from_database(database)
        y = X.cut(label_positions(database))
        modes = [f"p{number}(+t,{sign}c)" for number in range(n_predicates) for sign in "-+"]
        queries = RelationalFeatures(modes, window=1, min_count=5)
        crf = TreeCRF(
            n_rounds=5, n_jobs=1, queries=queries, max_literals=max_literals, decode="viterbi"
        )
        with common.Stopwatch() as watch:
            crf.fit(X, y)
        yield {
            "facts": n_facts,
            "positions": n_facts // n_predicates,
            "predicates": n_predicates,
            "literals": max_literals,
            "queries": crf.queries_.n_queries_,
            "refined": len(crf.queries_.refined_),
            "accuracy": round(crf.score(X, y), 4),
            "seconds": round(watch.cpu_seconds, 2),
            "MiB": round(peak_mib(lambda f=crf, x=X, labels=y: f.fit(x, labels)), 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    deprel = commands.add_parser("deprel")
    deprel.add_argument("--sentences", type=int, help="of each file; all by default")
    deprel.add_argument("--variants", nargs="*", choices=DEPREL, help="only these")
    entities = commands.add_parser("entities")
    entities.add_argument("--documents", type=int, help="of each file; all by default")
    for some in (deprel, entities):
        some.add_argument("--data", type=Path, required=True, help="folder of the data sets")
        some.add_argument("--min-count", type=int, default=5)
        some.add_argument("--rounds", type=int, default=30)
        some.add_argument("--max-queries", type=int, default=10**5)
    growth = commands.add_parser("growth")
    growth.add_argument("--largest", type=int, default=10**6, help="number of facts")
    options = parser.parse_args()
    measure = {"deprel": measure_deprel, "entities": measure_entities, "growth": measure_growth}
    machine, results = common.machine_facts(), []
    for record in measure[options.command](options):
        common.log(str(record))
        results.append(record)
    common.print_json({"results": results, "machine": machine})


if __name__ == "__main__":
    main()
