"""Labels on dependency trees: the English Web Treebank, with heads given.

    dependency_labels.py TASK --data DIR [--models linear trees] [--graphs chain tree ...] [...]

The tasks are ``deprel``, the relation of a word to its head by words, lemmas and parts of speech,
and ``upos``, its part of speech by words alone. All models of a task use the same attributes,
including those of the head and, with ``--relatives``, those of children and siblings. They differ
only in which labels depend on each other: none (``independent``), those of neighbours in the
sentence (``chain``, ``chain 2`` of order 2), or those of words and their heads (``tree``, ``tree
2``).

A line of JSON is printed for each model when it is done. Each is compared with the chain, if that
is trained before it or its predictions are in ``--folder``, which stores all predictions: McNemar's
test by tokens and by sentences, and the bootstrap over sentences.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
from tasks import read_table
from trees_common import add_settings

from hedgerow import LinearCRF, TreeCRF
from hedgerow.stats import bootstrap, mcnemar


class Word(NamedTuple):
    form: str
    lemma: str
    upos: str
    xpos: str
    head: int  # index of the head in the sentence, -1 for the root
    deprel: str


Sentence = list[Word]

OUTSIDE = Word("<none>", "<none>", "<none>", "<none>", -1, "<none>")
GRAPHS: dict[str, dict[str, Any]] = {
    "independent": {"order": 0},
    "chain": {"order": 1},
    "tree": {"order": 1},
    "chain 2": {"order": 2},
    "tree 2": {"order": 2},
}
REFERENCE = "chain"
MODELS = ("linear", "trees")


def read_sentences(folder: Path, name: str) -> list[Sentence]:
    """Sentences of a CoNLL-U file, without multiword tokens and empty nodes."""
    sentences: list[Sentence] = [[]]
    for row in read_table(folder / "ud_english_ewt" / f"en_ewt-ud-{name}.conllu.gz"):
        if row[0].isdigit():
            form, lemma, upos, xpos = row[1:5]
            sentences[-1].append(Word(form, lemma, upos, xpos, int(row[6]) - 1, row[7]))
        elif row == [""] and sentences[-1]:
            sentences.append([])
    return [sentence for sentence in sentences if sentence]


def word_at(sentence: Sentence, place: int) -> Word:
    return sentence[place] if 0 <= place < len(sentence) else OUTSIDE


def shape_of(form: str) -> str:
    """``Aa-0`` for ``Lyon-12``."""
    kinds = re.sub(r"\d", "0", re.sub(r"[^\W\dA-Z_]", "a", re.sub(r"[A-Z]", "A", form)))
    return re.sub(r"(.)\1+", r"\1", kinds)


def place_attributes(sentence: Sentence, at: int, children: list[list[int]]) -> Iterator[str]:
    """The place of a word in the tree: distance to its head, its children and its siblings."""
    head = sentence[at].head
    if head < 0:
        yield "root"
    else:
        distance = at - head
        yield f"side={'right' if distance > 0 else 'left'}"
        yield f"distance={max(-6, min(distance, 6))}"
        siblings = [place for place in children[head] if (place > head) == (at > head)]
        rank = siblings.index(at)
        yield f"nearest={rank == 0 if at > head else rank == len(siblings) - 1}"
        yield f"siblings={min(len(children[head]), 5)}"
    n_left = sum(place < at for place in children[at])
    yield f"children={min(n_left, 4)}+{min(len(children[at]) - n_left, 4)}"


def deprel_attributes(sentence: Sentence, at: int) -> Iterator[str]:
    """Words, lemmas and parts of speech of a word, its head and its neighbours."""
    word, head = sentence[at], word_at(sentence, sentence[at].head)
    side = "right" if at > word.head else "left"
    for name, one in (("", word), ("head:", head)):
        yield f"{name}form={one.form.lower()}"
        yield f"{name}lemma={one.lemma}"
        yield f"{name}upos={one.upos}"
        yield f"{name}xpos={one.xpos}"
    for offset in (-2, -1, 1, 2):
        yield f"upos{offset:+d}={word_at(sentence, at + offset).upos}"
    for offset in (-1, 1):
        yield f"lemma{offset:+d}={word_at(sentence, at + offset).lemma}"
    yield f"upos/head={word.upos}/{head.upos}/{side}"
    yield f"xpos/head={word.xpos}/{head.xpos}/{side}"
    yield f"lemma/head={word.lemma}/{head.upos}/{side}"
    yield f"upos/head:lemma={word.upos}/{head.lemma}/{side}"
    yield f"suffix={word.form[-3:].lower()}"


def upos_attributes(sentence: Sentence, at: int) -> Iterator[str]:
    """Forms, shapes, prefixes and suffixes of a word, its head and its neighbours."""
    form, head = sentence[at].form, word_at(sentence, sentence[at].head).form
    for name, one in (("", form), ("head:", head)):
        yield f"{name}form={one}"
        yield f"{name}lower={one.lower()}"
        yield f"{name}shape={shape_of(one)}"
        for length in range(1, min(len(one), 4) + 1):
            yield f"{name}prefix={one[:length].lower()}"
            yield f"{name}suffix={one[-length:].lower()}"
    for offset in (-2, -1, 1, 2):
        yield f"lower{offset:+d}={word_at(sentence, at + offset).form.lower()}"
    for offset in (-1, 1):
        yield f"shape{offset:+d}={shape_of(word_at(sentence, at + offset).form)}"
        yield f"suffix{offset:+d}={word_at(sentence, at + offset).form[-3:].lower()}"
    yield f"first={at == 0}"


def relative_attributes(
    sentence: Sentence, at: int, children: list[list[int]], task: str
) -> Iterator[str]:
    """Children and siblings: parts of speech and lemmas, or forms where these are the labels."""
    head = sentence[at].head
    relatives = {"child": children[at], "sibling": children[head] if head >= 0 else []}
    for name, places in relatives.items():
        for place in places:
            word, side = sentence[place], "right" if place > at else "left"
            if place == at:
                continue
            if task == "upos":
                yield f"{name}={word.form.lower()}/{side}"
            else:
                yield f"{name}:upos={word.upos}/{side}"
                yield f"{name}:lemma={word.lemma}"


ATTRIBUTES = {"deprel": deprel_attributes, "upos": upos_attributes}


def describe(task: str, sentence: Sentence, relatives: bool) -> list[list[str]]:
    """Names of the attributes of each word."""
    children: list[list[int]] = [[] for _ in sentence]
    for at, word in enumerate(sentence):
        if word.head >= 0:
            children[word.head].append(at)
    return [
        [
            *ATTRIBUTES[task](sentence, at),
            *place_attributes(sentence, at, children),
            *(relative_attributes(sentence, at, children, task) if relatives else ()),
        ]
        for at in range(len(sentence))
    ]


class Part(NamedTuple):
    """Training, development or test part: attributes, labels and heads of sentences."""

    X: list[list[list[str]]]
    y: list[list[str]]
    parents: list[Any]

    def graph(self, name: str) -> dict[str, Any]:
        """Heads, for the models on trees."""
        return {"parents": self.parents} if name.startswith("tree") else {}


def read_part(options: argparse.Namespace, name: str) -> Part:
    sentences = read_sentences(options.data, name)
    if name == "train":
        sentences = sentences[: options.sentences]
    known: dict[str, str] = {}  # keep each name in memory only once
    return Part(
        [
            [[known.setdefault(a, a) for a in attributes] for attributes in described]
            for described in (
                describe(options.task, sentence, options.relatives) for sentence in sentences
            )
        ],
        [[getattr(word, options.task) for word in sentence] for sentence in sentences],
        [np.array([word.head for word in sentence], np.int32) for sentence in sentences],
    )


def build(model: str, graph: str, options: argparse.Namespace) -> LinearCRF | TreeCRF:
    """Both estimators decode by marginals, which is best for accuracy."""
    shared = {"decode": "marginal", "n_jobs": options.jobs, **GRAPHS[graph]}
    if model == "linear":
        return LinearCRF(
            reg_lambda=options.reg_lambda, max_iter=options.iterations, tol=0, **shared
        )
    settings = {"random_state": 0, "learning_rate": options.learning_rate}
    return TreeCRF(n_rounds=options.rounds, **(shared | settings | dict(options.settings)))


def share_right(y: list[list[str]], predicted: list[Any]) -> float:
    right = sum(np.sum(np.array(a) == b) for a, b in zip(y, predicted, strict=True))
    return 100 * float(right) / sum(map(len, y))


def measure(
    model: str, graph: str, parts: dict[str, Part], options: argparse.Namespace
) -> tuple[dict[str, Any], list[list[str]]]:
    """Train one model; returns its scores on the development and test parts, and the test
    labels."""
    crf = build(model, graph, options)
    train, dev, test = parts["train"], parts["dev"], parts["test"]
    begin = time.perf_counter()
    crf.fit(train.X, train.y, **train.graph(graph))
    seconds = time.perf_counter() - begin
    predicted = crf.predict(test.X, **test.graph(graph))
    record = {
        "task": options.task,
        "model": model,
        "graph": graph,
        "relatives": options.relatives,
        "dev_accuracy": share_right(dev.y, crf.predict(dev.X, **dev.graph(graph))),
        "test_accuracy": share_right(test.y, predicted),
        "train_seconds": seconds,
        "loss": float(crf.loss_),
        "steps": crf.n_iter_ if isinstance(crf, LinearCRF) else crf.n_rounds_,
    }
    return record, [labels.tolist() for labels in predicted]


def compare(y: list[list[str]], a: list[list[str]], b: list[list[str]]) -> dict[str, Any]:
    """Compare `a` with `b`: difference in points, with significance tests."""
    right_a, right_b = (
        [np.array(truth) == labels for truth, labels in zip(y, side, strict=True)]
        for side in (a, b)
    )
    tokens = mcnemar(np.concatenate(right_a), np.concatenate(right_b))
    sentences = mcnemar([r.all() for r in right_a], [r.all() for r in right_b])
    found = bootstrap("accuracy", y, a, b, random_state=0)
    return {
        "difference": 100 * found.value,
        "interval_95": [100 * found.low, 100 * found.high],
        "bootstrap_p": found.p_value,
        "mcnemar_tokens": asdict(tokens),
        "mcnemar_sentences": asdict(sentences),
    }


class Predictions:
    """Predicted labels of the test part by model, stored in a folder if there is one."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.held: dict[tuple[str, ...], list[list[str]]] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def keep(self, *name: str, labels: list[list[str]]) -> None:
        self.held[name] = labels
        if self.folder is not None:
            self.path(name).write_text(json.dumps(labels))

    def find(self, *name: str) -> list[list[str]] | None:
        if name not in self.held and self.folder is not None and self.path(name).exists():
            self.held[name] = json.loads(self.path(name).read_text())
        return self.held.get(name)

    def path(self, name: tuple[str, ...]) -> Path:
        assert self.folder is not None
        return self.folder / ("-".join(name).replace(" ", "_") + ".json")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=ATTRIBUTES)
    parser.add_argument("--data", type=Path, required=True, help="folder with ud_english_ewt/")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--relatives", action="store_true", help="children and siblings too")
    parser.add_argument("--folder", type=Path, help="where predictions are kept and found")
    parser.add_argument("--jobs", type=int, help="threads; all cores unless given")
    parser.add_argument("--sentences", type=int, help="training sentences; all unless given")
    parser.add_argument("--iterations", type=int, default=100, help="of L-BFGS")
    parser.add_argument("--reg-lambda", type=float, default=1.0, help="L2 penalty, linear models")
    parser.add_argument("--rounds", type=int, default=100, help="of boosting")
    parser.add_argument("--learning-rate", type=float, default=0.5, help="of boosting")
    add_settings(parser)
    return parser.parse_args()


def main() -> None:
    options = read_options()
    parts = {name: read_part(options, name) for name in ("train", "dev", "test")}
    common.log("attributes built, training")
    truth, predictions = parts["test"].y, Predictions(options.folder)
    attributes = options.task + ("_relatives" if options.relatives else "")
    for model in options.models:
        for graph in options.graphs:
            record, predicted = measure(model, graph, parts, options)
            predictions.keep(attributes, model, graph, labels=predicted)
            reference = predictions.find(attributes, model, REFERENCE)
            if reference is not None and graph != REFERENCE:
                record[f"against_{REFERENCE}"] = compare(truth, predicted, reference)
            print(json.dumps(record | {"load_average": os.getloadavg()}), flush=True)


if __name__ == "__main__":
    main()
