"""Named entities of CoNLL-2003 without embeddings and lists of names: features and trees.

    conll2003.py --data DIR [--templates plain document ...] [--models linear boosted ...] [--test]

The templates are ``plain``, words and their parts, shapes, tags and neighbours as in
``papers/gbcrf.py ner``; ``sentence`` and ``document``, the groups of ``examples/text_features.py``
without and with those that use the whole document; and ``second``, which adds the predictions of a
first model, with the template ``document``, for the same word elsewhere in the document.

The models are ``linear``, LinearCRF; ``trees``, TreeCRF on fewer attributes and a window;
``boosted``, the same trees on top of the linear model, ``TreeCRF(base=...)``; and ``stacked``, the
same trees on top of the logarithms of its marginals; those of training sentences come from models
that were not trained on their documents.

A line of JSON is printed for each model when it is done: F1 of entities on testa, which was used
for all choices, and with ``--test`` on testb. ``--leave-out`` trains the linear model of a template
without each of its groups in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

sys.path.insert(1, str(Path(__file__).resolve().parent / "papers"))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "examples"))

import common
from gbcrf_ner import spell_neighbours, token_item
from named_entities import Corpus, join, read_documents
from text_features import (
    ENTITY_GROUPS,
    SENTENCE_GROUPS,
    Document,
    Repetitions,
    position,
    repetition,
    short_shape,
    to_bioes,
)
from trees_common import add_settings

from hedgerow import LinearCRF, TreeCRF
from hedgerow.metrics import chunk_scores
from hedgerow.model_selection import cross_val_predict
from hedgerow.stats import bootstrap

FILES = {"train": "eng.train.gz", "dev": "eng.testa.gz", "test": "eng.testb.gz"}
TEMPLATES = ("plain", "sentence", "document", "second")
MODELS = ("linear", "trees", "boosted", "stacked")
GROUPS = {
    "sentence": tuple(group for group in ENTITY_GROUPS if group in SENTENCE_GROUPS),
    "document": ENTITY_GROUPS,
}
FLOOR = 1e-5  # minimum of probabilities, before their logarithms are used as scores

Parts = dict[str, Any]  # one entry per file: training, development and test part


def describe_plainly(document: Document) -> list[list[dict[str, Any]]]:
    return [[token_item(*token) for token in sentence] for sentence in document]


def describe_for_trees(document: Document) -> Iterator[list[list[str]]]:
    """A few attributes of a token: trees combine them, and use those of its neighbours."""
    seen = Repetitions(document)
    for number, sentence in enumerate(document):
        yield [
            [
                f"lower={token.word.lower()}",
                f"shape={short_shape(token.word)}",
                f"tag={token.tag}",
                f"chunk={token.chunk}",
                *(f"suffix={token.word[-length:].lower()}" for length in (2, 3)),
                f"prefix={token.word[:2].lower()}",
                *position(sentence, at),
                *repetition(seen, number, at),
                *(f"headline={word}" for word in seen.headline[:1]),
            ]
            for at, token in enumerate(sentence)
        ]


class Task:
    """Documents and labels of the three parts, and the models to train."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.documents: dict[str, list[Document]] = {}
        self.y: Parts = {}
        for part, name in FILES.items():
            documents, labels = read_documents(options.data / "conll2003" / name)
            if part == "train" and options.documents:
                documents = documents[: options.documents]
                labels = labels[: sum(map(len, documents))]
            self.documents[part], self.y[part] = documents, list(map(to_bioes, labels))
        self.trees_see_documents = options.trees_see_documents
        shared = {"constraints": "BIOES", "decode": "viterbi", "n_jobs": options.jobs}
        self.linear = LinearCRF(
            reg_lambda=options.reg_lambda, max_iter=options.iterations, tol=0, **shared
        )
        self.trees = TreeCRF(
            n_rounds=options.rounds,
            learning_rate=options.learning_rate,
            window=2,
            early_stopping_rounds=options.patience,
            random_state=0,
            **(shared | dict(options.settings)),
        )

    def describe(self, function: Callable[[Document], Iterable[Any]]) -> Parts:
        """Apply a function to the documents of the three parts; returns its results by sentence."""
        return {
            part: [sentence for document in documents for sentence in function(document)]
            for part, documents in self.documents.items()
        }


