"""How fast Ctrl-C stops long native calls: seconds from the signal to KeyboardInterrupt."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common

from hedgerow import LinearCRF, TreeCRF
from hedgerow.labels import Patterns
from hedgerow.labels.automaton import Automaton
from hedgerow.relational import Atoms, RelationalFeatures
from hedgerow.trellis import AutomatonChain, Chain, Scores, forward_backward, viterbi


def seconds_to_end(call: Callable[[], object], delay: float) -> float | None:
    """Send SIGINT `delay` seconds after the start of a call; None if it had already ended."""
    sent = []

    def send() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(delay, send)
    timer.start()
    try:
        call()
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    timer.cancel()
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="signals sent to each call")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    nodes, arcs = rng.normal(size=(100_000, 300)), rng.normal(size=(300, 300))
    far = 1e5 * nodes[:10_000]  # large differences, so that log space is needed
    words = rng.integers(0, 10_000, (400, 500, 8)).astype(str).tolist()
    labels = rng.integers(0, 30, (400, 500)).tolist()
    numbers = rng.normal(size=(200, 1000, 40)).astype(np.float32)
    states = rng.integers(0, 3, (200, 1000))
    facts = Atoms.from_tables(
        pd.DataFrame(
            rng.integers(0, 10_000, (250_000, 4)).astype(str), columns=list("abcd")
        ).assign(sequence=np.arange(250_000) // 100),
        sequence="sequence",
    )
    automaton = Automaton.build(300, Patterns.pairs(300))
    chain, two = Chain(300), np.array([0, 50_000, 100_000])
    over_automaton = Scores(
        nodes, rng.normal(size=automaton.n_arcs), two, AutomatonChain(automaton)
    )
    calls: dict[str, Callable[[int], object]] = {
        "forward_backward": lambda n: forward_backward(
            Scores(nodes, arcs, np.array([0, 100_000]), chain), n_threads=n
        ),
        "forward_backward_log_space": lambda n: forward_backward(
            Scores(far, arcs, np.array([0, 10_000]), chain), n_threads=n
        ),
        "viterbi": lambda n: viterbi(Scores(nodes, arcs, two, chain), n_threads=n),
        "forward_backward_automaton": lambda n: forward_backward(over_automaton, n_threads=n),
        "viterbi_automaton": lambda n: viterbi(over_automaton, n_threads=n),
        "fit": lambda n: LinearCRF(n_jobs=n).fit(words, labels),
        "fit_order_2": lambda n: LinearCRF(order=2, n_jobs=n).fit(words, labels),
        "fit_accuracy": lambda n: LinearCRF(objective="accuracy", warm_iter=1, n_jobs=n).fit(
            words, labels
        ),
        "fit_trees": lambda n: TreeCRF(window=7, n_jobs=n).fit(numbers, states),
        "fit_trees_accuracy": lambda n: TreeCRF(
            objective="accuracy", warm_rounds=0, order=2, n_jobs=n
        ).fit(numbers, states),
        "relational_features": lambda n: RelationalFeatures(
            [f"{name}(+t,+-c)" for name in "abcd"], window=1, depth=3, min_count=2
        ).fit(facts),
        "fit_trees_attributes": lambda n: TreeCRF(n_jobs=n).fit(words, labels),
    }
    worst: dict[str, float | None] = {}
    for name, call in calls.items():
        for n_jobs in (1, 2):
            common.log(f"{name}, {n_jobs} threads")
            delays = rng.uniform(0.05, 0.8, options.repeat)
            seconds = [seconds_to_end(lambda c=call, n=n_jobs: c(n), delay) for delay in delays]
            ended = [s for s in seconds if s is not None]
            worst[f"{name}, {n_jobs} threads"] = max(ended, default=None)
    common.print_json({"worst_seconds": worst, "machine": common.machine_facts()})


if __name__ == "__main__":
    main()
