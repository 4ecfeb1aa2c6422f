"""Calls of the trellis: any batch, any number of threads, errors, Ctrl-C."""

import itertools
import re
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from hedgerow.labels import pin_known
from hedgerow.labels.automaton import Automaton, PatternArcs, pair_automaton
from hedgerow.trellis import (
    Chain,
    NoPathError,
    Outputs,
    Scores,
    forward_backward,
    k_best,
    log_likelihood,
    log_z,
    sample,
    tangent,
    viterbi,
    weighted_forward_backward,
)
from reference.ctrl_c import press_after
from reference.scores import scores_of, trellis_of
from reference.trellises import FUNCTIONS, KINDS, all_arcs, random_batch

all_kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def random_inputs(potentials):
    """Labels, weights, uniform numbers and a direction of the scores; each ends with positions."""
    rng = np.random.default_rng(7)
    n_positions = potentials.n_positions
    labels = sample(potentials, rng.random((1, n_positions)))[0]
    moves = rng.normal(size=potentials.nodes.T.shape)
    return labels, rng.random(n_positions), rng.random((3, n_positions)), moves


def everything(potentials, labels, weights, uniforms, moves, n_threads=1):
    """All results: by position, by sequence (each along the last axis), and of the whole batch."""
    given = {"pairs": "each", "n_threads": n_threads}
    patterns = all_arcs(potentials)
    plain = forward_backward(potentials, labels=labels, patterns=patterns, **given)
    weighted = weighted_forward_backward(potentials, labels, weights, **given)
    arc_moves = np.cos(np.arange(potentials.arcs.size)).reshape(potentials.arcs.shape)
    moved = tangent(potentials, plain.marginals, moves.T, arc_moves, **given)
    codes, counts, log_probs = k_best(potentials, 4, n_threads=n_threads)
    by_position = {
        "marginals": plain.marginals.T,
        "arc_marginals": plain.pattern_marginals.T,
        "pairs": plain.pairs.T,
        "weighted marginals": weighted.marginals.T,
        "weighted pairs": weighted.pairs.T,
        "moved marginals": moved.marginals.T,
        "moved pairs": moved.pairs.T,
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
    whole = {
        name: result.arc_sums
        for name, result in {"plain": plain, "weighted": weighted, "moved": moved}.items()
    }
    return by_position, by_sequence, whole


@all_kinds
def test_bit_identical_for_any_number_of_threads(kind):
    # So many sequences that there are several tasks for the threads.
    potentials = random_batch(n_sequences=2000 // kind.get("n_labels", 5), **kind)
    inputs = random_inputs(potentials)
    one, other = (everything(potentials, *inputs, n_threads=n_threads) for n_threads in (1, 7))
    for expected, found in zip(one, other, strict=True):
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@all_kinds
def test_bit_identical_alone_or_in_a_batch_or_in_another_order(kind):
    potentials = random_batch(**kind)
    inputs = random_inputs(potentials)
    by_position, by_sequence, whole = everything(potentials, *inputs)
    bounds = list(itertools.pairwise(potentials.offsets))
    sums = dict.fromkeys(whole, 0.0)
    for s, (begin, end) in enumerate(bounds):
        alone = everything(
            potentials.part(slice(s, s + 1)), *(each[..., begin:end] for each in inputs)
        )
        for name, expected in by_position.items():
            np.testing.assert_array_equal(alone[0][name], expected[..., begin:end], err_msg=name)
        for name, expected in by_sequence.items():
            np.testing.assert_array_equal(alone[1][name][..., 0], expected[..., s], err_msg=name)
        sums = {name: sums[name] + alone[2][name] for name in sums}
    order = np.concatenate([np.arange(begin, end) for begin, end in reversed(bounds)])
    turned = replace(
        potentials,
        nodes=potentials.nodes[order],
        edges=None if potentials.edges is None else potentials.edges[order],
        offsets=np.cumsum([0, *(end - begin for begin, end in reversed(bounds))]),
    )
    other = everything(turned, *(each[..., order] for each in inputs))
    for name, expected in by_position.items():
        np.testing.assert_array_equal(other[0][name], expected[..., order], err_msg=name)
    for name, expected in by_sequence.items():
        np.testing.assert_array_equal(other[1][name], expected[..., ::-1], err_msg=name)
    for name, expected in whole.items():
        for found in (sums[name], other[2][name]):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=name)


@all_kinds
def test_shifted_scores_change_log_z_alone(kind):
    potentials = random_batch(**kind)
    shifts = np.random.default_rng(8).normal(size=(potentials.n_positions, 1))
    shifted = replace(potentials, nodes=potentials.nodes + shifts, arcs=potentials.arcs + 3.0)
    plain, other = (forward_backward(p, pairs="each") for p in (potentials, shifted))
    lengths = np.diff(potentials.offsets)
    n_arcs = lengths - (lengths > 0) if potentials.arcs.ndim == 2 else lengths
    added = np.add.reduceat(np.append(shifts, 0.0), potentials.offsets[:-1]) * (lengths > 0)
    np.testing.assert_allclose(other.log_z, plain.log_z + added + 3.0 * n_arcs, rtol=1e-12)
    for name in ("marginals", "pairs", "arc_sums"):
        found, expected = getattr(other, name), getattr(plain, name)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(viterbi(shifted), viterbi(potentials))


@all_kinds
def test_every_wish_gives_the_same_numbers(kind):
    potentials = random_batch(**kind)
    labels, _, _, moves = random_inputs(potentials)
    every = all_arcs(potentials)
    whole = forward_backward(potentials, labels=labels, pairs="each", patterns=every)
    move = partial(tangent, potentials, whole.marginals, moves.T)
    moved = move(pairs="each")

    def check(part, expected, out):
        assert part.marginals is out
        assert (part.arc_sums is None, part.pairs is None) == (pairs is None, pairs != "each")
        for name, found in vars(part).items():
            if found is not None:
                np.testing.assert_array_equal(found, getattr(expected, name), name)

    for pairs, arcs in itertools.product(["sum", "each", None], [False, True]):
        out = np.empty_like(potentials.nodes)
        part = forward_backward(potentials, pairs=pairs, patterns=every if arcs else None, out=out)
        check(part, whole, out)
        assert part.log_likelihoods is None
        assert (part.pattern_marginals is None) == (not arcs)
        check(move(pairs=pairs, out=out), moved, out)


@all_kinds
def test_the_arrays_handed_in_stay_as_they_are(kind):
    potentials = random_batch(**kind)
    inputs = random_inputs(potentials)
    given = [potentials.nodes, potentials.arcs, potentials.offsets, potentials.edges, *inputs]
    kept = [None if array is None else array.copy() for array in given]
    everything(potentials, *inputs)
    for now, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(now, before)


with_edges = pytest.mark.parametrize(
    "potentials", [random_batch(**KINDS["edges"]), random_batch(**KINDS["automaton, edges"])]
)


@pytest.mark.parametrize("n_labels", [3, 9, 26])
@pytest.mark.parametrize("factor", [1.0, 1e4])  # the latter in log space
def test_edges_in_single_precision_are_read_as_doubles(n_labels, factor):
    potentials = random_batch(**KINDS["edges"] | {"n_labels": n_labels})
    single = replace(potentials, edges=(factor * potentials.edges).astype(np.float32))
    inputs = random_inputs(potentials)
    double = replace(single, edges=single.edges.astype(np.float64))
    for found, expected in zip(
        everything(single, *inputs), everything(double, *inputs), strict=True
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_edges_in_single_precision_must_be_numbers():
    potentials = random_batch(**KINDS["edges"] | {"n_labels": 9})
    single = replace(potentials, edges=potentials.edges.astype(np.float32))
    single.edges[potentials.offsets[4] + 2, 1, 2] = np.nan
    all_refuse(single, ValueError, r"an edge score is NaN or \+inf at position 2 of sequence 4")


def all_refuse(potentials, error, message):
    """Every function raises it."""
    for function in FUNCTIONS.values():
        with pytest.raises(error, match=message):
            function(potentials)


@with_edges
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_inf_are_errors_that_name_the_place(potentials, value):
    place = potentials.offsets[4] + 2
    nodes, edges, arcs = (a.copy() for a in (potentials.nodes, potentials.edges, potentials.arcs))
    nodes[place, 2] = edges[place, 1, 2] = arcs.flat[7] = value
    where = r"score is NaN or \+inf at position 2 of sequence 4;"
    all_refuse(replace(potentials, nodes=nodes), ValueError, f"a node {where}")
    all_refuse(replace(potentials, edges=edges), ValueError, f"an edge {where}")
    message = r"arc score is NaN or \+inf, from label 2 to label 1|score of arc \d+ is NaN or \+inf"
    all_refuse(replace(potentials, arcs=arcs), ValueError, message)


@pytest.mark.parametrize("n_labels", [2, 4, 9])
def test_edges_may_forbid_label_pairs(n_labels):
    rng = np.random.default_rng(n_labels)
    nodes = rng.normal(size=(4, n_labels))
    edges = rng.normal(size=(4, n_labels, n_labels))
    edges[rng.random(edges.shape) < 0.3] = -np.inf
    arcs = np.zeros((n_labels, n_labels))
    scores = Scores(nodes, arcs, np.array([0, 4]), Chain(n_labels), edges=edges)
    total, marginals = 0.0, np.zeros_like(nodes)
    for labels in itertools.product(range(n_labels), repeat=4):
        score = sum(nodes[t, k] for t, k in enumerate(labels))
        score += sum(edges[t, labels[t - 1], labels[t]] for t in range(1, 4))
        total += np.exp(score)
        marginals[np.arange(4), labels] += np.exp(score)
    found = forward_backward(scores)
    np.testing.assert_allclose(found.log_z, [np.log(total)], rtol=1e-12)
    np.testing.assert_allclose(found.marginals, marginals / total, rtol=1e-10)
    codes = viterbi(scores)
    assert np.isfinite(edges[np.arange(1, 4), codes[:-1], codes[1:]]).all()


@with_edges
def test_edges_into_a_first_position_are_not_read(potentials):
    first = potentials.offsets[:-1][np.diff(potentials.offsets) > 0]
    other = replace(potentials, edges=potentials.edges.copy())
    other.edges[first] = np.nan
    for function in FUNCTIONS.values():
        one, two = function(potentials), function(other)
        if hasattr(one, "marginals"):
            one, two = (one.marginals, one.arc_sums), (two.marginals, two.arc_sums)
        for expected, found in zip(one, two, strict=True):
            np.testing.assert_array_equal(found, expected)


@all_kinds
def test_a_sequence_without_labellings_is_named(kind):
    message = "sequence 4 has no labelling with a finite score"
    good = random_batch(**kind)
    nodes, place = good.nodes.copy(), good.offsets[4]
    nodes[place + 1] = -np.inf
    all_refuse(replace(good, nodes=nodes), NoPathError, message)
    if good.n_labels < 3 or good.arcs.ndim == 2:
        return
    # A sequence that begins with 1 1, which is forbidden.
    nodes, arcs, automaton = good.nodes.copy(), good.arcs.copy(), good.trellis.automaton
    known = np.full(len(nodes), -1, np.int32)
    known[place : place + 2] = 1, 1
    pin_known(nodes, known)
    arcs[(automaton.labels == 1) & (automaton.last_labels[automaton.sources] == 1)] = -np.inf
    all_refuse(replace(good, nodes=nodes, arcs=arcs), NoPathError, message)


CHAIN = scores_of(np.zeros((4, 2)), np.zeros((2, 2)), [0, 4])
OVER_PAIRS = scores_of(np.zeros((4, 2)), np.zeros(6), [0, 4], None, pair_automaton(2))
both = pytest.mark.parametrize("potentials", [CHAIN, OVER_PAIRS], ids=["chain", "automaton"])


@pytest.mark.parametrize(
    ("good", "change", "message"),
    [
        (OVER_PAIRS, {"nodes": np.zeros((4, 3))}, "nodes must have a column for each label"),
        (OVER_PAIRS, {"arcs": np.zeros(4)}, "arcs must have an entry for each arc"),
        *(
            case
            for good in (CHAIN, OVER_PAIRS)
            for case in [
                (good, {"edges": np.zeros((4, 2, 3))}, "edges and pairs must have shape"),
                (good, {"edges": np.zeros((3, 2, 2))}, "edges and pairs must have shape"),
                (good, {"offsets": [0, 3]}, "offsets must run from 0 to the number of positions"),
                (good, {"offsets": [0, 3, 1, 4]}, "offsets must not decrease"),
                (good, {"offsets": [0, 1.7, 4]}, r"offsets are \[0, 1.7, 4\]; expected whole num"),
            ]
        ),
    ],
)
def test_potentials_of_wrong_shapes_are_errors(good, change, message):
    all_refuse(replace(good, **change), ValueError, message)


@pytest.mark.parametrize(
    ("n_labels", "arcs", "message"),
    [(2, np.zeros((3, 2)), "arcs must be a square"), (0, np.zeros((0, 0)), "at least one column")],
)
def test_tables_of_arcs_of_wrong_shapes_are_errors(n_labels, arcs, message):
    with pytest.raises(ValueError, match=message):
        forward_backward(scores_of(np.zeros((4, n_labels)), arcs, [0, 4]))


@pytest.mark.parametrize("patterns", [[], [(0, 1)], [(0, 0), (0, 1), (1, 0)], [(0, 1) * 6]])
def test_edges_need_all_pairs(patterns):
    automaton = Automaton.build(2, patterns)
    nodes, arcs, edges = np.zeros((4, 2)), np.zeros(automaton.n_arcs), np.zeros((4, 2, 2))
    potentials = scores_of(nodes, arcs, np.array([0, 4]), edges, automaton)
    all_refuse(potentials, ValueError, "edges need an automaton with an arc for every label")
    without = replace(potentials, edges=None)
    with pytest.raises(ValueError, match="pairs need an automaton with an arc for every label"):
        forward_backward(without, pairs="each")
    for function in FUNCTIONS.values():
        function(without)


WEIGHTED = partial(weighted_forward_backward, labels=np.zeros(4), weights=np.ones(4))
TANGENT = partial(tangent, marginals=np.full((4, 2), 0.5), nodes=np.zeros((4, 2)))


@both
@pytest.mark.parametrize(
    ("function", "wanted", "message"),
    [
        (forward_backward, {"labels": [0, 1]}, "labels must have an entry for each position"),
        (forward_backward, {"labels": [[0, 1, 1, 0]]}, r"an entry for each .* shape \(1, 4\)"),
        (forward_backward, {"pairs": "all"}, "pairs is 'all'; expected 'sum', 'each' or None"),
        (forward_backward, {"out": np.zeros((3, 2))}, "marginals must have the shape of nodes"),
        (forward_backward, {"weights": [0, 0]}, "weights must have an entry for each sequence"),
        (forward_backward, {"weights": [np.nan]}, "weight 0 is nan; weights must be finite num"),
        (log_likelihood, {"labels": np.zeros(3)}, "labels must have an entry for each position"),
        (WEIGHTED, {"weights": np.zeros(3)}, "weights must have an entry for each position"),
        (WEIGHTED, {"weights": [1, 1, np.inf, 1]}, "weight 2 is inf; weights must be finite num"),
        (sample, {"uniforms": np.zeros((2, 3))}, r"uniforms has shape \(2, 3\); expected \(n, 4\)"),
        (sample, {"uniforms": np.ones((2, 4))}, r"uniforms must be numbers in \[0, 1\)"),
        (TANGENT, {"marginals": np.zeros((3, 2))}, r"shape \(3, 2\); expected .* \(4, 2\)"),
        (TANGENT, {"nodes": np.zeros((4, 3))}, r"direction of nodes has shape \(4, 3\); expec"),
        (TANGENT, {"nodes": [[0, 0], [0, np.nan]] * 2}, "is nan at position 1, label 1; expected"),
        (TANGENT, {"arcs": np.zeros(4)}, r"direction of arcs has shape \(4,\); expected"),
        (TANGENT, {"pairs": "all"}, "pairs is 'all'; expected 'sum', 'each' or None"),
        (TANGENT, {"out": np.zeros((3, 2))}, "marginals must have the shape of nodes"),
        (TANGENT, {"out": TANGENT.keywords["marginals"]}, "out shares memory with marginals"),
        (
            TANGENT,
            {"out": TANGENT.keywords["nodes"]},
            "out shares memory with marginals or nodes; pa",
        ),
    ],
)
def test_wrong_wishes_are_errors(potentials, function, wanted, message):
    with pytest.raises(ValueError, match=message):
        function(potentials, **wanted)


@pytest.mark.parametrize(
    ("potentials", "arcs", "place"),
    [
        (CHAIN, [[0, 0], [-np.inf, 0]], "-inf at labels 1 to 0"),
        (OVER_PAIRS, [0, 0, 0, np.nan, 0, 0], "nan at arc 3"),
    ],
)
def test_a_direction_of_arcs_must_be_finite_numbers(potentials, arcs, place):
    with pytest.raises(ValueError, match=f"direction of arcs is {place}; expected finite"):
        TANGENT(potentials, arcs=arcs)


NO_CODES = [
    [0, 1.7, 1, 0],
    [0, np.nan, 1, 0],
    [0, np.inf, 1, 0],
    [0, 2**32, 1, 0],
    [0, 2**32 + 1, 1, 0],
    [0, -(2**63), 1, 0],
    np.array([0, 2**63, 1, 0], np.uint64),
    np.array([0, 2**64 - 1, 1, 0], np.uint64),
    np.array([0, 2**70, 1, 0], object),
    np.array([0, None, 1, 0], object),
    ["0", "1", "1", "0"],
    [0, 2, 1, 0],
    [0, -1, 1, 0],
]


@pytest.mark.parametrize("labels", NO_CODES, ids=str)
def test_what_is_no_label_code_is_not_taken_for_one(labels):
    place = 1 if labels[0] == 0 else 0
    message = (
        "labels must be integers from 0 to n_labels - 1 = 1; "
        f"got {np.asarray(labels).tolist()[place]!r} at position {place}"
    )
    for function in (log_likelihood, forward_backward, WEIGHTED):
        for potentials in (CHAIN, OVER_PAIRS):
            with pytest.raises(ValueError, match=re.escape(message)):
                function(potentials, labels=labels)


@pytest.mark.parametrize("kind", [bool, np.uint8, np.uint64, np.int64, np.float32, object])
def test_label_codes_may_be_whole_numbers_of_any_type(kind):
    rng = np.random.default_rng(0)
    potentials = scores_of(rng.normal(size=(4, 2)), rng.normal(size=(2, 2)), [0, 4])
    labels = np.array([0, 1, 1, 0])
    assert log_likelihood(potentials, labels.astype(kind)) == log_likelihood(potentials, labels)


@both
@pytest.mark.parametrize(
    ("offsets", "arcs", "n_columns", "message"),
    [
        ([0, 1], [6], 1, "an arc of a pattern is out of range"),
        ([0, 1], [-1], 1, "an arc of a pattern is out of range"),
        ([0, 2], [0], 1, "offsets must run from 0 to the number"),
        ([0, 1], [0], 2, "marginals of patterns must have a row for each position and a column"),
    ],
)
def test_the_kernel_checks_patterns(potentials, offsets, arcs, n_columns, message):
    patterns = PatternArcs(np.array(offsets), np.array(arcs, np.int32))
    out = Outputs(pattern_marginals=np.empty((4, n_columns)), patterns=patterns)
    with pytest.raises(ValueError, match=message):
        potentials.trellis.fill_posteriors(potentials, None, None, out, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize(
    ("automaton", "kernel", "n_threads"),
    [
        (None, "posteriors", 1),
        (None, "weighted", 2),
        (None, "tangents", 2),
        (None, "viterbi", 1),
        (pair_automaton, "posteriors", 2),
        (pair_automaton, "weighted", 1),
        (pair_automaton, "tangents", 1),
        (pair_automaton, "viterbi", 2),
        (pair_automaton, "k_best", 2),
        (pair_automaton, "samples", 1),
    ],
)
def test_ctrl_c_ends_a_long_call_before_its_work_is_done(automaton, kernel, n_threads):
    # Two groups of four sequences that would take seconds; the signal comes while they run.
    n_labels, n_positions = 300, 48_000
    offsets = np.arange(0, n_positions + 1, n_positions // 8)
    trellis = trellis_of(n_labels, automaton and automaton(n_labels))
    nodes, labels = np.zeros((n_positions, n_labels)), np.zeros(n_positions, np.int32)
    scores = Scores(nodes, np.zeros(trellis.arc_shape), offsets, trellis)
    codes, numbers = np.full((1, n_positions), -1, np.int32), np.full((1, 8), np.nan)
    out = Outputs(log_likelihoods=numbers[0], marginals=np.zeros_like(nodes))
    out.marginals[:, 0] = np.nan
    call = {
        "posteriors": lambda: trellis.fill_posteriors(scores, labels, None, out, n_threads),
        "weighted": lambda: trellis.fill_weighted_posteriors(
            scores, labels, np.ones(n_positions), out, n_threads
        ),
        "tangents": lambda: trellis.fill_tangents(scores, nodes, nodes, None, out, n_threads),
        "viterbi": lambda: trellis.fill_viterbi(scores, codes[0], n_threads),
        "k_best": lambda: trellis.fill_k_best(
            scores, codes, np.zeros(8, np.int64), numbers, n_threads
        ),
        "samples": lambda: trellis.fill_samples(
            scores, np.zeros((1, n_positions)), codes, n_threads
        ),
    }[kernel]
    with pytest.raises(KeyboardInterrupt):
        press_after(0.03, call)
    assert np.isnan(numbers).any()
    assert np.isnan(out.marginals[:, 0]).any()
    assert (codes < 0).any()
