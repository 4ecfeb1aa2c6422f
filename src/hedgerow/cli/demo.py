"""hedgerow demo: recognise handwritten words that are included in the package."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from hedgerow.cli.errors import telling
from hedgerow.cli.options import Commands, add_jobs, begin_command
from hedgerow.cli.text import format_share, format_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SUMMARY = "train on handwritten words and read others"
DESCRIPTION = """\
Train on handwritten words that come with the package, in a few seconds, and
read words that were not used for training, with two models: one labels each
letter separately, the other also uses the three letters before it.
"""
EXAMPLES = """\
  hedgerow demo
"""
# The two models and their orders.
MODELS = {"letters separately": 0, "with 3 previous letters": 3}
N_ROUNDS = 20
N_WORDS = 8
MAX_LETTERS = 9  # 80 columns
# Characters for two pixels, one above the other: none, the lower, the upper, both.
BLOCKS = " \u2584\u2580\u2588"
PLAIN = " .'#"


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = begin_command(commands, "demo", run, SUMMARY, DESCRIPTION, EXAMPLES)
    add_jobs(parser)


def run(options: argparse.Namespace) -> None:
    """Train two models and show their predictions."""
    from hedgerow import TreeCRF
    from hedgerow.datasets import load_ocr
    from hedgerow.metrics import label_scores

    X, y, fold = load_ocr()
    train, test = [i for i, f in enumerate(fold) if f], [i for i, f in enumerate(fold) if not f]
    y_test = [y[i].tolist() for i in test]
    print(f"handwritten words: {len(train):,} for training, {len(test):,} for testing", flush=True)
    rows, readings = [], [list(map("".join, y_test))]
    for name, order in MODELS.items():
        begin = time.monotonic()
        crf = TreeCRF(n_rounds=N_ROUNDS, order=order, n_jobs=options.jobs, verbose=1)
        with telling():
            crf.fit([X[i] for i in train], [y[i] for i in train])
        predicted = crf.predict([X[i] for i in test])
        scores = label_scores(y_test, predicted)
        shares = [format_share(scores.accuracy), format_share(scores.sequence_accuracy)]
        rows.append([name, *shares, f"{time.monotonic() - begin:.1f}"])
        readings.append(list(map("".join, predicted)))
    print(f"\n{format_table(['correct', 'letters', 'words', 'seconds'], rows)}\n")
    show_words([X[i] for i in test], list(zip(*readings, strict=True)))


def show_words(pictures: list[NDArray[np.uint8]], readings: list[tuple[str, ...]]) -> None:
    """Some words that only the second model gets right; the first of them as it was written."""
    mended = [
        place
        for place, (written, alone, together) in enumerate(readings)
        if written == together != alone and 4 <= len(written) <= MAX_LETTERS
    ]
    shown = mended[:: max(1, len(mended) // N_WORDS)][:N_WORDS]
    for place in shown[:1]:
        print(draw(pictures[place]))
    print(format_table(["written", *MODELS], [readings[place] for place in shown]))


def draw(word: NDArray[np.uint8]) -> str:
    """A word as lines of text, two rows of pixels per line; ``word`` (T, 128) of 0 and 1."""
    marks = BLOCKS if can_print("".join(BLOCKS)) else PLAIN
    image = word.reshape(-1, 16, 8).transpose(1, 0, 2).reshape(16, -1).tolist()
    pairs = zip(image[::2], image[1::2], strict=True)
    lines = ("".join(marks[2 * a + b] for a, b in zip(*pair, strict=True)) for pair in pairs)
    return "\n".join(line.rstrip() for line in lines)


def can_print(text: str) -> bool:
    """Whether standard output supports these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeError:
        return False
    return True
