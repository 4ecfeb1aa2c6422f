"""Train on letters with one wrong label in five, and compare several objectives."""

from __future__ import annotations

import time

import numpy as np

from hedgerow import TreeCRF
from hedgerow.datasets import load_ocr


def main() -> None:
    X, y, fold = load_ocr()
    train, test = np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)
    rng = np.random.default_rng(0)
    letters = np.unique(np.concatenate(y))
    noisy = [
        np.where(rng.random(len(y[i])) < 0.2, rng.choice(letters, len(y[i])), y[i]) for i in train
    ]

    print(f"{'objective':<20}{'test error':>12}{'seconds':>10}")
    for objective in ("likelihood", "pointwise", "accuracy", "expected_accuracy"):
        begin = time.perf_counter()
        crf = TreeCRF(objective=objective, subsample=0.5, random_state=0)
        crf.fit([X[i] for i in train], noisy)
        error = 1 - crf.score([X[i] for i in test], [y[i] for i in test])
        print(f"{objective:<20}{error:>12.2%}{time.perf_counter() - begin:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
