"""Every function of the trellis, over both kinds of chains, equals the list of all labellings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtri

from hedgerow.labels import Patterns
from hedgerow.trellis import forward_backward, k_best, sample
from reference.automata import enumerate_patterns, free_chain
from reference.batches import SCORES, Batch, batch_cases, make_batch, of_one_magnitude
from reference.exact_trellis import Exact, check_batch, check_tangent, forms_of

KINDS = {**SCORES, "of_one_magnitude": (of_one_magnitude, of_one_magnitude)}


@st.composite
def batches(draw, kind):
    """Half of them have all pairs of labels as their patterns."""
    case = draw(batch_cases(most_labels=4))
    if draw(st.booleans()):
        case["patterns"] = list(Patterns.pairs(case["n_labels"]))
    return make_batch(case, KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), k=st.sampled_from([1, 2, 5, 7, 40]))
def test_every_function_equals_enumeration(kind, data, seed, k):
    check_batch(data.draw(batches(kind)), np.random.default_rng(seed), k)


@pytest.mark.parametrize("depth", [70.0, 200.0, 600.0], ids=["1e-30", "1e-87", "log space"])
@pytest.mark.parametrize("seed", range(5))
def test_directions_as_large_as_one_over_the_marginals(depth, seed):
    rng = np.random.default_rng(seed)
    nodes = rng.normal(size=(6, 3))
    nodes[rng.random((6, 3)) < 0.3] -= depth
    nodes[:, 0] = np.maximum(nodes[:, 0], -5)
    batch = Batch.of([free_chain(nodes, list(Patterns.pairs(3)), rng.normal(size=9))], 3)
    exact = [Exact(chain, batch.automaton) for chain in batch.chains]
    for potentials in forms_of(batch):
        marginals = forward_backward(potentials).marginals
        assert marginals.min() < np.exp(20 - depth)
        check_tangent(potentials, batch, exact, 1 / marginals, None)
        arcs = rng.normal(size=potentials.arcs.shape)
        check_tangent(potentials, batch, exact, rng.normal(size=(6, 3)) / marginals, arcs)


def test_the_best_labellings_are_in_the_order_of_an_enumeration():
    rng = np.random.default_rng(0)
    patterns = [(0, 1), (2, 0, 1), (1, 1, 1, 2), (2,)]
    chain = free_chain(rng.normal(size=(6, 3)), patterns, rng.normal(size=4))
    exact = enumerate_patterns(chain)
    codes, counts, log_probs = k_best(Batch.of([chain], 3).potentials, 1000)
    assert counts.tolist() == [3**6]
    assert list(map(tuple, codes[: 3**6].tolist())) == [labels for _, labels in exact.best]
    assert np.exp(log_probs).sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("spread", [1.0, 400.0], ids=["scaled", "log space"])
def test_samples_have_the_right_frequencies(spread):
    rng = np.random.default_rng(1)
    nodes = rng.normal(size=(4, 3))
    nodes[2, 1] += spread
    chain = free_chain(nodes, [(0, 1), (2, 0, 1), (1, 1), (0, 0, 0)], [1.0, 1.0, -spread, 0.5])
    probs = np.exp(list(enumerate_patterns(chain).log_probs.values()))
    n_samples = 20_000
    codes = sample(Batch.of([chain], 3).potentials, rng.random((n_samples, 4)))
    counts = np.bincount(codes @ [27, 9, 3, 1], minlength=81)
    # Those that are rare share a cell, if they are not too rare all together.
    often = n_samples * probs >= 5
    observed = np.append(counts[often], counts[~often].sum())
    expected = n_samples * np.append(probs[often], probs[~often].sum())
    observed, expected = observed[expected >= 1], expected[expected >= 1]
    assert len(expected) >= 8
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert statistic < chdtri(len(expected) - 1, 1e-4)
    assert counts[probs < 1e-15].sum() == 0
