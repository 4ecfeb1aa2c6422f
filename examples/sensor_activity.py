"""Recognise activities from an accelerometer: still, walking, running, or on the stairs.

The data are generated, so the script needs no files: each activity has its own rhythm and strength.
Every second is one row of a table, and a recording is one sequence.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import TreeCRF
from hedgerow.metrics import label_scores

RATE = 20  # measurements per second
ACTIVITIES = ["still", "walk", "run", "stairs"]
STEPS = np.array([0.0, 1.8, 2.7, 1.6])  # steps per second
STRENGTH = np.array([0.05, 1.0, 2.2, 0.9])
NEXT = np.array(  # probabilities of the next activity: nobody goes from still to a run
    [
        [0.92, 0.08, 0.00, 0.00],
        [0.04, 0.88, 0.04, 0.04],
        [0.00, 0.08, 0.92, 0.00],
        [0.00, 0.12, 0.00, 0.88],
    ]
)


def record(n_seconds: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """A recording: acceleration (n_seconds, RATE, 3) along three axes, and one label per second."""
    labels = np.zeros(n_seconds, dtype=np.int64)
    for t in range(1, n_seconds):
        labels[t] = rng.choice(len(ACTIVITIES), p=NEXT[labels[t - 1]])
    steps = np.repeat(STEPS[labels], RATE) * rng.normal(1, 0.08)  # each person has a pace
    phase = 2 * np.pi * np.cumsum(steps) / RATE
    waves = np.stack([np.sin(phase), 0.5 * np.sin(2 * phase), 0.3 * np.cos(phase)], axis=1)
    stream = waves * np.repeat(STRENGTH[labels], RATE)[:, None]
    stream += rng.normal(0, 0.9, stream.shape)  # a cheap sensor
    return stream.reshape(n_seconds, RATE, 3), np.array(ACTIVITIES)[labels]


def describe(stream: NDArray[Any]) -> NDArray[Any]:
    """One row per second: mean, spread and largest change by axis, and frequencies of the first."""
    spread, jump = stream.std(axis=1), np.abs(np.diff(stream, axis=1)).max(axis=1)
    strongest = np.abs(np.fft.rfft(stream[:, :, 0], axis=1))[:, 1:6]
    return np.concatenate([stream.mean(axis=1), spread, jump, strongest], axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", metavar="FILE", help="write a report page, such as report.html")
    arguments = parser.parse_args()

    rng = np.random.default_rng(0)
    recordings = [record(120, rng) for _ in range(60)]
    X = [describe(stream) for stream, _ in recordings]
    y = [labels for _, labels in recordings]
    X_train, y_train, X_test, y_test = X[:45], y[:45], X[45:], y[45:]
    print(f"{len(X_train)} recordings of two minutes for training, {len(X_test)} for testing.\n")

    print(f"{'input':<52}{'accuracy':>14}")
    settings: dict[str, dict[str, Any]] = {
        "each second separately": {"order": 0},
        "also the two seconds before and after": {"order": 0, "window": 2},
        "also which activity follows which": {"order": 1, "window": 2},
    }
    for name, parameters in settings.items():
        crf = TreeCRF(n_rounds=30, max_depth=4, subsample=0.5, random_state=0, **parameters)
        crf.fit(X_train, y_train)
        print(f"{name:<52}{crf.score(X_test, y_test):>14.1%}")

    scores = label_scores(y_test, crf.predict(X_test))
    print(f"\n{'activity':<12}{'precision':>10}{'recall':>10}{'seconds':>10}")
    for label, score in scores.by_label.items():
        print(f"{label:<12}{score.precision:>10.1%}{score.recall:>10.1%}{score.n_true:>10}")

    if arguments.report:
        from hedgerow.report import write_report

        write_report(crf, arguments.report, X_test, y_test, title="Activities")
        print(f"\nThe report is in {arguments.report}.")


if __name__ == "__main__":
    main()
