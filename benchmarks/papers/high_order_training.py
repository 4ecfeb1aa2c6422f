"""One timed fit of LinearCRF, with the figures that the experiments share."""

from __future__ import annotations

from typing import Any

import common

from hedgerow import LinearCRF


def train(X: Any, y: Any, **parameters: Any) -> tuple[LinearCRF, common.Record]:
    """Fit, timed from the user's lists to the trained model.

    ``seconds_per_iteration`` therefore includes its share of the cost of reading the input,
    building the automaton and any second evaluation that a line search makes.
    """
    crf = LinearCRF(**parameters)
    with common.Stopwatch() as watch:
        crf.fit(X, y)
    iterations = int(crf.n_iter_)
    record = {
        "train_seconds": watch.seconds,
        "train_cpu_seconds": watch.cpu_seconds,
        "iterations": iterations,
        "seconds_per_iteration": watch.seconds / max(iterations, 1),
        "n_patterns": len(crf.patterns()["pattern"]),
        "n_weights": int(crf.n_weights_),
        "loss": float(crf.history_["loss"][-1]),
    }
    return crf, record
