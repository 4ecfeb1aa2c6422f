"""Makes the pictures of the guide to plots in ``pictures/`` from the handwritten words.

Run it again when plots look different: ``python docs/make_plots.py``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np

from hedgerow import TreeCRF, plots
from hedgerow.datasets import load_ocr

PLACE = Path(__file__).resolve().parent / "pictures"


def main() -> None:
    """Write all pictures."""
    X, y, fold = load_ocr()
    train, test = np.flatnonzero(fold == 1), np.flatnonzero(fold == 0)[:200]
    X_test, y_test = [X[i] for i in test], [y[i] for i in test]
    crf = TreeCRF(n_rounds=40, window=1, verbose=1)
    crf.fit([X[i] for i in train], [y[i] for i in train], eval_set=(X_test, y_test))
    longest = int(np.argmax([len(word) for word in y_test]))
    pictures = {
        "transitions": plots.transitions(crf),
        "marginals": plots.marginals(crf, X_test[longest], y_test[longest]),
        "tree": plots.tree(crf, round=1, label="g", max_depth=3),
    }
    for name, ax in pictures.items():
        path = PLACE / f"plots-{name}.png"
        ax.figure.savefig(path, dpi=100)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
