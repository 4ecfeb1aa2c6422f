"""Calls over label automata: any batch, any threads, what is wrong with them, Ctrl-C."""

import itertools
import os
import signal
import sys
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import settings

from hedgerow import _core
from hedgerow.labels import Patterns, pin_known
from hedgerow.labels.automaton import Automaton, pair_automaton
from hedgerow.trellis import (
    NoPathError,
    forward_backward,
    k_best,
    log_likelihood,
    log_z,
    sample,
    viterbi,
    weighted_forward_backward,
)
from reference.scores import every_arc, scores_of

examples = partial(settings, deadline=None, derandomize=True)


def random_potentials(n_sequences=45, edges=True, seed=6):
    rng = np.random.default_rng(seed)
    n_labels = 4
    patterns = [*Patterns.pairs(n_labels), (0, 1, 2), (3, 3, 3), (1, 0, 1, 0), (2, 1, 0)]
    automaton = Automaton.build(n_labels, patterns)
    weights = rng.normal(size=len(patterns))
    weights[5] = -np.inf
    lengths = rng.integers(0, 40, n_sequences)
    offsets = np.concatenate([[0], lengths.cumsum()])
    nodes = 2 * rng.normal(size=(offsets[-1], n_labels))
    # Some sequences need log space.
    for s in (2, 3, 17):
        nodes[offsets[s] : offsets[s + 1]] *= 500
    edge_scores = rng.normal(size=(offsets[-1], n_labels, n_labels)) if edges else None
    return scores_of(nodes, automaton.arc_scores(weights), offsets, edge_scores, automaton)


def everything(potentials, labels, weights, uniforms, n_threads=1):
    """All results: by position, by sequence (each along the last axis), and of the whole batch."""
    plain = forward_backward(
        potentials,
        labels=labels,
        pairs="each",
        patterns=every_arc(potentials.trellis.automaton),
        n_threads=n_threads,
    )
    weighted = weighted_forward_backward(
        potentials, labels, weights, pairs="each", n_threads=n_threads
    )
    codes, counts, log_probs = k_best(potentials, 4, n_threads=n_threads)
    by_position = {
        "marginals": plain.marginals.T,
        "arc_marginals": plain.pattern_marginals.T,
        "pairs": plain.pairs.T,
        "weighted marginals": weighted.marginals.T,
        "weighted pairs": weighted.pairs.T,
        "viterbi": viterbi(potentials, n_threads=n_threads),
        "k_best": codes,
        "sample": sample(potentials, uniforms, n_threads=n_threads),
    }
    by_sequence = {
        "log_z": plain.log_z,
        "log_z alone": log_z(potentials, n_threads=n_threads),
        "log_likelihoods": plain.log_likelihoods,
        "log_likelihood": log_likelihood(potentials, labels, n_threads=n_threads),
        "weighted log_likelihoods": weighted.log_likelihoods,
        "counts": counts,
        "log_probs": log_probs,
    }
    whole = {"arc_sums": plain.arc_sums, "weighted arc_sums": weighted.arc_sums}
    return by_position, by_sequence, whole


def random_inputs(potentials):
    rng = np.random.default_rng(7)
    n_positions = potentials.n_positions
    labels = sample(potentials, rng.random((1, n_positions)))[0]
    return labels, rng.random(n_positions), rng.random((3, n_positions))


@pytest.mark.parametrize("edges", [False, True], ids=["arcs", "edges"])
def test_bit_identical_for_any_number_of_threads(edges):
    potentials = random_potentials(edges=edges)
    inputs = random_inputs(potentials)
    one, *others = (everything(potentials, *inputs, n_threads=n_threads) for n_threads in (1, 2, 7))
    for other in others:
        for expected, found in zip(one, other, strict=True):
            for name in expected:
                np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@pytest.mark.parametrize("edges", [False, True], ids=["arcs", "edges"])
def test_bit_identical_alone_or_in_a_batch(edges):
    potentials = random_potentials(edges=edges)
    labels, weights, uniforms = random_inputs(potentials)
    by_position, by_sequence, whole = everything(potentials, labels, weights, uniforms)
    sums = dict.fromkeys(whole, 0.0)
    for s, (begin, end) in enumerate(itertools.pairwise(potentials.offsets)):
        part = slice(begin, end)
        inputs = labels[part], weights[part], uniforms[:, part]
        alone = everything(potentials.part(slice(s, s + 1)), *inputs)
        for name, expected in by_position.items():
            np.testing.assert_array_equal(alone[0][name], expected[..., part], err_msg=name)
        for name, expected in by_sequence.items():
            np.testing.assert_array_equal(alone[1][name][..., 0], expected[..., s], err_msg=name)
        for name in sums:
            sums[name] = sums[name] + alone[2][name]
    for name, expected in whole.items():
        np.testing.assert_allclose(sums[name], expected, rtol=1e-10, atol=1e-12, err_msg=name)