class Template:
    """The input of the models of a template; what they share is computed once."""

    def __init__(self, name: str, task: Task, first: Template | None = None) -> None:
        self.name, self.task, self.first = name, task, first

    @cached_property
    def corpora(self) -> dict[str, Corpus]:
        groups = GROUPS.get(self.name, ())
        return {part: Corpus(documents, groups) for part, documents in self.task.documents.items()}

    @cached_property
    def attributes(self) -> Parts:
        """Attributes of the linear model."""
        if self.name == "plain":
            return self.task.describe(lambda d: map(spell_neighbours, describe_plainly(d)))
        if self.first is not None:
            return {part: join(self.first.attributes[part], self.looks[part]) for part in FILES}
        return {part: corpus.X for part, corpus in self.corpora.items()}

    @cached_property
    def tree_attributes(self) -> Parts:
        """Attributes for trees: the same information in fewer attributes."""
        if not self.task.trees_see_documents and self.name in ("plain", "sentence"):
            return self.task.describe(describe_plainly)
        X = self.task.describe(describe_for_trees)
        return X if self.first is None else {p: join(X[p], self.looks[p]) for p in FILES}

    @cached_property
    def looks(self) -> Parts:
        """Predictions of the first model for the same words elsewhere in their documents."""
        assert self.first is not None
        classes, marginals = self.first.linear.classes_, self.first.marginals
        return {p: self.corpora[p].second_look(marginals[p], classes) for p in FILES}

    @cached_property
    def linear(self) -> LinearCRF:
        return clone(self.task.linear).fit(self.attributes["train"], self.task.y["train"])

    @cached_property
    def marginals(self) -> Parts:
        """Marginals of the linear model; for training sentences, by models trained without them."""
        X, y, folds = self.attributes["train"], self.task.y["train"], self.corpora["train"].folds()
        honest = cross_val_predict(self.task.linear, X, y, cv=folds, method="predict_marginals")
        others = {
            part: self.linear.predict_marginals(self.attributes[part]) for part in ("dev", "test")
        }
        return {"train": honest} | others

    def given(self, model: str) -> Parts:
        """The base scores that trees get from the linear model."""
        if model == "boosted":
            return {part: {"X_base": self.attributes[part]} for part in FILES}
        if model == "stacked":
            floored = {p: [np.maximum(rows, FLOOR) for rows in self.marginals[p]] for p in FILES}
            return {p: {"base_scores": [np.log(rows) for rows in floored[p]]} for p in FILES}
        return {part: {} for part in FILES}

    def predict(self, model: str) -> Parts:
        """Labels of the development and the test part."""
        if model == "linear":
            return {part: self.linear.predict(self.attributes[part]) for part in ("dev", "test")}
        X, y, given = self.tree_attributes, self.task.y, self.given(model)
        crf = clone(self.task.trees)
        if model == "boosted":
            crf.set_params(base=self.task.linear)
        crf.fit(
            X["train"],
            y["train"],
            eval_set={"X": X["dev"], "y": y["dev"]} | given["dev"],
            **given["train"],
        )
        common.log(f"{model}: {crf.n_rounds_} rounds")
        return {part: crf.predict(X[part], **given[part]) for part in ("dev", "test")}


def measure(template: Template, model: str, parts: Iterable[str]) -> tuple[common.Record, Parts]:
    begin = time.perf_counter()
    predicted, y = template.predict(model), template.task.y
    return {
        "template": template.name,
        "model": model,
        **{f"{part}_f1": 100 * chunk_scores(y[part], predicted[part]).f1 for part in parts},
        "seconds": time.perf_counter() - begin,
        "load_average": os.getloadavg(),
    }, predicted


def leave_out(name: str, task: Task) -> Iterator[common.Record]:
    """F1 of the linear model on the development part, without each group in turn."""
    for left_out in ("", *GROUPS[name]):
        groups = [group for group in GROUPS[name] if group != left_out]
        train, dev = (Corpus(task.documents[part], groups) for part in ("train", "dev"))
        crf = clone(task.linear).fit(train.X, task.y["train"])
        f1 = 100 * chunk_scores(task.y["dev"], crf.predict(dev.X)).f1
        yield {"template": name, "without": left_out, "dev_f1": f1}


def compare(y: Any, a: Any, b: Any) -> common.Record:
    """Difference in F1 between `a` and `b`, in points, with a bootstrap over sentences."""
    found = bootstrap("chunk_f1", y, a, b, random_state=0)
    return {
        "difference": 100 * found.value,
        "interval_95": [100 * found.low, 100 * found.high],
        "p": found.p_value,
    }


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder that holds conll2003/")
    parser.add_argument("--templates", nargs="+", choices=TEMPLATES, default=TEMPLATES)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument(
        "--trees-see-documents", action="store_true", help="whatever the linear model sees"
    )
    parser.add_argument("--leave-out", action="store_true", help="each group in turn, on testa")
    parser.add_argument("--test", action="store_true", help="F1 in testb too")
    parser.add_argument("--documents", type=int, help="training documents; all unless given")
    parser.add_argument("--jobs", type=int, help="threads; all cores unless given")
    parser.add_argument("--iterations", type=int, default=100, help="of L-BFGS")
    parser.add_argument("--reg-lambda", type=float, default=0.3, help="L2 penalty, linear models")
    parser.add_argument("--rounds", type=int, default=100, help="of boosting, at most")
    parser.add_argument("--learning-rate", type=float, default=0.2, help="of boosting")
    parser.add_argument("--patience", type=int, default=20, help="rounds without a better loss")
    add_settings(parser)
    return parser.parse_args()


def main() -> None:
    options = read_options()
    task = Task(options)
    templates = {name: Template(name, task) for name in TEMPLATES[:-1]}
    templates["second"] = Template("second", task, first=templates["document"])
    parts = ("dev", "test") if options.test else ("dev",)
    for name in options.templates:
        if options.leave_out:
            for record in leave_out(name, task):
                print(json.dumps(record), flush=True)
            continue
        linear: Parts = {}
        for model in options.models:
            record, predicted = measure(templates[name], model, parts)
            if model == "linear":
                linear = predicted
            elif linear:
                last = parts[-1]
                record["against_linear"] = compare(task.y[last], predicted[last], linear[last])
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
