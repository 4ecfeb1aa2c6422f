"""Training with unordered collections: model files must not depend on string hashing."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

from hedgerow import Checkpoint, LinearCRF, TreeCRF
from hedgerow.metrics import label_scores
from hedgerow.relational import RelationalFeatures
from hedgerow.report import write_report

WORDS = [f"w{number}" for number in range(30)]
NAMES = ["B-X", "I-X", "O"]
PATTERNS = {(a, b) for a in NAMES for b in NAMES} | {("O", "B-X", "I-X"), ("B-X", "I-X", "O")}
PARAMETERS = {
    "sets": {
        "label_patterns": PATTERNS,
        "allowed": {(a, b) for a in NAMES for b in NAMES if (a, b) != ("O", "I-X")},
        "start_labels": {"O", "B-X"},
        "end_labels": frozenset(NAMES),
    },
    "keys": {
        "label_patterns": dict.fromkeys(PATTERNS).keys(),
        "forbidden": dict.fromkeys({("O", "I-X")}).keys(),
        "class_weight": {name: len(name) for name in set(NAMES)},
    },
    "order 2": {"order": 2, "constraints": "BIO"},
}


def make_data():
    """Sets of words, and labels that keep to BIO."""
    rng = np.random.default_rng(0)
    X = [[set(rng.choice(WORDS, 4).tolist()) for _ in range(6)] for _ in range(12)]
    y = [["O" if min(words) < "w2" else "B-X" for words in x] for x in X]
    for labels in y:
        labels[1:] = ["I-X" if a == b == "B-X" else b for a, b in pairwise(labels)]
    return X, y


def forms(X):
    """Kinds of unordered collections."""
    return {
        "sets": X,
        "frozensets": [[frozenset(words) for words in x] for x in X],
        "sets in dicts": [[{"words": words, "n": len(words)} for words in x] for x in X],
        "facts": RelationalFeatures().fit_transform(
            [[{("word", word) for word in words} for words in x] for x in X]
        ),
        "dicts": [[dict.fromkeys(sorted(words), 1.0) for words in x] for x in X],
    }


def estimators(n_steps, **parameters):
    """One of each kind, with this many steps."""
    yield LinearCRF(max_iter=n_steps, tol=0, n_jobs=1, **parameters)
    yield TreeCRF(n_rounds=n_steps, max_depth=2, random_state=0, n_jobs=1, **parameters)


def main(folder, kept):
    """Write models, a report and scores to a folder, and resume from the checkpoints there.

    Checkpoints that do not exist yet are created.
    """
    X, y = make_data()
    for name, x in forms(X).items():
        for crf in estimators(3):
            crf.fit(x, y).save(folder / f"{type(crf).__name__} {name}")
    for name, parameters in PARAMETERS.items():
        pairs = zip(estimators(4, **parameters), estimators(8, **parameters), strict=True)
        for half, whole in pairs:
            path = folder / f"{type(whole).__name__} parameters {name}"
            whole.fit(X, y).save(path)
            checkpoint = Checkpoint(kept / path.name)
            if checkpoint.path.exists():
                whole.fit(X, y, checkpoint=checkpoint).save(path.with_suffix(".resumed"))
            else:
                half.fit(X, y, checkpoint=checkpoint)
    write_report(whole, folder / "report", X, y)
    scores = label_scores([["1", 1, "x", 2]], [[1, "1", "y", "2"]])
    (folder / "scores").write_text(repr(scores))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
