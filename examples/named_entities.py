"""Find names of people, places and organisations, in sentences that belong to documents.

``python examples/named_entities.py train.txt test.txt`` takes files in CoNLL-2003 format: word,
part of speech, chunk label and entity label on a line, a blank line between sentences, a line
``-DOCSTART-`` before each document (gzipped files too). Without files it generates small documents
with made-up names. The attributes of words are in ``text_features.py``; a second model also uses
the predictions of a first one for the same word elsewhere in the document.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from text_features import (
    ENTITY_GROUPS,
    SENTENCE_GROUPS,
    Document,
    Labels,
    Token,
    describe,
    second_look,
    to_bioes,
)

from hedgerow import LinearCRF
from hedgerow.metrics import chunk_scores
from hedgerow.model_selection import cross_val_predict

Attributes = list[list[list[str]]]  # attribute names, by sentence and token


class Corpus:
    """The sentences of all documents, one after another, with the attributes of their tokens."""

    def __init__(self, documents: list[Document], groups: Iterable[str] = ENTITY_GROUPS) -> None:
        self.documents = documents
        known: dict[str, str] = {}  # keep each name in memory only once
        self.X = [
            [[known.setdefault(name, name) for name in names] for names in sentence]
            for document in documents
            for sentence in describe(document, groups)
        ]

    def folds(self, n_folds: int = 5) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Cross-validation folds of sentences: no document is in both parts of a fold."""
        fold = np.repeat(np.arange(len(self.documents)), list(map(len, self.documents))) % n_folds
        return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]

    def second_look(self, marginals: Iterable[NDArray[Any]], classes: Sequence[str]) -> Attributes:
        """Attributes from the predictions of a first model for the same words elsewhere."""
        rest = iter(marginals)
        return [
            names
            for document in self.documents
            for names in second_look(document, [next(rest) for _ in document], classes)
        ]


def join(X: Attributes, more: Attributes) -> Attributes:
    """Concatenate two lists of attributes for each token."""
    return [
        [own + others for own, others in zip(*sentence, strict=True)]
        for sentence in zip(X, more, strict=True)
    ]


def predict_twice(crf: Any, train: Corpus, y: list[Labels], *others: Corpus) -> list[Any]:
    """Labels of other corpora by a model that uses the predictions of a first one."""
    honest = cross_val_predict(crf, train.X, y, cv=train.folds(), method="predict_marginals")
    first = clone(crf).fit(train.X, y)
    second = clone(crf).fit(join(train.X, train.second_look(honest, first.classes_)), y)
    looks = [
        other.second_look(first.predict_marginals(other.X), first.classes_) for other in others
    ]
    return [second.predict(join(o.X, look)) for o, look in zip(others, looks, strict=True)]


def read_documents(path: Path) -> tuple[list[Document], list[Labels]]:
    """Documents, and the labels of all their sentences, one after another."""
    documents: list[Document] = []
    labels: list[Labels] = []
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for block in re.split(r"\n\s*\n", content.decode()):
        rows = [line.split() for line in block.splitlines() if line.strip()]
        if rows and rows[0][0] == "-DOCSTART-":
            documents.append([])
            del rows[0]
        if rows:
            documents[-1].append([Token(*row[:3]) for row in rows])
            labels.append([row[-1] for row in rows])
    return documents, labels


# Generated text: made-up names, in sentences that may or may not show what kind of name it is.
CLEAR = {
    "PER": ["{} said that it rained .", "Mrs {} was late .", "{} , who is 30 , left ."],
    "LOC": ["It rained in {} .", "They live near {} .", "The road to {} is closed ."],
    "ORG": ["Shares of {} rose .", "{} employs 300 people .", "The board of {} met ."],
}
UNCLEAR = ["{} was in the news .", "Nobody expected {} to win .", "We spoke about {} ."]
ENDINGS = {"PER": ["son", "ez", "ova"], "LOC": ["burg", "ton", "ia"], "ORG": ["co", "tec", "al"]}


def make_documents(n: int, rng: np.random.Generator) -> tuple[list[Document], list[Labels]]:
    """Documents about a few names each; the ending of a name is a weak hint of its kind."""
    documents: list[Document] = []
    labels: list[Labels] = []
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    for _ in range(n):
        document: Document = []
        names = []
        for kind in CLEAR:
            ending = rng.choice(ENDINGS[kind if rng.random() < 0.4 else rng.choice(list(ENDINGS))])
            names.append(("".join(rng.choice(syllables, 2)).title() + ending, kind))
        for _ in range(8):
            name, kind = names[rng.integers(len(names))]
            text = str(rng.choice(UNCLEAR if rng.random() < 0.5 else CLEAR[kind]))
            document.append([Token(w.format(name), "X", "O") for w in text.split()])
            labels.append(["I-" + kind if w == "{}" else "O" for w in text.split()])
        documents.append(document)
    return documents, labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="train and test file")
    files = parser.parse_args().files
    if len(files) not in (0, 2):
        parser.error(f"expected a training file and a test file, or no files; got {len(files)}")
    rng = np.random.default_rng(0)
    parts = [read_documents(file) for file in files] or [make_documents(40, rng) for _ in range(2)]
    (documents, y), (test_documents, y_test) = parts
    y, y_test = list(map(to_bioes, y)), list(map(to_bioes, y_test))
    print(f"{len(documents):,} documents for training, {len(test_documents):,} for testing.\n")

    crf = LinearCRF(reg_lambda=0.3, constraints="BIOES")
    print(f"{'attributes':<40}{'precision':>10}{'recall':>10}{'F1':>10}")
    for name, groups in {
        "of the sentence": SENTENCE_GROUPS,
        "also of the document": ENTITY_GROUPS,
    }.items():
        train, test = Corpus(documents, groups), Corpus(test_documents, groups)
        show(name, chunk_scores(y_test, crf.fit(train.X, y).predict(test.X)))
    show(
        "also predictions of a first model",
        chunk_scores(y_test, predict_twice(crf, train, y, test)[0]),
    )


def show(name: str, scores: Any) -> None:
    print(f"{name:<40}{scores.precision:>10.2%}{scores.recall:>10.2%}{scores.f1:>10.2%}")


if __name__ == "__main__":
    main()
