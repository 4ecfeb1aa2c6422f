"""First-order chains: examples worked by hand, invariances, every width, a fork."""

import os

import numpy as np
import pytest

from abuse.children import fork, join
from hedgerow.trellis import forward_backward, viterbi
from reference.scores import scores_of


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_after_threads_have_run():
    potentials = scores_of(np.zeros((4000, 8)), np.zeros((8, 8)), np.arange(0, 4001, 10))
    before = forward_backward(potentials, n_threads=4).log_z

    def compare():
        np.testing.assert_array_equal(forward_backward(potentials, n_threads=4).log_z, before)

    join(fork(compare))
