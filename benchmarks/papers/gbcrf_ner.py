"""CoNLL-2003: named entities, with words and their parts as attributes of a dict.

Labels are turned into BIO for all sides. TreeCRF is tried in two ways: on the attributes of a token
with ``window=2``, and on attributes that include words, parts of speech and shapes of neighbours.
The linear CRFs get the latter. "base" before either name: trees on top of a linear CRF that gets
the latter. Early stopping uses the loss on testa; F1 is counted as in conlleval.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import common
import trees_common

if TYPE_CHECKING:
    from hedgerow import TreeCRF

TREES = ("trees-window", "trees-spelled", "base-window", "base-spelled")
LIBRARIES = {
    **dict.fromkeys(TREES, "hedgerow.tree_crf"),
    "linear": "hedgerow.linear_crf",
    "crfsuite": "pycrfsuite",
}
PARTS = tuple(LIBRARIES)
WINDOW = 2
FILES = {"train": "eng.train.gz", "dev": "eng.testa.gz", "test": "eng.testb.gz"}
QUICK_SENTENCES = 300
QUICK_ROUNDS = 3

Item = dict[str, Any]
Sentence = list[list[str]]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder that holds conll2003/")
    parser.add_argument("--rounds", type=int, default=400, help="most rounds")
    parser.add_argument("--learning-rate", type=float, default=0.3)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--patience", type=int, default=30, help="rounds without a better loss")
    parser.add_argument("--iterations", type=int, default=200, help="of L-BFGS, linear CRFs")
    parser.add_argument("--base-folds", type=int, default=5, help="of cross-fitting; 0: none")
    parser.add_argument("--sentences", type=int, help="only so many of each file")
    trees_common.add_settings(parser)


def shape(word: str) -> str:
    """``Aaa-00`` for ``Lyon-12``."""
    upper = re.sub(r"[^\W\d_]", lambda m: "A" if m[0].isupper() else "a", word)
    return re.sub(r"\d", "0", upper)


def token_item(word: str, tag: str, chunk: str) -> Item:
    """Attributes of a single token."""
    outline = shape(word)
    item: Item = {
        "word": word,
        "lower": word.lower(),
        "shape": outline,
        "short_shape": re.sub(r"(.)\1+", r"\1", outline),
        "tag": tag,
        "chunk": chunk,
    }
    for length in range(1, 5):
        if len(word) >= length:
            item[f"prefix{length}"] = word[:length]
            item[f"suffix{length}"] = word[-length:]
    flags = {
        "title": word.istitle(),
        "upper": word.isupper(),
        "digits": word.isdigit(),
        "has_digit": any(map(str.isdigit, word)),
        "has_hyphen": "-" in word,
        "has_point": "." in word,
        "no_letter": not any(map(str.isalpha, word)),
    }
    return item | {name: True for name, flag in flags.items() if flag}


def spell_neighbours(items: list[Item]) -> list[Item]:
    """The same items, with the words, parts of speech and shapes of their neighbours."""
    wide = []
    for at, item in enumerate(items):
        more: Item = {}
        for offset in (-2, -1, 1, 2):
            if 0 <= at + offset < len(items):
                neighbour = items[at + offset]
                for name in ("word", "lower", "tag", "short_shape"):
                    more[f"{offset:+d}:{name}"] = neighbour[name]
            else:
                more[f"{offset:+d}:outside"] = True
        wide.append(item | more)
    return wide


def to_bio(labels: Sequence[str]) -> list[str]:
    """IOB1 as BIO: the first label of every chunk is a B."""
    pairs = zip(["O", *labels], labels, strict=False)
    return [
        "B" + label[1:] if label[0] == "I" and label[1:] != before[1:] else label
        for before, label in pairs
    ]


def read_sentences(options: argparse.Namespace, name: str) -> list[Sentence]:
    sentences = common.read_conll(options.data / "conll2003" / FILES[name])
    kept = [sentence for sentence in sentences if sentence[0][0] != "-DOCSTART-"]
    return kept[: QUICK_SENTENCES if options.quick else options.sentences]


def read_items(
    options: argparse.Namespace, name: str, spelled: bool
) -> tuple[list[list[Item]], list[list[str]]]:
    """Attributes and BIO labels, a list for each sentence."""
    X, y = [], []
    for sentence in read_sentences(options, name):
        items = [token_item(word, tag, chunk) for word, tag, chunk, _ in sentence]
        X.append(spell_neighbours(items) if spelled else items)
        y.append(to_bio([token[-1] for token in sentence]))
    return X, y


def train_trees(
    part: str, X: Any, y: Any, eval_set: Any, options: argparse.Namespace
) -> tuple[common.Record, common.Tag]:
    by_window = part.endswith("window")
    parameters = {
        "n_rounds": options.rounds,
        "learning_rate": options.learning_rate,
        "max_depth": options.depth,
        "window": WINDOW if by_window else 0,
        "early_stopping_rounds": options.patience,
        "n_jobs": options.jobs,
    }
    seen: dict[str, Any] = {}
    if part.startswith("base"):
        parameters |= {
            "base": common.make_linear(options.iterations, options.jobs),
            "base_folds": options.base_folds,
        }
        if by_window:
            seen["X_base"] = list(map(spell_neighbours, X))
            eval_set = dict(zip(("X", "y"), eval_set, strict=True))
            eval_set["X_base"] = list(map(spell_neighbours, eval_set["X"]))
    parameters |= dict(options.settings)
    crf, record = trees_common.fit_trees(X, y, eval_set, seen, **parameters)
    record["n_attributes"] = len(crf.feature_importances_)
    return record, partial(tag, crf, spells=bool(seen))


def tag(crf: TreeCRF, X: Any, *, spells: bool) -> Any:
    """Label items, with attributes of neighbours for the base if it needs them."""
    return crf.predict(X, X_base=list(map(spell_neighbours, X)) if spells else None)


def f1_of(tag: common.Tag, X: Any, y: Any) -> tuple[float, common.Record]:
    """F1 in percent, and tokens per second."""
    from hedgerow.metrics import chunk_scores

    tagged = common.tag_record(tag, X, passes=3)
    return 100 * float(chunk_scores(y, tagged.pop("predicted")).f1), tagged


def measure(part: str, options: argparse.Namespace) -> common.Record:
    if options.quick:
        options.rounds = options.iterations = QUICK_ROUNDS
    spelled = not part.endswith("window")
    X, y = read_items(options, "train", spelled)
    X_dev, y_dev = read_items(options, "dev", spelled)
    before = common.memory_before_training_mib(LIBRARIES[part])
    common.log(f"{part}: lists built, training")
    if part in TREES:
        record, label = train_trees(part, X, y, (X_dev, y_dev), options)
    elif part == "linear":
        record, label = common.train_hedgerow(X, y, options.iterations, options.jobs)
    else:
        record, label = common.train_crfsuite(X, y, options.iterations, options.folder)
    after = common.peak_memory_mib()
    dev_f1, _ = f1_of(label, X_dev, y_dev)
    test_f1, tagged = f1_of(label, *read_items(options, "test", spelled))
    common.log(f"{part}: F1 {dev_f1:.2f} dev, {test_f1:.2f} test, {record['train_seconds']:.0f} s")
    return {
        "dev_f1": dev_f1,
        "test_f1": test_f1,
        **record,
        **tagged,
        "mib_before_training": before,
        "peak_mib_after_training": after,
        "training_mib": after - before,
    }


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    models = [{"model": part, **records[0]} for part, records in runs.items()]
    trees = [model for model in models if model["model"] in TREES]
    best = max(trees, key=lambda model: model["dev_f1"], default={"model": None})
    return {
        "setting": "trees stop by the loss on testa; linear CRFs: reg_lambda 2 and c2 1, which are "
        "the same penalty, and the same number of iterations; BIO labels, no constraints",
        "published": "test F1 of the paper, word features and embeddings: linear CRF 84.75, "
        "LogitBoost 81.97, first order 83.99, GBCRF 86.35",
        "trees_chosen_on_dev": best["model"],
        "models": models,
    }
