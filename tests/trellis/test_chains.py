import itertools
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import _core
from hedgerow.labels.automaton import PatternArcs, pair_automaton
from hedgerow.trellis import (
    AutomatonChain,
    NoPathError,
    Outputs,
    forward_backward,
    log_likelihood,
    log_z,
    viterbi,
    weighted_forward_backward,
)
from reference.chains import Chain, enumerate_chain, weighted_log_likelihood
from reference.problems import central_differences
from reference.scores import scores_of

OVER_PAIRS = AutomatonChain(pair_automaton(2))
EXTREMES = [0.0, 1e2, -1e2, 8e2, -8e2, 1e5, -1e5]


@st.composite
def chains(draw, node_scores, arc_scores, edges=False):
    """A short chain whose scores come from the given strategies."""
    n_positions = draw(st.integers(1, 6))
    n_labels = draw(st.integers(1, 4))

    def table(*shape, of):
        size = int(np.prod(shape))
        return np.array(draw(st.lists(of, min_size=size, max_size=size))).reshape(shape)

    return Chain(
        nodes=table(n_positions, n_labels, of=node_scores),
        arcs=table(n_labels, n_labels, of=arc_scores),
        edges=table(n_positions, n_labels, n_labels, of=node_scores) if edges else None,
    )


moderate = st.floats(-5, 5)
# In steps that add up to 1e5 and back without rounding: there a double has only 1e-11 left.
extreme = st.sampled_from(EXTREMES) | st.integers(-320, 320).map(lambda n: n / 64)
extreme_or_forbidden = extreme | st.just(-np.inf)


def potentials_of(chain):
    return scores_of(chain.nodes, chain.arcs, np.array([0, len(chain.nodes)]), chain.edges)


@pytest.mark.parametrize(
    ("drawn", "n_examples"),
    [
        (chains(moderate, moderate), 500),
        (chains(extreme, extreme_or_forbidden), 500),
        (chains(extreme_or_forbidden, extreme_or_forbidden), 200),
        (chains(extreme, extreme_or_forbidden, edges=True), 200),
    ],
    ids=["moderate", "extreme", "forbidden nodes", "edges"],
)
def test_equals_enumeration(drawn, n_examples):
    settings(max_examples=n_examples, deadline=None)(given(drawn)(check_against_enumeration))()


