"""Forward-backward on a device, against the compiled core."""

import numpy as np
import pytest

from hedgerow.cuda import layout as layouts
from hedgerow.cuda.chain import DeviceChain
from hedgerow.cuda.layout import Layout
from hedgerow.trellis import (
    Chain,
    Scores,
    forward_backward,
    tangent,
    viterbi,
    weighted_forward_backward,
)


def draw(rng, lengths, n_labels, scale=2.0):
    """Scores, labels and weights of some sequences."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    nodes = scale * rng.normal(size=(offsets[-1], n_labels))
    arcs = rng.normal(size=(n_labels, n_labels))
    codes = rng.integers(n_labels, size=offsets[-1]).astype(np.int32)
    weights = rng.uniform(0.5, 2.0, size=len(lengths))
    return Scores(nodes, arcs, offsets, Chain(n_labels)), codes, weights


def put(device, layout, nodes):
    """Scores in the layout of the device."""
    by_row = np.zeros((layout.n_rows, nodes.shape[1]))
    by_row[layout.rows] = nodes
    return device.upload(by_row)


def check(device, scores, codes, weights, tolerance=1e-12):
    """Compare all results with those of the core."""
    layout = Layout.plan(scores.offsets, scores.n_labels, device.n_multiprocessors)
    chain = DeviceChain(device, layout, scores.n_labels, codes, weights)
    found = chain.measure(put(device, layout, scores.nodes), scores.arcs)
    expected = forward_backward(scores, labels=codes, weights=weights)
    mixing = scores.trellis.mixing(scores, expected.arc_sums, weights, 1)
    losses = -expected.log_likelihoods
    loss = float((losses if weights is None else losses * weights).sum())
    assert found.loss == pytest.approx(loss, rel=tolerance)
    np.testing.assert_allclose(found.arc_sums, expected.arc_sums, rtol=1e-10, atol=tolerance)
    marginals = device.download(chain.marginals)[layout.rows]
    np.testing.assert_allclose(marginals, expected.marginals, atol=tolerance)
    gammas = device.download(chain.gammas)[layout.rows]
    np.testing.assert_allclose(gammas, mixing.nodes, rtol=2e-4)
    np.testing.assert_allclose(
        found.arc_curvatures, mixing.arc_curvatures, rtol=1e-3, atol=1e-5 * len(codes)
    )
    return layout


@pytest.mark.parametrize("n_labels", [2, 3, 9, 33])
def test_sequences_of_any_length_are_those_of_the_core(device, n_labels):
    rng = np.random.default_rng(n_labels)
    lengths = np.append(rng.integers(1, 12, size=37), [0, 1, 2, 0])
    scores, codes, weights = draw(rng, lengths, n_labels)
    assert check(device, scores, codes, weights).starts is None
    check(device, scores, codes, None)


def test_long_sequences_are_cut_into_pieces(device, monkeypatch):
    monkeypatch.setattr(layouts, "LONGEST", 20)
    monkeypatch.setattr(layouts, "PIECES", (7, 7))
    rng = np.random.default_rng(0)
    scores, codes, weights = draw(rng, [5, 0, 500, 7, 1, 29], 3)
    layout = check(device, scores, codes, weights)
    assert layout.n_pieces == 1 + 72 + 1 + 1 + 5


@pytest.mark.parametrize("n_labels", [3, 9])
def test_extreme_scores_are_done_again_in_log_space(device, n_labels):
    rng = np.random.default_rng(1)
    scores, codes, weights = draw(rng, [6, 5, 4, 3], n_labels)
    scores.nodes[2] = 1e5 * rng.normal(size=n_labels)
    scores.nodes[12, 1:] = -1e5
    check(device, scores, codes, weights)


def test_scores_of_minus_infinity_forbid_a_label(device):
    rng = np.random.default_rng(2)
    scores, codes, weights = draw(rng, [6, 5, 40], 3)
    scores.nodes[rng.random(scores.nodes.shape) < 0.2] = -np.inf
    scores.nodes[np.arange(len(codes)), codes] = 0.0
    check(device, scores, codes, weights)


def test_arcs_may_be_extreme_too(device):
    rng = np.random.default_rng(3)
    scores, codes, weights = draw(rng, [6, 5, 40], 3)
    scores.arcs[1, 2] = -1e5
    check(device, scores, codes, weights, tolerance=1e-11)


@pytest.mark.parametrize("n_labels", [3, 33])
def test_labels_and_tangents_are_those_of_the_core(device, n_labels, monkeypatch):
    monkeypatch.setattr(layouts, "LONGEST", 20)
    rng = np.random.default_rng(4)
    scores, codes, _ = draw(rng, [5, 0, 40, 1, 9], n_labels)
    scores.nodes[0, 1:] = -1e5  # one sequence is done again by the CPU
    layout = Layout.plan(scores.offsets, n_labels, device.n_multiprocessors)
    chain = DeviceChain(device, layout, n_labels, codes)
    by_row = put(device, layout, scores.nodes)
    measured = chain.measure(by_row, scores.arcs)
    direction = rng.normal(size=scores.nodes.shape)
    marginals = forward_backward(scores).marginals
    expected = tangent(scores, marginals, direction)
    found, sums = chain.tangent(by_row, scores.arcs, direction)
    np.testing.assert_allclose(found, expected.marginals, atol=1e-12)
    np.testing.assert_allclose(sums, expected.arc_sums, atol=1e-11)
    assert measured.n_right == np.sum(marginals.argmax(axis=1) == codes)
    best = chain.viterbi(by_row, scores.arcs)
    np.testing.assert_array_equal(device.download(best)[layout.rows], viterbi(scores))
    decoding = DeviceChain(device, layout, n_labels, codes, decode="viterbi")
    n_right = decoding.measure(by_row, scores.arcs).n_right
    assert n_right == np.sum(viterbi(scores) == codes)


@pytest.mark.parametrize("n_labels", [3, 33])
def test_weights_of_positions_are_those_of_the_core(device, n_labels, monkeypatch):
    monkeypatch.setattr(layouts, "LONGEST", 20)
    rng = np.random.default_rng(5)
    scores, codes, _ = draw(rng, [5, 0, 40, 1, 9], n_labels)
    scores.nodes[0, 1:] = -1e5  # one sequence is done again by the CPU
    weights = rng.choice([0.0, 0.5, 2.0], size=len(codes))
    layout = Layout.plan(scores.offsets, n_labels, device.n_multiprocessors)
    chain = DeviceChain(device, layout, n_labels, codes, position_weights=weights)
    by_row = put(device, layout, scores.nodes)
    found = chain.measure(by_row, scores.arcs, by_position=True)
    expected = weighted_forward_backward(scores, codes, weights)
    assert found.loss == pytest.approx(-expected.log_likelihoods.sum(), rel=1e-12)
    np.testing.assert_allclose(found.arc_sums, expected.arc_sums, rtol=1e-10, atol=1e-12)
    observed = weights[:, None] * (codes[:, None] == np.arange(n_labels))
    slopes = device.download(chain.weighted.slopes)[layout.rows]
    np.testing.assert_allclose(slopes, expected.marginals - observed, atol=1e-12)
    assert chain.measure(by_row, scores.arcs).loss == pytest.approx(
        -forward_backward(scores, labels=codes).log_likelihoods.sum(), rel=1e-12
    )


@pytest.mark.parametrize(("n_positions", "longest"), [(1000, 64), (76_800, 100), (99_840, 65)])
def test_pieces_are_as_many_as_a_device_works_on_at_a_time(n_positions, longest):
    layout = Layout.plan(np.array([0, n_positions]), 3, 1)
    assert layout.length.max() == longest
    assert layout.length.sum() == n_positions
    assert layout.n_pieces == -(-n_positions // longest)
