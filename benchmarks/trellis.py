"""Speed of the trellis kernels, as a share of this machine's multiply-add peak.

The peak is measured in the same run by a large matrix product in double precision. A
forward-backward pass needs 3 K^2 multiply-adds per position: forward, backward and pair sums. The
tangent pass is given as a multiple of it. So are passes with pair scores that differ from position
to position, whose cost is mostly that of K^2 exponentials each. Passes over tree-shaped graphs are
given as multiples of those over chains with the same numbers.

``--threads 1,16`` measures only how forward-backward scales with the number of threads, for one
long sequence and for many short ones.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import process_time

import common
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hedgerow.labels.automaton import Automaton
from hedgerow.trellis import AutomatonChain, Chain, Scores, forward_backward, tangent, viterbi

LABELS = (2, 5, 26, 100)
SEQUENCE_LENGTHS = (25, 1000)
JOBS = (1, 2)
LONG_LABELS = (5, 26)
LONG_LENGTHS = (10**3, 10**4, 10**5, 10**6)
FEW_LABELS = (2, 3, 5, 8)
MATRIX_SIZE = 2000
TANGENT_LABELS = 5  # for the automaton of order 3
EDGE_LABELS = (3, 9, 26)
EDGE_BYTES = 1 << 25  # of pair scores at a time
GRAPH_LABELS = (2, 3, 5, 8, 17, 50)
HIGH_ORDER_LABELS = (2, 5, 12)  # of graphs of order 2
GRAPH_LENGTH = 25


def multiply_add_peak(n_threads: int, passes: int) -> float:
    """Multiply-adds per second of the fastest matrix product."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, MATRIX_SIZE, MATRIX_SIZE))
    with threadpool_limits(n_threads):
        left @ right  # the first product also starts the threads
        return MATRIX_SIZE**3 / common.best_seconds(lambda: left @ right, passes)


