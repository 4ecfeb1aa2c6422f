"""Decoders: Viterbi, marginals, and the choice of decode="auto".

    decoding.py --data DIR [--tasks NAME ...] [--orders 1 3] [--short | --linear]
                [--transitions {weights,trees}] [--eval-set] [--seed N] [--jobs N]

Trains on each task and prints one JSON document: accuracy on the test data by Viterbi, by marginals
and by the decoder that "auto" has chosen, the name of that decoder, its difference from the better
one, and the standard error of the difference between the two, by sequences. Trees have the defaults
of `TreeCRF`, except for the window; with --short they are 60 rounds at a rate of 0.3, half of the
sequences per round. The choice is by a trial on the training sequences; with --eval-set every fifth
sequence is set aside for it instead. --seed is the random_state.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import common
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tasks import TASKS, Task, known_only, spread_windows

from hedgerow import LinearCRF, TreeCRF

SHORT = {"n_rounds": 60, "learning_rate": 0.3, "max_depth": 6, "subsample": 0.5}


def measure(task: Task, order: int, options: argparse.Namespace) -> common.Record:
    X, y, X_test, y_test, window = task
    X_test, y_test = known_only(y, X_test, y_test)
    extras: dict[str, Any] = {}
    if options.linear:
        X, X_test = fill_gaps(spread_windows(X, window)), fill_gaps(spread_windows(X_test, window))
    crf = make(order, window, options)
    if options.eval_set:
        kept, aside = ([i for i in range(len(X)) if (i % 5 == 0) == side] for side in (False, True))
        X_aside, y_aside = known_only(
            [y[i] for i in kept], *([part[i] for i in aside] for part in (X, y))
        )
        extras["eval_set"] = (X_aside, y_aside)
        X, y = [X[i] for i in kept], [y[i] for i in kept]
        X_test, y_test = known_only(y, X_test, y_test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        crf.fit(X, y, **extras)
    n_positions = sum(map(len, y_test))
    n_right = {
        decode: np.array([np.sum(np.asarray(a) == b) for a, b in zip(y_test, labels, strict=True)])
        for decode in ("viterbi", "marginal")
        for labels in [crf.predict(X_test, decode=decode)]
    }
    found = {decode: 100 * float(right.sum()) / n_positions for decode, right in n_right.items()}
    lead = n_right["marginal"] - n_right["viterbi"]
    error = 100 * float(np.sqrt(len(lead)) * lead.std(ddof=1)) / n_positions
    return {
        **{decode: round(accuracy, 2) for decode, accuracy in found.items()},
        "auto": round(found[crf.decode_], 2),
        "chosen": crf.decode_,
        "behind": round(max(found.values()) - found[crf.decode_], 2),
        "error": round(error, 2),
        "n_positions": n_positions,
    }


def make(order: int, window: int, options: argparse.Namespace) -> TreeCRF | LinearCRF:
    """The estimator for the options."""
    shared = {"order": order, "random_state": options.seed, "n_jobs": options.jobs}
    if options.linear:
        return LinearCRF(max_iter=100, tol=1e-4, **shared)
    rounds: dict[str, Any] = SHORT if options.short else {}
    return TreeCRF(window=window, transitions=options.transitions, **shared, **rounds)


def fill_gaps(X: list[Any]) -> list[Any]:
    """Zeros for missing numbers, which a linear model does not support."""
    return X if isinstance(X[0], list) else [np.nan_to_num(rows) for rows in X]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="NAME")
    parser.add_argument("--orders", nargs="+", type=int, default=[1, 3])
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--short", action="store_true", help="60 rounds, half of the sequences each")
    kinds.add_argument("--linear", action="store_true", help="LinearCRF in place of TreeCRF")
    parser.add_argument("--transitions", choices=["weights", "trees"], default="weights")
    parser.add_argument("--eval-set", action="store_true", help="choose on sequences set aside")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    rows = []
    for name in options.tasks:
        task = TASKS[name](options.data)
        for order in options.orders:
            rows.append({"task": name, "order": order, **measure(task, order, options)})
            common.log(str(rows[-1]))
    common.print_json({"machine": common.machine_facts(), "rows": rows})


if __name__ == "__main__":
    main()
