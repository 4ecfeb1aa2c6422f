from itertools import pairwise

import numpy as np
import pytest

from hedgerow.objectives import Targets, likelihood
from hedgerow.trellis import Potentials
from reference.chains import Chain, enumerate_chain, weighted_log_likelihood

OFFSETS = np.array([0, 4, 5, 8])
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 3, 8).astype(np.int32)
WEIGHTS = {
    "none": {},
    "sequences": {"sequence_weights": np.array([2.0, 0.0, 0.5])},
    "positions": {"position_weights": RNG.uniform(0, 3, 8)},
}
cases = pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
with_edges = pytest.mark.parametrize("edges", [False, True], ids=["arcs", "edges"])


def make_potentials(edges):
    rng = np.random.default_rng(1)
    return Potentials(
        OFFSETS,
        rng.normal(size=(8, 3)),
        rng.normal(size=(3, 3)),
        rng.normal(size=(8, 3, 3)) if edges else None,
    )


def loss_of(potentials, targets):
    return likelihood(potentials, targets, n_threads=2).loss


@cases
@with_edges
def test_likelihood_equals_enumeration(weights, edges):
    potentials, targets = make_potentials(edges), Targets(OFFSETS, CODES, 3, **weights)
    total = 0.0
    for s, (begin, end) in enumerate(pairwise(OFFSETS)):
        part = slice(begin, end)
        chain = Chain(
            potentials.nodes[part], potentials.arcs, potentials.edges[part] if edges else None
        )
        if "position_weights" in weights:
            total -= weighted_log_likelihood(chain, CODES[part], weights["position_weights"][part])
        else:
            weight = weights["sequence_weights"][s] if weights else 1.0
            total -= weight * enumerate_chain(chain).log_probs[tuple(CODES[part])]
    assert loss_of(potentials, targets) == pytest.approx(total, rel=1e-10)


@cases
@with_edges
def test_slopes_are_those_of_the_loss(weights, edges):
    potentials, targets = make_potentials(edges), Targets(OFFSETS, CODES, 3, **weights)
    slopes = likelihood(potentials, targets, n_threads=1)
    step = 1e-5
    for name in ("nodes", "arcs", "edges") if edges else ("nodes", "arcs"):
        scores, found = getattr(potentials, name), getattr(slopes, name)
        for index in np.ndindex(scores.shape):
            kept, ends = scores[index], []
            for moved in (kept + step, kept - step):
                scores[index] = moved
                ends.append(loss_of(potentials, targets))
            scores[index] = kept
            assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(found[index], abs=1e-7)


@cases
@with_edges
def test_parts_add_up_to_the_whole(weights, edges):
    potentials, targets = make_potentials(edges), Targets(OFFSETS, CODES, 3, **weights)
    whole = likelihood(potentials, targets, n_threads=1)
    loss, arcs = 0.0, np.zeros((3, 3))
    for sequences in (slice(0, 1), slice(1, 3)):
        begin, end = OFFSETS[sequences.start], OFFSETS[sequences.stop]
        some = Potentials(
            OFFSETS[sequences.start : sequences.stop + 1] - begin,
            potentials.nodes[begin:end],
            potentials.arcs,
            potentials.edges[begin:end] if edges else None,
        )
        part = likelihood(some, targets.part(sequences), n_threads=1)
        np.testing.assert_allclose(part.nodes, whole.nodes[begin:end], atol=1e-14)
        loss += part.loss
        arcs += part.arcs
    assert loss == pytest.approx(whole.loss, rel=1e-12)
    np.testing.assert_allclose(arcs, whole.arcs, atol=1e-12)


def test_slopes_are_written_where_they_are_wanted():
    potentials, targets = make_potentials(False), Targets(OFFSETS, CODES, 3)
    out = np.empty((8, 3))
    assert likelihood(potentials, targets, n_threads=1, out=out).nodes is out