def test_shifted_scores_change_log_z_alone():
    potentials = random_potentials()
    rng = np.random.default_rng(8)
    shifts = rng.normal(size=(potentials.n_positions, 1))
    shifted = replace(potentials, nodes=potentials.nodes + shifts, arcs=potentials.arcs + 3.0)
    plain, other = (forward_backward(p, pairs="each") for p in (potentials, shifted))
    lengths = np.diff(potentials.offsets)
    added = np.add.reduceat(np.append(shifts, 0.0), potentials.offsets[:-1]) * (lengths > 0)
    np.testing.assert_allclose(other.log_z, plain.log_z + added + 3.0 * lengths, rtol=1e-12)
    np.testing.assert_allclose(other.marginals, plain.marginals, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(other.pairs, plain.pairs, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(other.arc_sums, plain.arc_sums, rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(viterbi(shifted), viterbi(potentials))


def test_every_wish_gives_the_same_numbers():
    potentials = random_potentials()
    labels = random_inputs(potentials)[0]
    every = every_arc(potentials.trellis.automaton)
    whole = forward_backward(potentials, labels=labels, pairs="each", patterns=every)
    for pairs, arcs in itertools.product(["sum", "each", None], [False, True]):
        out = np.empty_like(potentials.nodes)
        part = forward_backward(potentials, pairs=pairs, patterns=every if arcs else None, out=out)
        assert part.marginals is out
        assert part.log_likelihoods is None
        for name in ("log_z", "marginals", "arc_sums", "pairs", "pattern_marginals"):
            if getattr(part, name) is not None:
                np.testing.assert_array_equal(getattr(part, name), getattr(whole, name), name)
        assert (part.arc_sums is None, part.pairs is None) == (pairs is None, pairs != "each")
        assert (part.pattern_marginals is None) == (not arcs)


def test_the_arrays_handed_in_stay_as_they_are():
    potentials = random_potentials(n_sequences=20)
    given = potentials.nodes, potentials.arcs, potentials.edges, potentials.offsets
    inputs = random_inputs(potentials)
    kept = [array.copy() for array in (*given, *inputs)]
    everything(potentials, *inputs)
    for now, before in zip((*given, *inputs), kept, strict=True):
        np.testing.assert_array_equal(now, before)


def call(name, potentials):
    """One of the functions, with inputs of the right shapes."""
    n_positions = len(potentials.nodes)
    labels, ones = np.zeros(n_positions), np.ones(n_positions)
    return {
        "forward_backward": forward_backward,
        "log_z": log_z,
        "log_likelihood": partial(log_likelihood, labels=labels),
        "weighted_forward_backward": partial(
            weighted_forward_backward, labels=labels, weights=ones
        ),
        "viterbi": viterbi,
        "k_best": partial(k_best, k=2),
        "sample": partial(sample, uniforms=ones[None] / 2),
    }[name](potentials)


every_function = pytest.mark.parametrize(
    "function",
    [
        "forward_backward",
        "log_z",
        "log_likelihood",
        "weighted_forward_backward",
        "viterbi",
        "k_best",
        "sample",
    ],
)


@every_function
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_inf_are_errors_that_name_the_place(function, value):
    good = random_potentials(n_sequences=20)
    s = int(np.flatnonzero(np.diff(good.offsets) > 3)[2])
    place = good.offsets[s] + 2
    nodes, edges, arcs = good.nodes.copy(), good.edges.copy(), good.arcs.copy()
    nodes[place, 3] = edges[place, 1, 2] = arcs[7] = value
    where = f"score is NaN or \\+inf at position 2 of sequence {s};"
    with pytest.raises(ValueError, match=f"a node {where}"):
        call(function, replace(good, nodes=nodes))
    with pytest.raises(ValueError, match=f"an edge {where}"):
        call(function, replace(good, edges=edges))
    with pytest.raises(ValueError, match=r"the score of arc 7 is NaN or \+inf"):
        call(function, replace(good, arcs=arcs))


@every_function
def test_edges_into_a_first_position_are_not_read(function):
    potentials = random_potentials(n_sequences=20)
    first = potentials.offsets[:-1][np.diff(potentials.offsets) > 0]
    other = replace(potentials, edges=potentials.edges.copy())
    other.edges[first] = np.nan
    one, two = call(function, potentials), call(function, other)
    if function.endswith("forward_backward"):
        one, two = (one.marginals, one.arc_sums), (two.marginals, two.arc_sums)
    for expected, found in zip(one, two, strict=True):
        np.testing.assert_array_equal(found, expected)


@every_function
def test_a_sequence_without_labellings_is_named(function):
    good = random_potentials(n_sequences=20)
    s = int(np.flatnonzero(np.diff(good.offsets) > 3)[2])
    nodes = good.nodes.copy()
    nodes[good.offsets[s] + 1] = -np.inf
    with pytest.raises(NoPathError, match=f"sequence {s} has no labelling with a finite score"):
        call(function, replace(good, nodes=nodes))
    # A sequence that begins with 1 1, which is forbidden.
    nodes = good.nodes.copy()
    known = np.full(len(nodes), -1, np.int32)
    automaton, place = good.trellis.automaton, good.offsets[s]
    known[place : place + 2] = 1, 1
    pin_known(nodes, known)
    arcs = good.arcs.copy()
    arcs[(automaton.labels == 1) & (automaton.last_labels[automaton.sources] == 1)] = -np.inf
    with pytest.raises(NoPathError, match=f"sequence {s} has no labelling with a finite score"):
        call(function, replace(good, nodes=nodes, arcs=arcs))


@every_function
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": np.zeros((4, 3))}, "nodes must have a column for each label"),
        ({"arcs": np.zeros(4)}, "arcs must have an entry for each arc"),
        ({"edges": np.zeros((4, 2, 3))}, "edges and pairs must have shape"),
        ({"edges": np.zeros((3, 2, 2))}, "edges and pairs must have shape"),
        ({"offsets": np.array([0, 3])}, "offsets must run from 0 to the number of positions"),
        ({"offsets": np.array([0, 3, 1, 4])}, "offsets must not fall"),
    ],
)
def test_potentials_of_wrong_shapes_are_errors(function, change, message):
    automaton = pair_automaton(2)
    good = scores_of(np.zeros((4, 2)), np.zeros(6), np.array([0, 4]), None, automaton)
    with pytest.raises(ValueError, match=message):
        call(function, replace(good, **change))


@every_function
@pytest.mark.parametrize("patterns", [[], [(0, 1)], [(0, 0), (0, 1), (1, 0)], [(0, 1) * 6]])
def test_edges_need_all_pairs(function, patterns):
    automaton = Automaton.build(2, patterns)
    nodes, arcs, edges = np.zeros((4, 2)), np.zeros(automaton.n_arcs), np.zeros((4, 2, 2))
    potentials = scores_of(nodes, arcs, np.array([0, 4]), edges, automaton)
    with pytest.raises(ValueError, match="edges need an automaton with an arc for every label"):
        call(function, potentials)
    without = replace(potentials, edges=None)
    with pytest.raises(ValueError, match="pairs need an automaton with an arc for every label"):
        forward_backward(without, pairs="each")
    call(function, without)


GOOD = scores_of(np.zeros((4, 2)), np.zeros(6), np.array([0, 4]), None, pair_automaton(2))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"labels": [0, 1]}, "labels must have an entry for each position"),
        ({"labels": [0, 1, 2, 0]}, "from 0 to n_labels - 1 = 1; got 2 at position 2"),
        ({"labels": [0, 1, -1, 0]}, "from 0 to n_labels - 1 = 1; got -1 at position 2"),
        ({"pairs": "all"}, "pairs is 'all'; expected 'sum', 'each' or None"),
        ({"out": np.zeros((3, 2))}, "marginals must have the shape of nodes"),
        ({"weights": np.zeros(2)}, "weights must have an entry for each sequence"),
    ],
)
def test_wrong_wishes_are_errors(wanted, message):
    with pytest.raises(ValueError, match=message):
        forward_backward(GOOD, **wanted)