def check_against_enumeration(chain):
    potentials = potentials_of(chain)
    with np.errstate(invalid="ignore"):
        exact = enumerate_chain(chain)
    if exact.best_score == -np.inf:
        for function in (forward_backward, log_z, viterbi):
            with pytest.raises(NoPathError, match="sequence 0 has no labelling with a finite"):
                function(potentials)
        return
    for labels, log_prob in list(exact.log_probs.items())[:: max(1, len(exact.log_probs) // 5)]:
        result = forward_backward(potentials, pairs="each", labels=labels)
        np.testing.assert_allclose(result.log_likelihoods[0], log_prob, rtol=1e-10, atol=1e-10)
        forward_only = log_likelihood(potentials, labels)
        np.testing.assert_allclose(forward_only, result.log_likelihoods, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.log_z[0], exact.log_z, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(log_z(potentials), result.log_z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.marginals, exact.marginals, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(result.pairs, exact.pairs, rtol=1e-10, atol=1e-300)
    every_pair = PatternArcs(np.arange(chain.arcs.size + 1), np.arange(chain.arcs.size, dtype="i4"))
    patterns = forward_backward(potentials, pairs=None, patterns=every_pair).pattern_marginals
    np.testing.assert_array_equal(patterns, result.pairs.reshape(patterns.shape))
    for summed in (result.arc_sums, forward_backward(potentials, pairs="sum").arc_sums):
        np.testing.assert_allclose(summed, exact.pairs.sum(axis=0), rtol=1e-10, atol=1e-300)
    best = viterbi(potentials)
    assert chain.score(best) == pytest.approx(exact.best_score, rel=1e-12)


def test_a_chain_worked_by_hand():
    # Two positions, two labels: exp(score) is 1 * 2 * 1 = 2 for (0, 0), 1 for (0, 1),
    # 3 * 1 = 3 for (1, 0), 3 for (1, 1): Z = 9.
    nodes = np.log([[1.0, 3.0], [1.0, 1.0]])
    arcs = np.log([[2.0, 1.0], [1.0, 1.0]])
    potentials = scores_of(nodes, arcs, [0, 2])
    result = forward_backward(potentials, labels=[0, 0])
    assert result.log_z[0] == pytest.approx(np.log(9))
    np.testing.assert_allclose(result.marginals, [[3 / 9, 6 / 9], [5 / 9, 4 / 9]])
    np.testing.assert_allclose(result.arc_sums, [[2 / 9, 1 / 9], [3 / 9, 3 / 9]])
    assert result.log_likelihoods[0] == pytest.approx(np.log(2 / 9))
    assert viterbi(potentials).tolist() == [1, 0]


def test_marginals_and_arc_sums_are_the_gradient_of_log_z():
    rng = np.random.default_rng(0)
    nodes, arcs = rng.normal(size=(9, 3)), rng.normal(size=(3, 3))
    potentials = scores_of(nodes, arcs, [0, 5, 9])
    result = forward_backward(potentials)
    for array, found in ((nodes, result.marginals), (arcs, result.arc_sums)):
        expected = central_differences(lambda: log_z(potentials).sum(), array, 1e-6)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


@settings(max_examples=100, deadline=None)
@given(chains(moderate, moderate, edges=True), st.data())
def test_weighted_likelihood_equals_enumeration_and_its_gradient_is_right(chain, data):
    n_positions, n_labels = chain.nodes.shape
    labels = data.draw(
        st.lists(st.integers(0, n_labels - 1), min_size=n_positions, max_size=n_positions)
    )
    weights = data.draw(st.lists(st.floats(0, 4), min_size=n_positions, max_size=n_positions))

    def weighted(nodes=chain.nodes, edges=chain.edges, pairs=None):
        potentials = scores_of(nodes, chain.arcs, [0, n_positions], edges)
        return weighted_forward_backward(potentials, labels, weights, pairs=pairs)

    result = weighted(pairs="each")
    expected = weighted_log_likelihood(chain, labels, weights)
    assert result.log_likelihoods[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(result.marginals.sum(axis=1), weights, rtol=1e-9, atol=1e-9)
    step = 1e-5
    for t in range(n_positions):
        direction = np.zeros_like(chain.nodes)
        direction[t, labels[t] - 1] = step
        ends = [weighted(nodes=chain.nodes + s * direction).log_likelihoods[0] for s in (1, -1)]
        observed = weights[t] if n_labels == 1 else 0.0
        gradient = observed - result.marginals[t, labels[t] - 1]
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(gradient, abs=1e-6)
    for t in range(1, n_positions):
        direction = np.zeros_like(chain.edges)
        direction[t, labels[t - 1], labels[t]] = step
        ends = [weighted(edges=chain.edges + s * direction).log_likelihoods[0] for s in (1, -1)]
        gradient = weights[t] - result.pairs[t, labels[t - 1], labels[t]]
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(gradient, abs=1e-6)


def test_equal_weights_give_the_plain_posteriors():
    rng = np.random.default_rng(1)
    potentials = scores_of(rng.normal(size=(50, 4)), rng.normal(size=(4, 4)), [0, 20, 50])
    labels = rng.integers(0, 4, 50)
    plain = forward_backward(potentials, labels=labels)
    weighted = weighted_forward_backward(potentials, labels, np.full(50, 2.0))
    np.testing.assert_allclose(weighted.log_likelihoods, 2 * plain.log_likelihoods)
    np.testing.assert_allclose(weighted.marginals, 2 * plain.marginals, rtol=1e-10)
    np.testing.assert_allclose(weighted.arc_sums, 2 * plain.arc_sums, rtol=1e-10)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 8, 13, 16, 20, 26, 31, 32, 33, 67, 300])
def test_every_width_agrees_with_log_space(n_labels):
    rng = np.random.default_rng(n_labels)
    nodes = 3 * rng.normal(size=(12, n_labels))
    arcs = 3 * rng.normal(size=(n_labels, n_labels))
    without, labels = scores_of(nodes, arcs, [0, 1, 12]), rng.integers(0, n_labels, 12)
    scaled = forward_backward(without, labels=labels)
    # Edges, even if all are zero, go through the log-space kernel.
    edges = scores_of(nodes, arcs, [0, 1, 12], np.zeros((12, n_labels, n_labels)))
    log_space = forward_backward(edges, labels=labels)
    np.testing.assert_allclose(scaled.log_z, log_space.log_z, rtol=1e-12)
    np.testing.assert_allclose(scaled.log_likelihoods, log_space.log_likelihoods, atol=1e-12)
    np.testing.assert_allclose(scaled.marginals, log_space.marginals, rtol=1e-10)
    np.testing.assert_allclose(scaled.arc_sums, log_space.arc_sums, rtol=1e-10)
    each = forward_backward(without, pairs="each").pairs
    np.testing.assert_allclose(each.sum(axis=0), scaled.arc_sums, rtol=1e-12)
    np.testing.assert_array_equal(viterbi(without), viterbi(edges))


@pytest.mark.parametrize("scale", EXTREMES[1:])
def test_a_million_positions(scale):
    # Without arcs every position is independent: the answers are known whatever the length.
    n_positions = 1_000_000
    nodes = np.zeros((n_positions, 2))
    nodes[::2, 1] = scale
    potentials = scores_of(nodes, np.full((2, 2), scale), [0, n_positions])
    result = forward_backward(potentials)
    per_pair = np.logaddexp(0, scale) + np.log(2)
    expected = n_positions // 2 * per_pair + (n_positions - 1) * scale
    assert result.log_z[0] == pytest.approx(expected, rel=1e-12)
    p = np.exp(scale - np.logaddexp(0, scale))
    np.testing.assert_allclose(result.marginals[::2, 1], p, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(result.marginals[1::2], 0.5, rtol=1e-10)
    labels = np.zeros(n_positions, dtype=np.int32)
    labels[::2] = scale > 0
    expected = n_positions // 2 * (np.log(max(p, 1 - p)) - np.log(2))
    assert log_likelihood(potentials, labels)[0] == pytest.approx(expected)
    np.testing.assert_array_equal(viterbi(potentials), labels)


def test_paths_that_drift_apart_and_come_back():
    # Two labels that never meet: for 5,000 positions label 0 gains, then label 1 catches up. Scaled
    # arithmetic alone would have lost label 1 on the way.
    nodes = np.zeros((10_001, 2))
    nodes[:5_000, 0] = 1.0
    nodes[5_000:10_000, 1] = 1.0
    arcs = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    result = forward_backward(scores_of(nodes, arcs, [0, len(nodes)]))
    np.testing.assert_allclose(result.marginals, 0.5, rtol=1e-9)
    assert result.log_z[0] == pytest.approx(5_000 + np.log(2), rel=1e-12)


def random_batch(n_sequences=40, n_labels=7, seed=2):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 400, n_sequences)
    offsets = np.concatenate([[0], lengths.cumsum()])
    nodes = rng.normal(size=(offsets[-1], n_labels)) * 2
    # Some sequences need log space.
    nodes[offsets[5] : offsets[6]] *= 500
    return scores_of(nodes, rng.normal(size=(n_labels, n_labels)), offsets)


def test_bit_identical_for_any_number_of_threads():
    potentials = random_batch()
    one, two, seven = (forward_backward(potentials, n_threads=n) for n in (1, 2, 7))
    for other in (two, seven):
        np.testing.assert_array_equal(one.log_z, other.log_z)
        np.testing.assert_array_equal(one.marginals, other.marginals)
        np.testing.assert_array_equal(one.arc_sums, other.arc_sums)
    np.testing.assert_array_equal(
        viterbi(potentials, n_threads=1), viterbi(potentials, n_threads=7)
    )


def test_bit_identical_alone_or_in_a_batch():
    potentials = random_batch()
    batch = forward_backward(potentials)
    path = viterbi(potentials)
    for s, (begin, end) in enumerate(itertools.pairwise(potentials.offsets)):
        part = potentials.part(slice(s, s + 1))
        alone = forward_backward(part)
        assert alone.log_z[0] == batch.log_z[s]
        np.testing.assert_array_equal(alone.marginals, batch.marginals[begin:end])
        np.testing.assert_array_equal(viterbi(part), path[begin:end])


def test_a_part_holds_its_own_sequences():
    rng = np.random.default_rng(6)
    arcs, offsets = np.zeros((2, 2)), np.array([0, 3, 3, 7])
    potentials = scores_of(rng.normal(size=(7, 2)), arcs, offsets, rng.normal(size=(7, 2, 2)))
    assert (potentials.n_positions, potentials.n_sequences) == (7, 3)
    last = potentials.part(slice(1, None))
    assert last.offsets.tolist() == [0, 0, 4]
    np.testing.assert_array_equal(last.nodes, potentials.nodes[3:])
    np.testing.assert_array_equal(last.edges, potentials.edges[3:])
    assert last.arcs is arcs
    assert potentials.part(slice(1, 1)).n_positions == 0


def test_sequence_weights_count_in_arc_sums():
    potentials = random_batch(n_sequences=8)
    weights = np.arange(8.0)
    result = forward_backward(potentials, weights=weights)
    expected = sum(
        weight * forward_backward(potentials.part(slice(s, s + 1))).arc_sums
        for s, weight in enumerate(weights)
    )
    np.testing.assert_allclose(result.arc_sums, expected, rtol=1e-10)


def test_shifted_scores_change_log_z_alone():
    potentials = random_batch(seed=3)
    plain = forward_backward(potentials)
    nodes, arcs, offsets = potentials.nodes, potentials.arcs, potentials.offsets
    shifted = forward_backward(scores_of(nodes + 3.0, arcs - 2.0, offsets))
    lengths = np.diff(offsets)
    np.testing.assert_allclose(shifted.log_z, plain.log_z + 3 * lengths - 2 * (lengths - 1))
    np.testing.assert_allclose(shifted.marginals, plain.marginals, rtol=1e-9, atol=1e-300)


def test_a_reversed_sequence_has_reversed_marginals():
    rng = np.random.default_rng(4)
    nodes, arcs = rng.normal(size=(30, 5)), rng.normal(size=(5, 5))
    there = forward_backward(scores_of(nodes, arcs, [0, 30]))
    back = forward_backward(scores_of(nodes[::-1], arcs.T, [0, 30]))
    np.testing.assert_allclose(back.marginals[::-1], there.marginals, rtol=1e-10)
    np.testing.assert_allclose(back.arc_sums.T, there.arc_sums, rtol=1e-10)


def test_renamed_labels_have_renamed_marginals():
    rng = np.random.default_rng(5)
    nodes, arcs, order = rng.normal(size=(20, 6)), rng.normal(size=(6, 6)), rng.permutation(6)
    plain = forward_backward(scores_of(nodes, arcs, [0, 20]))
    renamed = forward_backward(scores_of(nodes[:, order], arcs[np.ix_(order, order)], [0, 20]))
    np.testing.assert_allclose(renamed.marginals, plain.marginals[:, order], rtol=1e-10)


def test_the_arrays_handed_in_stay_as_they_are():
    potentials = random_batch(n_sequences=6)
    given = potentials.nodes, potentials.arcs, potentials.offsets
    kept = [array.copy() for array in given]
    forward_backward(potentials)
    viterbi(potentials)
    for now, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("function", [forward_backward, viterbi])
def test_nan_and_inf_are_errors_that_name_the_place(function, value):
    potentials = random_batch(n_sequences=6)
    potentials.nodes[potentials.offsets[3] + 1, 2] = value
    with pytest.raises(ValueError, match="NaN or \\+inf at position 1 of sequence 3"):
        function(potentials)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("function", [forward_backward, viterbi])
def test_nan_and_inf_arcs_are_errors(function, value):
    arcs = np.zeros((2, 2))
    arcs[1, 0] = value
    with pytest.raises(ValueError, match="an arc score is NaN or \\+inf"):
        function(scores_of(np.zeros((3, 2)), arcs, [0, 3]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arcs": np.zeros((3, 2))}, "arcs must be a square"),
        ({"offsets": [0, 2]}, "offsets must run from 0 to the number of positions"),
        ({"offsets": [0, 3, 1, 4]}, "offsets must not fall"),
        ({"edges": np.zeros((4, 2, 3))}, "edges and pairs must have shape"),
        ({"nodes": np.zeros((4, 0)), "arcs": np.zeros((0, 0))}, "at least one column"),
    ],
)
def test_potentials_of_wrong_shapes_are_errors(change, message):
    good = {"nodes": np.zeros((4, 2)), "arcs": np.zeros((2, 2)), "offsets": [0, 4]}
    with pytest.raises(ValueError, match=message):
        forward_backward(scores_of(**(good | change)))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"labels": [0, 1]}, "labels must have an entry for each position"),
        ({"labels": [[0, 1, 1, 0]]}, r"labels must have an entry for each .* shape \(1, 4\)"),
        ({"labels": [0, 1, 2, 0]}, "from 0 to n_labels - 1 = 1; got 2 at position 2"),
        ({"pairs": "all"}, "pairs is 'all'; expected 'sum', 'each' or None"),
        ({"out": np.zeros((3, 2))}, "marginals must have the shape of nodes"),
        ({"weights": np.zeros(2)}, "weights must have an entry for each sequence"),
        ({"weights": [np.nan]}, "weight 0 is nan; weights must be finite numbers"),
    ],
)
def test_wrong_wishes_are_errors(wanted, message):
    with pytest.raises(ValueError, match=message):
        forward_backward(scores_of(np.zeros((4, 2)), np.zeros((2, 2)), [0, 4]), **wanted)


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
    [0, 99, 1, 0],
    [0, -1, 1, 0],
]


