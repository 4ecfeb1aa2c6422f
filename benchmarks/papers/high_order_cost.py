"""Cost of label patterns: time of forward-backward per position, for 10^2 to 10^5 patterns.

Patterns are the most frequent substrings of a random text in which a label depends on the three
before it, so that they overlap as those of real data do. One thread throughout.
"""

from __future__ import annotations

import argparse
import math
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import common
import numpy as np
from numpy.typing import NDArray

from hedgerow.labels.automaton import Automaton
from hedgerow.trellis import AutomatonChain, Chain, Scores, forward_backward

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = ("K=10", "K=26")
REPEATS = 1

N_PATTERNS = (10**2, 10**3, 10**4, 10**5)
QUICK_N_PATTERNS = (10**2, 10**3)
LONGEST = 6
TEXT_LENGTH = 1_000_000
CONTEXT = 3
N_NEXT = 6
LENGTH = 50
MOST_SEQUENCES = 64
SEQUENCES_AT_A_TIME = 4  # of the kernel; only whole groups, for a fair comparison
ARC_VISITS = 400_000_000  # fewer sequences if they would visit more arcs than this
PASSES = 5
ROOM_FOR_NOISE = 1.1  # time may grow by this factor more than the number of arcs

Pattern = tuple[int, ...]


def random_text(n_labels: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Labels (TEXT_LENGTH,): each is one of N_NEXT that its context of three allows."""
    n_contexts = n_labels**CONTEXT
    next_labels = rng.random((n_contexts, n_labels)).argsort(axis=1)[:, :N_NEXT].tolist()
    choices = rng.integers(N_NEXT, size=TEXT_LENGTH)
    # The minimum of two draws: the first of the next labels are more probable.
    choices = np.minimum(choices, rng.integers(N_NEXT, size=TEXT_LENGTH)).tolist()
    text, context = [], 0
    for choice in choices:
        label = next_labels[context][choice]
        text.append(label)
        context = (context * n_labels + label) % n_contexts
    return np.array(text)


def frequent_patterns(text: NDArray[np.int64], n_labels: int, n_patterns: int) -> list[Pattern]:
    """The most frequent substrings of up to LONGEST labels; of equal ones, the shorter first.

    All substrings of a pattern are included, since they occur at least as often.
    """
    lengths, codes, counts = [], [], []
    code = np.zeros(len(text) + 1, dtype=np.int64)
    for length in range(1, LONGEST + 1):
        # The substring of this length at each position, as a number in base K.
        code = code[:-1] * n_labels + text[length - 1 :]
        distinct, count = np.unique(code, return_counts=True)
        lengths.append(np.full(len(distinct), length))
        codes.append(distinct)
        counts.append(count)
    length_of, code_of, count_of = map(np.concatenate, (lengths, codes, counts))
    chosen = np.lexsort((code_of, length_of, -count_of))[:n_patterns]
    if len(chosen) < n_patterns:
        raise ValueError(f"the text has {len(chosen)} patterns, {n_patterns} are wanted")
    pairs = zip(code_of[chosen].tolist(), length_of[chosen].tolist(), strict=True)
    return [decode_pattern(code, length, n_labels) for code, length in pairs]


def decode_pattern(code: int, length: int, n_labels: int) -> Pattern:
    return tuple(code // n_labels**place % n_labels for place in reversed(range(length)))


def batch_size(n_arcs: int) -> int:
    """Number of sequences, few enough that large automata do not take minutes."""
    n_groups = ARC_VISITS // (n_arcs * LENGTH * SEQUENCES_AT_A_TIME)
    return min(max(n_groups, 1) * SEQUENCES_AT_A_TIME, MOST_SEQUENCES)


def random_nodes(
    n_sequences: int, n_labels: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Node scores (n_sequences * LENGTH, K), standard normal, and offsets."""
    offsets = np.arange(0, n_sequences * LENGTH + 1, LENGTH, dtype=np.int64)
    return rng.standard_normal((offsets[-1], n_labels)), offsets


def measure_patterns(
    n_labels: int, patterns: list[Pattern], rng: np.random.Generator
) -> common.Record:
    """Times of building the automaton, scoring its arcs, and forward-backward over a batch."""
    with common.Stopwatch() as build:
        automaton = Automaton.build(n_labels, patterns)
        _ = automaton.program  # first use prepares the data for the kernels
    pattern_scores = rng.standard_normal(len(patterns))
    arcs = automaton.arc_scores(pattern_scores)
    nodes, offsets = random_nodes(batch_size(automaton.n_arcs), n_labels, rng)
    run = partial(
        forward_backward, Scores(nodes, arcs, offsets, AutomatonChain(automaton)), n_threads=1
    )
    seconds = common.best_seconds(run, PASSES) / len(nodes)
    score_arcs = partial(automaton.arc_scores, pattern_scores)
    return {
        "n_labels": n_labels,
        "n_patterns": len(patterns),
        "longest_pattern": max(map(len, patterns)),
        "n_states": automaton.n_states,
        "n_arcs": automaton.n_arcs,
        "n_terms": automaton.program.n_terms,
        "n_positions": len(nodes),
        "microseconds_per_position": 1e6 * seconds,
        "nanoseconds_per_position_and_arc": 1e9 * seconds / automaton.n_arcs,
        "build_seconds": build.seconds,
        "arc_scores_seconds": common.best_seconds(score_arcs, PASSES),
        "peak_memory_mib": common.peak_memory_mib(),
    }


def compare_with_dense(n_labels: int, rng: np.random.Generator) -> common.Record:
    """All pairs of labels, as patterns of an automaton and as the matrix of the dense kernel."""
    matrix = rng.standard_normal((n_labels, n_labels))
    pairs = [(before, label) for before in range(n_labels) for label in range(n_labels)]
    automaton = Automaton.build(n_labels, pairs)
    arcs = automaton.arc_scores(matrix.ravel())
    nodes, offsets = random_nodes(MOST_SEQUENCES, n_labels, rng)
    sparse = partial(
        forward_backward, Scores(nodes, arcs, offsets, AutomatonChain(automaton)), n_threads=1
    )
    dense = partial(
        forward_backward, Scores(nodes, matrix, offsets, Chain(len(matrix))), n_threads=1
    )
    np.testing.assert_allclose(sparse().log_z, dense().log_z, rtol=1e-9)
    sparse_seconds, dense_seconds = (common.best_seconds(run, PASSES) for run in (sparse, dense))
    return {
        "n_labels": n_labels,
        "n_arcs": automaton.n_arcs,
        "automaton_microseconds_per_position": 1e6 * sparse_seconds / len(nodes),
        "dense_microseconds_per_position": 1e6 * dense_seconds / len(nodes),
        "automaton_over_dense": sparse_seconds / dense_seconds,
    }


def measure(part: str, options: argparse.Namespace) -> common.Record:
    n_labels = int(part.removeprefix("K="))
    rng = np.random.default_rng(n_labels)
    sizes = QUICK_N_PATTERNS if options.quick else N_PATTERNS
    patterns = frequent_patterns(random_text(n_labels, rng), n_labels, max(sizes))
    records: list[common.Record] = []
    for size in sizes:
        records.append(measure_patterns(n_labels, patterns[:size], rng))
        common.log(
            f"K={n_labels}, {size} patterns, {records[-1]['n_arcs']} arcs: "
            f"{records[-1]['microseconds_per_position']:.2f} microseconds a position"
        )
    return {"sizes": records, "pairs_against_dense": compare_with_dense(n_labels, rng)}


def add_steps(records: list[common.Record]) -> None:
    """Add to each record but the first the growth of time and arcs since the previous one."""
    for before, record in pairwise(records):
        time, arcs = (
            record[name] / before[name] for name in ("microseconds_per_position", "n_arcs")
        )
        record["time_over_previous"] = time
        record["arcs_over_previous"] = arcs
        record["growth_exponent"] = math.log(time) / math.log(arcs)
        record["no_faster_than_arcs"] = time <= ROOM_FOR_NOISE * arcs


def judge(records: list[common.Record]) -> common.Record:
    """Growth of time, of arcs, and of arcs plus states, from the first to the last record."""
    first, last = records[0], records[-1]
    time, arcs = (last[name] / first[name] for name in ("microseconds_per_position", "n_arcs"))
    both, both_first = (record["n_arcs"] + record["n_states"] for record in (last, first))
    return {
        "n_labels": first["n_labels"],
        "time_last_over_first": time,
        "arcs_last_over_first": arcs,
        "arcs_and_states_last_over_first": both / both_first,
        "no_faster_than_arcs_overall": time <= arcs,
        "no_faster_than_arcs_and_states_overall": time <= both / both_first,
        "no_faster_than_arcs_at_every_step": all(r["no_faster_than_arcs"] for r in records[1:]),
    }


def cache_sizes() -> dict[str, str]:
    """Sizes of the data caches of the first core, if known, such as ``{"L2": "512K"}``."""
    folders = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    facts = [[(f / n).read_text().strip() for n in ("type", "level", "size")] for f in folders]
    return {f"L{level}": size for kind, level, size in facts if kind != "Instruction"}


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    records = [record for (record,) in runs.values()]
    for record in records:
        add_steps(record["sizes"])
    return {
        "setting": f"sequences of {LENGTH}, one thread, best of {PASSES} passes; patterns are "
        f"frequent substrings of up to {LONGEST} labels of a random text",
        "sizes": [size for record in records for size in record["sizes"]],
        "verdict": [judge(record["sizes"]) for record in records],
        "verdict_note": "A position visits every arc and every state forward and backward. Once "
        "they outgrow a level of cache a visit takes longer, so at such a step time can outgrow "
        "their number.",
        "room_for_noise_at_a_step": ROOM_FOR_NOISE,
        "caches": cache_sizes(),
        "pairs_against_dense": [record["pairs_against_dense"] for record in records],
    }


def draw(summary: common.Record) -> Figure:
    """Time against patterns and against arcs, both axes logarithmic."""
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), sharey=True, layout="constrained")
    draw_against(left, summary["sizes"], "n_patterns")
    draw_against(right, summary["sizes"], "n_arcs")
    left.set_xlabel("number of label patterns")
    left.set_ylabel("microseconds per position, one thread")
    right.set_xlabel("number of arcs of the automaton")
    figure.suptitle("forward-backward")
    return figure


def draw_against(panel: Axes, sizes: list[common.Record], name: str) -> None:
    for n_labels in sorted({size["n_labels"] for size in sizes}):
        chosen = [size for size in sizes if size["n_labels"] == n_labels]
        at = [size[name] for size in chosen]
        times = [size["microseconds_per_position"] for size in chosen]
        (line,) = panel.loglog(at, times, marker="o", label=f"K = {n_labels} labels")
        linear = [times[0] * x / at[0] for x in at]
        panel.loglog(at, linear, "--", color=line.get_color(), alpha=0.6)
    panel.plot([], [], "--", color="grey", label="slope 1 from the first point")
    panel.grid(alpha=0.3)
    panel.legend()