def test_wrong_weights_labels_and_uniforms_are_errors():
    with pytest.raises(ValueError, match="weights must have an entry for each position"):
        weighted_forward_backward(GOOD, np.zeros(4), np.zeros(3))
    with pytest.raises(ValueError, match="from 0 to n_labels - 1 = 1; got 2 at position 0"):
        weighted_forward_backward(GOOD, np.full(4, 2), np.zeros(4))
    with pytest.raises(ValueError, match="labels must have an entry for each position"):
        log_likelihood(GOOD, np.zeros(3))
    with pytest.raises(ValueError, match="labels must have a column for each position"):
        sample(GOOD, np.zeros((2, 3)))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize("kernel", ["posteriors", "weighted", "viterbi", "k_best", "samples"])
def test_ctrl_c_ends_a_long_call_before_its_work_is_done(kernel):
    # Two groups of four sequences that would take seconds; the signal comes while they run.
    n_labels, n_positions = 300, 64_000
    automaton = pair_automaton(n_labels)
    offsets = np.arange(0, n_positions + 1, n_positions // 8)
    nodes, arcs = np.zeros((n_positions, n_labels)), np.zeros(automaton.n_arcs)
    codes, numbers = np.full((1, n_positions), -1, np.int32), np.full((1, 8), np.nan)
    labels, marginals = np.zeros(n_positions, np.int32), np.empty_like(nodes)
    fill, outputs = {
        "posteriors": (
            _core.fill_automaton_posteriors,
            (None, numbers[0], None, marginals, None, None, None, None, None),
        ),
        "weighted": (
            _core.fill_weighted_automaton_posteriors,
            (labels, np.ones(n_positions), numbers[0], marginals, None, None),
        ),
        "viterbi": (_core.fill_automaton_viterbi, (codes[0],)),
        "k_best": (_core.fill_k_best, (codes, np.zeros(8, np.int64), numbers)),
        "samples": (_core.fill_samples, (np.zeros((1, n_positions)), codes)),
    }[kernel]
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        fill(automaton.program, nodes, arcs, None, offsets, *outputs, 2)
    timer.join()
    assert np.isnan(numbers).any()
    assert (codes < 0).any()