def random_trellis(
    n_positions: int, n_labels: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Node scores (n_positions, n_labels) and arc scores (n_labels, n_labels), standard normal."""
    rng = np.random.default_rng(n_labels)
    return (
        rng.standard_normal((n_positions, n_labels)),
        rng.standard_normal((n_labels, n_labels)),
    )


def even_offsets(n_positions: int, length: int) -> NDArray[np.int64]:
    """Starts of sequences of one length, with the end of the last; rounded down to whole ones."""
    return np.arange(0, n_positions + 1, length, dtype=np.int64)


def throughput(n_positions: int, peaks: dict[int, float], passes: int) -> list[common.Record]:
    """Positions per second for each number of labels, sequence length and number of threads."""
    records = []
    for n_labels in LABELS:
        total = n_positions if n_labels < 100 else n_positions // 10
        scores, arcs = random_trellis(total, n_labels)
        for length in SEQUENCE_LENGTHS:
            offsets = even_offsets(total, length)
            nodes = scores[: offsets[-1]]
            for jobs in JOBS:
                common.log(f"K={n_labels} T={length} n_jobs={jobs}")
                both = common.best_seconds(
                    partial(
                        forward_backward,
                        Scores(nodes, arcs, offsets, Chain(n_labels)),
                        n_threads=jobs,
                    ),
                    passes,
                )
                path = common.best_seconds(
                    partial(viterbi, Scores(nodes, arcs, offsets, Chain(n_labels)), n_threads=jobs),
                    passes,
                )
                rate = len(nodes) / both
                records.append(
                    {
                        "n_labels": n_labels,
                        "length": length,
                        "n_positions": len(nodes),
                        "n_jobs": jobs,
                        "forward_backward_positions_per_second": rate,
                        "forward_backward_share_of_peak": 3 * n_labels**2 * rate / peaks[jobs],
                        "viterbi_positions_per_second": len(nodes) / path,
                    }
                )
    return records


def times_forward_backward(potentials: Scores, passes: int) -> common.Record:
    """Time of a tangent pass divided by that of forward-backward (one thread)."""
    rng = np.random.default_rng(1)
    nodes = rng.standard_normal(potentials.nodes.shape)
    arcs = rng.standard_normal(potentials.arcs.shape)
    marginals, out = forward_backward(potentials).marginals, np.empty_like(nodes)
    move = partial(tangent, potentials, marginals, nodes, out=out, n_threads=1)
    both = common.best_seconds(partial(forward_backward, potentials, out=out, n_threads=1), passes)
    return {
        "tangent_over_forward_backward": common.best_seconds(move, passes) / both,
        "with_a_direction_of_arcs": common.best_seconds(partial(move, arcs), passes) / both,
        "without_pairs": common.best_seconds(partial(move, pairs=None), passes) / both,
    }


def tangents(n_positions: int, passes: int) -> list[common.Record]:
    """Tangent passes over first-order chains, and over the automaton of all strings of 4 labels."""
    records = []
    for n_labels in LABELS:
        total = n_positions if n_labels < 100 else n_positions // 10
        scores, arcs = random_trellis(total, n_labels)
        for length in SEQUENCE_LENGTHS:
            common.log(f"tangent K={n_labels} T={length}")
            offsets = even_offsets(total, length)
            potentials = Scores(scores[: offsets[-1]], arcs, offsets, Chain(n_labels))
            ratios = times_forward_backward(potentials, passes)
            records.append({"order": 1, "n_labels": n_labels, "length": length, **ratios})
    automaton = full_automaton(TANGENT_LABELS, 4)
    scores, _ = random_trellis(n_positions, TANGENT_LABELS)
    arcs = np.random.default_rng(2).standard_normal(automaton.n_arcs)
    for length in SEQUENCE_LENGTHS:
        common.log(f"tangent K={TANGENT_LABELS} order 3 T={length}")
        offsets = even_offsets(n_positions, length)
        potentials = Scores(scores[: offsets[-1]], arcs, offsets, AutomatonChain(automaton))
        ratios = times_forward_backward(potentials, passes)
        records.append({"order": 3, "n_labels": TANGENT_LABELS, "length": length, **ratios})
    return records


def pair_scores(passes: int) -> list[common.Record]:
    """Time with pair scores at every position, divided by that without them."""
    records = []
    for n_labels in EDGE_LABELS:
        rng = np.random.default_rng(n_labels)
        for length, jobs in itertools.product(SEQUENCE_LENGTHS, JOBS):
            common.log(f"pair scores K={n_labels} T={length} n_jobs={jobs}")
            offsets = even_offsets(EDGE_BYTES // (8 * n_labels**2), length)
            nodes, arcs = random_trellis(int(offsets[-1]), n_labels)
            edges = rng.standard_normal((len(nodes), n_labels, n_labels))
            without = Scores(nodes, arcs, offsets, Chain(n_labels))
            scores = replace(without, edges=edges)
            out, moves = np.empty_like(nodes), rng.standard_normal(nodes.shape)
            both = partial(forward_backward, out=out, n_threads=jobs)
            marginals = forward_backward(scores).marginals
            calls = {
                "without": partial(both, without),
                "forward_backward": partial(both, scores),
                "with_each_pair": partial(both, scores, pairs="each"),
                "viterbi": partial(viterbi, scores, n_threads=jobs),
                "tangent": partial(tangent, scores, marginals, moves, out=out, n_threads=jobs),
                "mixing": partial(scores.trellis.mixing, scores, arcs, None, jobs),
            }
            seconds = {name: common.best_seconds(call, passes) for name, call in calls.items()}
            own = seconds.pop("without")
            records.append(
                {
                    "n_labels": n_labels,
                    "length": length,
                    "n_positions": len(nodes),
                    "n_jobs": jobs,
                    "without_ns_per_position": 1e9 * own / len(nodes),
                    **{f"{name}_over_without": time / own for name, time in seconds.items()},
                }
            )
    return records


def random_parents(rng: np.random.Generator, length: int) -> NDArray[np.int32]:
    """A tree: the parent of most positions is one of the last few, that of others any before
    them."""
    before = np.arange(1, length)
    near = np.maximum(before - rng.geometric(0.5, length - 1), 0)
    far = rng.integers(0, before)
    chosen = np.where(rng.random(length - 1) < 0.7, near, far)
    return np.concatenate([[-1], chosen]).astype(np.int32)


def full_automaton(n_labels: int, longest: int) -> Automaton:
    """The automaton of all strings of 2 to ``longest`` labels."""
    lengths = range(2, longest + 1)
    strings = [string for n in lengths for string in itertools.product(range(n_labels), repeat=n)]
    return Automaton.build(n_labels, strings)


def graph_calls(scores: Scores) -> dict[str, Callable[[], object]]:
    """Passes over chains or tree-shaped graphs, by name."""
    found = forward_backward(scores)
    arc_sums = found.arc_sums
    assert arc_sums is not None
    out, rng = np.empty_like(found.marginals), np.random.default_rng(1)
    moves = rng.standard_normal(out.shape)

    def both() -> None:
        if forward_backward(scores, out=out, mixing=True).mixing is None:
            scores.trellis.mixing(scores, arc_sums, None, 1)

    return {
        "forward_backward": partial(forward_backward, scores, out=out),
        "forward_backward_and_mixing": both,
        "mixing": partial(scores.trellis.mixing, scores, arc_sums, None, 1),
        "viterbi": partial(viterbi, scores),
        "tangent": partial(tangent, scores, found.marginals, moves, out=out),
    }


def best_in_turn(calls: dict[str, Callable[[], object]], passes: int) -> dict[str, float]:
    """The least processor time of each call in seconds; calls take turns, so that other work on
    the machine affects all of them."""
    best = dict.fromkeys(calls, math.inf)
    for _ in range(passes):
        for name, call in calls.items():
            start = process_time()
            call()
            best[name] = min(best[name], process_time() - start)
    return best


def graphs(n_positions: int, passes: int) -> list[common.Record]:
    """Time for trees, and for paths stored as trees, divided by that for chains, one thread."""
    records = []
    for order, n_labels in [(1, n) for n in GRAPH_LABELS] + [(2, n) for n in HIGH_ORDER_LABELS]:
        common.log(f"tree-shaped graphs K={n_labels} order {order}")
        offsets = even_offsets(n_positions // (10 if n_labels >= 50 else 1), GRAPH_LENGTH)
        nodes, arcs = random_trellis(int(offsets[-1]), n_labels)
        chain = Scores(nodes, arcs, offsets, Chain(n_labels))
        if order > 1:
            automaton = full_automaton(n_labels, order + 1)
            arcs = np.random.default_rng(2).standard_normal(automaton.n_arcs)
            chain = Scores(nodes, arcs, offsets, AutomatonChain(automaton))
        rng, path = np.random.default_rng(0), np.arange(-1, GRAPH_LENGTH - 1, dtype=np.int32)
        trees = [random_parents(rng, GRAPH_LENGTH) for _ in offsets[1:]]
        kinds = {
            "tree": replace(chain, parents=np.concatenate(trees)),
            "path": replace(chain, parents=np.tile(path, len(trees))),
        }
        record: common.Record = {
            "n_labels": n_labels,
            "order": order,
            "n_positions": len(nodes),
        }
        calls = {name: graph_calls(scores) for name, scores in {"chain": chain, **kinds}.items()}
        for call in calls["chain"]:
            seconds = best_in_turn({name: calls[name][call] for name in calls}, passes)
            for name, least in seconds.items():
                record[f"{call}_{name}_ns"] = 1e9 * least / len(nodes)
                if name != "chain":
                    record[f"{call}_{name}_over_chain"] = least / seconds["chain"]
        records.append(record)
    return records


def scaling(n_positions: int, passes: int) -> list[common.Record]:
    """Nanoseconds per position by length of sequences, with the same total (one thread)."""
    records = []
    for n_labels in LONG_LABELS:
        scores, arcs = random_trellis(n_positions, n_labels)
        nanoseconds = {}
        for length in LONG_LENGTHS:
            if length > n_positions:
                continue
            common.log(f"K={n_labels} T={length}, {n_positions // length} sequences")
            offsets = even_offsets(n_positions, length)
            nodes = scores[: offsets[-1]]
            seconds = common.best_seconds(
                partial(
                    forward_backward, Scores(nodes, arcs, offsets, Chain(n_labels)), n_threads=1
                ),
                passes,
            )
            nanoseconds[length] = 1e9 * seconds / len(nodes)
        records.append(
            {
                "n_labels": n_labels,
                "forward_backward_ns_per_position": nanoseconds,
                "largest_over_smallest": max(nanoseconds.values()) / min(nanoseconds.values()),
                "scores_mib": scores.nbytes / 1024**2,
                "peak_memory_mib": common.peak_memory_mib(),
            }
        )
    return records


def by_threads(n_positions: int, threads: list[int], passes: int) -> list[common.Record]:
    """Nanoseconds per position for each number of threads, and the speed-up over the first."""
    records = []
    for n_labels in FEW_LABELS:
        nodes, arcs = random_trellis(n_positions, n_labels)
        out = np.empty_like(nodes)
        for length in (100, n_positions):
            offsets = even_offsets(n_positions, length)
            scores = Scores(nodes[: offsets[-1]], arcs, offsets, Chain(n_labels))
            nanoseconds = {}
            for n_threads in threads:
                common.log(f"K={n_labels} T={length} threads={n_threads}")
                run = partial(forward_backward, scores, out=out[: offsets[-1]], n_threads=n_threads)
                nanoseconds[n_threads] = 1e9 * common.best_seconds(run, passes) / offsets[-1]
            records.append(
                {
                    "n_labels": n_labels,
                    "length": length,
                    "forward_backward_ns_per_position": nanoseconds,
                    "speed_up": {n: nanoseconds[threads[0]] / ns for n, ns in nanoseconds.items()},
                }
            )
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--positions", type=int, default=200_000, help="a tenth of it for K=100")
    parser.add_argument("--long-positions", type=int, default=1_000_000)
    parser.add_argument("--passes", type=int, default=3, help="the best of these is given")
    parser.add_argument(
        "--threads", help="numbers of threads, such as 1,16: the speed-up by threads and no more"
    )
    options = parser.parse_args()
    machine = common.machine_facts()
    if options.threads is not None:
        threads = [int(number) for number in options.threads.split(",")]
        records = by_threads(options.long_positions, threads, options.passes)
        common.print_json({"by_threads": records, "machine": machine})
        return
    peaks = {jobs: multiply_add_peak(jobs, options.passes) for jobs in JOBS}
    common.print_json(
        {
            "multiply_adds_per_second_peak": peaks,
            "throughput": throughput(options.positions, peaks, options.passes),
            "tangents": tangents(options.positions, options.passes),
            "pair_scores": pair_scores(options.passes),
            "graphs": graphs(options.positions, options.passes),
            "scaling": scaling(options.long_positions, options.passes),
            "peak_memory_mib": common.peak_memory_mib(),
            "machine": machine,
        }
    )


if __name__ == "__main__":
    main()
