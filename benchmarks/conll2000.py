"""Chunks of CoNLL-2000: the gains from features, order and trees.

    conll2000.py --data DIR [--templates crfpp full] [--models linear boosted ...] [--test]

The templates are ``crfpp``, that of CRF++ for this task, and ``full``, groups of attributes of
``examples/text_features.py``. The models are ``linear``, LinearCRF; ``trees``, TreeCRF on fewer
attributes and a window; and ``boosted``, the same trees on top of the linear model,
``TreeCRF(base=...)``. Labels are BIOES.

A line of JSON is printed for each model when it is done: F1 of chunks on the last fifth of the
training sentences, which is held out and was used for all choices. With ``--test`` the models are
trained on all training sentences, and F1 is that of the test file. The number of rounds is fixed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.base import clone

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "examples"))

import common
from conll2003 import compare
from peers.chunking import read_sequences
from text_features import CHUNK_GROUPS, Token, describe, short_shape, to_bioes
from trees_common import add_settings

from hedgerow import LinearCRF, TreeCRF
from hedgerow.metrics import chunk_scores

TEMPLATES = ("crfpp", "full")
MODELS = ("linear", "trees", "boosted")

Sentence = list[Token]


class Part(NamedTuple):
    """Attributes for linear models and for trees, and labels, of some sentences."""

    X: Sequence[Any]
    X_trees: Sequence[Any]
    y: Sequence[list[str]]

    def cut(self, begin: int | None, end: int | None) -> Part:
        return Part(*(column[begin:end] for column in self))


def describe_for_trees(sentence: Sentence) -> list[list[str]]:
    """A few attributes of a token: trees combine them, and use those of its neighbours."""
    return [
        [
            f"lower={token.word.lower()}",
            f"shape={short_shape(token.word)}",
            f"tag={token.tag}",
            *(f"suffix={token.word[-length:].lower()}" for length in (2, 3)),
            f"prefix={token.word[:2].lower()}",
        ]
        for token in sentence
    ]


def read_part(path: Path, template: str) -> Part:
    rows = common.read_conll(path)
    sentences = [[Token(word, tag, "O") for word, tag, _ in sentence] for sentence in rows]
    if template == "crfpp":
        X, _ = read_sequences(path)
    else:
        known: dict[str, str] = {}  # keep each name in memory only once
        X = [
            [[known.setdefault(name, name) for name in names] for names in sentence]
            for sentence in describe(sentences, CHUNK_GROUPS)
        ]
    y = [to_bioes([token[-1] for token in sentence]) for sentence in rows]
    return Part(X, list(map(describe_for_trees, sentences)), y)


def read_parts(options: argparse.Namespace, template: str) -> tuple[Part, Part]:
    """The training part, and the part to label."""
    folder = options.data / "conll2000"
    train = read_part(folder / "train.txt.gz", template)
    if options.test:
        return train, read_part(folder / "test.txt.gz", template)
    held_out = len(train.y) * 4 // 5
    return train.cut(None, held_out), train.cut(held_out, None)


def build(options: argparse.Namespace) -> tuple[LinearCRF, TreeCRF]:
    shared = {
        "order": options.order,
        "constraints": "BIOES",
        "decode": "viterbi",
        "n_jobs": options.jobs,
    }
    linear = LinearCRF(reg_lambda=options.reg_lambda, max_iter=options.iterations, tol=0, **shared)
    trees = TreeCRF(
        n_rounds=options.rounds,
        learning_rate=options.learning_rate,
        window=2,
        random_state=0,
        **(shared | dict(options.settings)),
    )
    return linear, trees


def predict(model: str, train: Part, test: Part, options: argparse.Namespace) -> list[Any]:
    linear, trees = build(options)
    if model == "linear":
        return list(linear.fit(train.X, train.y).predict(test.X))
    if model == "trees":
        return list(trees.fit(train.X_trees, train.y).predict(test.X_trees))
    crf = clone(trees).set_params(base=linear)
    crf.fit(train.X_trees, train.y, X_base=train.X)
    return list(crf.predict(test.X_trees, X_base=test.X))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder that holds conll2000/")
    parser.add_argument("--templates", nargs="+", choices=TEMPLATES, default=TEMPLATES)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--test", action="store_true", help="train on all, F1 of the test file")
    parser.add_argument("--jobs", type=int, help="threads; all cores unless given")
    parser.add_argument("--order", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=100, help="of L-BFGS")
    parser.add_argument("--reg-lambda", type=float, default=1.0, help="L2 penalty, linear models")
    parser.add_argument("--rounds", type=int, default=40, help="of boosting")
    parser.add_argument("--learning-rate", type=float, default=0.2, help="of boosting")
    add_settings(parser)
    return parser.parse_args()


def main() -> None:
    options = read_options()
    for template in options.templates:
        train, test = read_parts(options, template)
        linear: list[Any] = []
        for model in options.models:
            begin = time.perf_counter()
            predicted = predict(model, train, test, options)
            record = {
                "template": template,
                "model": model,
                "order": options.order,
                "part": "test" if options.test else "held out",
                "f1": 100 * chunk_scores(test.y, predicted).f1,
                "seconds": time.perf_counter() - begin,
                "load_average": os.getloadavg(),
            }
            if model == "linear":
                linear = predicted
            elif linear:
                record["against_linear"] = compare(test.y, predicted, linear)
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
