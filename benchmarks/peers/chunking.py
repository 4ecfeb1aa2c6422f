"""CoNLL-2000 chunking with CRF++'s template: LinearCRF against CRFsuite, one model, one loss.

Both sides get the same Python lists of attribute strings and run the same number of L-BFGS
iterations. Training is timed from the lists to the trained model.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common

# Offsets of the tokens joined into one attribute, as in CRF++'s example template.
WORD_WINDOWS = ((-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1))
POS_WINDOWS = (
    *((-2,), (-1,), (0,), (1,), (2,)),
    *((-2, -1), (-1, 0), (0, 1), (1, 2)),
    *((-2, -1, 0), (-1, 0, 1), (0, 1, 2)),
)
RATIOS = (
    "train_seconds",
    "train_cpu_seconds",
    "tag_seconds",
    "peak_mib_after_training",
    "training_mib",
)


def window_attributes(
    tokens: list[str], name: str, windows: tuple[tuple[int, ...], ...]
) -> list[list[str]]:
    """Attributes of each position, such as ``w[-1,0]=the|man``."""
    padded = ["_B-2", "_B-1", *tokens, "_B+1", "_B+2"]
    named = [(f"{name}[{','.join(map(str, window))}]=", window) for window in windows]
    return [
        [prefix + "|".join([padded[at + offset] for offset in window]) for prefix, window in named]
        for at in range(2, len(tokens) + 2)
    ]


def read_sequences(path: Path) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Attribute strings and chunk labels, a list for each sentence."""
    X, y = [], []
    for sentence in common.read_conll(path):
        words, tags, labels = (list(column) for column in zip(*sentence, strict=True))
        of_words = window_attributes(words, "w", WORD_WINDOWS)
        of_tags = window_attributes(tags, "p", POS_WINDOWS)
        X.append([one + other for one, other in zip(of_words, of_tags, strict=True)])
        y.append(labels)
    return X, y


def side_record(options: argparse.Namespace, folder: Path) -> common.Record:
    X, y = read_sequences(folder / "train.txt.gz")
    before = common.peak_memory_mib()
    common.log("lists built, training")
    if options.side == "crfsuite":
        trained, tag = common.train_crfsuite(X, y, options.iterations, options.folder)
    else:
        trained, tag = common.train_hedgerow(X, y, options.iterations, options.jobs)
    after = common.peak_memory_mib()
    X_test, _ = read_sequences(folder / "test.txt.gz")
    tagged = common.tag_record(tag, X_test)
    memory = {
        "peak_mib_after_lists": before,
        "peak_mib_after_training": after,
        "training_mib": after - before,
        "peak_mib_at_end": common.peak_memory_mib(),
    }
    return {**trained, **tagged, **memory}


def main() -> None:
    parser = common.side_parser(__doc__)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds conll2000/")
    options = parser.parse_args()
    folder = options.data / "conll2000"
    if options.side:
        common.write_side(options.folder, side_record(options, folder))
        return
    machine = common.machine_facts()

    def score(record: common.Record) -> common.Record:
        from hedgerow.metrics import chunk_scores

        truth = [[token[-1] for token in s] for s in common.read_conll(folder / "test.txt.gz")]
        return {"f1": float(chunk_scores(truth, record["predicted"]).f1)}

    sides = common.run_sides(options, score)
    common.print_json(
        {
            "task": "conll2000 chunking",
            "iterations": options.iterations,
            "jobs": options.jobs,
            "repeat": options.repeat,
            **sides,
            "crfsuite_over_hedgerow": common.ratios(sides, RATIOS),
            "machine": machine,
        }
    )


if __name__ == "__main__":
    main()