@pytest.mark.parametrize("labels", NO_CODES, ids=str)
@pytest.mark.parametrize("order", [1, 2])
def test_what_is_no_label_code_is_not_taken_for_one(labels, order):
    potentials = scores_of(np.zeros((4, 2)), np.zeros((2, 2)), [0, 4])
    if order == 2:
        potentials = replace(potentials, arcs=np.zeros(6), trellis=OVER_PAIRS)
    place = 1 if labels[0] == 0 else 0
    message = re.escape(
        "labels must be integers from 0 to n_labels - 1 = 1; "
        f"got {np.asarray(labels).tolist()[place]!r} at position {place}"
    )
    for function in (
        partial(log_likelihood, potentials),
        lambda labels: forward_backward(potentials, labels=labels),
        lambda labels: weighted_forward_backward(potentials, labels, np.ones(4)),
    ):
        with pytest.raises(ValueError, match=message):
            function(labels)


@pytest.mark.parametrize("kind", [bool, np.uint8, np.uint64, np.int64, np.float32, object])
def test_label_codes_may_be_whole_numbers_of_any_type(kind):
    rng = np.random.default_rng(0)
    potentials = scores_of(rng.normal(size=(4, 2)), rng.normal(size=(2, 2)), [0, 4])
    labels = np.array([0, 1, 1, 0])
    assert log_likelihood(potentials, labels.astype(kind)) == log_likelihood(potentials, labels)


def test_offsets_and_weights_are_not_rounded():
    with pytest.raises(ValueError, match=r"offsets are \[0, 1.7, 4\]; expected whole numbers"):
        log_z(scores_of(np.zeros((4, 2)), np.zeros((2, 2)), [0, 1.7, 4]))
    potentials = scores_of(np.zeros((4, 2)), np.zeros((2, 2)), [0, 4])
    with pytest.raises(ValueError, match="weight 2 is inf; weights must be finite numbers"):
        weighted_forward_backward(potentials, np.zeros(4), [1, 1, np.inf, 1])


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("offsets", "arcs", "n_columns", "message"),
    [
        ([0, 1], [6], 1, "an arc of a pattern is out of range"),
        ([0, 1], [-1], 1, "an arc of a pattern is out of range"),
        ([0, 2], [0], 1, "offsets must run from 0 to the number"),
        ([0, 1], [0], 2, "marginals of patterns must have a row for each position and a column"),
    ],
)
def test_the_kernel_checks_patterns(order, offsets, arcs, n_columns, message):
    potentials = scores_of(np.zeros((4, 2)), np.zeros((2, 2)), [0, 4])
    if order == 2:
        potentials = replace(potentials, arcs=np.zeros(6), trellis=OVER_PAIRS)
    patterns = PatternArcs(np.array(offsets), np.array(arcs, np.int32))
    out = Outputs(pattern_marginals=np.empty((4, n_columns)), patterns=patterns)
    with pytest.raises(ValueError, match=message):
        potentials.trellis.fill_posteriors(potentials, None, None, out, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("kernel", ["fill_posteriors", "fill_viterbi"])
def test_ctrl_c_ends_a_long_call_before_its_work_is_done(kernel, n_threads):
    # Two sequences that would take seconds; the signal comes while they run.
    nodes, arcs = np.zeros((60_000, 300)), np.zeros((300, 300))
    offsets = np.array([0, 30_000, 60_000])
    codes, log_z = np.full(60_000, -1, dtype=np.int32), np.full(2, np.nan)
    if kernel == "fill_viterbi":
        arguments = nodes, arcs, None, offsets, codes, n_threads
    else:
        outputs = log_z, None, np.empty_like(nodes), None, None, None, None
        arguments = nodes, arcs, None, offsets, None, *outputs, n_threads
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        getattr(_core, kernel)(*arguments)
    timer.join()
    assert np.isnan(log_z).any()
    assert (codes < 0).any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_after_threads_have_run():
    code = """
        import os
        import numpy as np
        from hedgerow.trellis import Chain, Scores, forward_backward
        offsets = np.arange(0, 4001, 10)
        potentials = Scores(np.zeros((4000, 8)), np.zeros((8, 8)), offsets, Chain(8))
        before = forward_backward(potentials, n_threads=4)
        child = os.fork()
        if child == 0:
            again = forward_backward(potentials, n_threads=4)
            os._exit(0 if (again.log_z == before.log_z).all() else 1)
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=60, check=False)
    assert done.returncode == 0
