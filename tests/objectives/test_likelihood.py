from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from hedgerow.labels.automaton import Automaton
from hedgerow.objectives import Likelihood, log_likelihoods
from hedgerow.trellis import AutomatonChain, NoPathError
from reference.automata import PatternChain, enumerate_patterns, weighted_log_likelihood
from reference.problems import (
    FORMS,
    KNOWN,
    OFFSETS,
    PAIRS,
    PARTIAL,
    TARGETS,
    central_differences,
    make_problem,
)
from reference.scores import scores_of, slopes_of, targets_of

forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def log_prob(chain, codes):
    """Log probability of the known labels: that of all labellings that agree with them."""
    agreeing = enumerate_patterns(replace(chain, known=tuple(codes.tolist())))
    return -np.inf if agreeing is None else agreeing.log_z - enumerate_patterns(chain).log_z


def loss_of(potentials, targets):
    return slopes_of(Likelihood(), potentials, targets, n_threads=2).loss


@forms
def test_likelihood_equals_enumeration(form):
    for name, case in TARGETS.items():
        potentials, targets, chains = make_problem(form, case)
        expected = loss_by_enumeration(chains, *case)
        assert loss_of(potentials, targets) == pytest.approx(expected, rel=1e-10), name


def loss_by_enumeration(chains, codes, weighting):
    total = 0.0
    for s, (chain, (begin, end)) in enumerate(zip(chains, pairwise(OFFSETS), strict=True)):
        part = slice(begin, end)
        if "position_weights" in weighting:
            by_position = weighting["position_weights"][part]
            total -= weighted_log_likelihood(chain, codes[part], by_position)
        else:
            weight = weighting["sequence_weights"][s] if weighting else 1.0
            total -= weight * log_prob(chain, codes[part])
    return total


@forms
@pytest.mark.parametrize("case", TARGETS.values(), ids=TARGETS)
def test_slopes_are_those_of_the_loss(case, form):
    potentials, targets, _ = make_problem(form, case)
    slopes = slopes_of(Likelihood(), potentials, targets, n_threads=1)
    for name in ("nodes", "arcs") if potentials.edges is None else ("nodes", "arcs", "edges"):
        expected = central_differences(
            lambda: loss_of(potentials, targets), getattr(potentials, name), 1e-5
        )
        np.testing.assert_allclose(getattr(slopes, name), expected, rtol=0, atol=1e-7)


@forms
@pytest.mark.parametrize("weights", [None, np.array([2.0, 0.7, 0.5])], ids=["plain", "weighted"])
def test_a_sequence_of_which_nothing_is_known_counts_for_nothing(form, weights):
    codes = np.where(np.arange(8) < 4, -1, KNOWN).astype(np.int32)
    potentials, targets, _ = make_problem(form, (codes, {"sequence_weights": weights}))
    whole = slopes_of(Likelihood(), potentials, targets, n_threads=1)
    rest = slopes_of(
        Likelihood(), potentials.part(slice(1, 3)), targets.part(slice(1, 3)), n_threads=1
    )
    assert whole.loss == pytest.approx(rest.loss, rel=1e-14)
    assert not whole.nodes[:4].any()
    assert whole.edges is None or not whole.edges[:4].any()
    np.testing.assert_allclose(whole.arcs, rest.arcs, rtol=0, atol=1e-14)
    # And if nothing is known at all, there is nothing to learn.
    nothing = replace(targets, codes=np.full(8, -1, dtype=np.int32))
    slopes = slopes_of(Likelihood(), potentials, nothing, n_threads=1)
    assert slopes.loss == 0.0
    assert not slopes.nodes.any()
    np.testing.assert_allclose(slopes.arcs, 0.0, atol=1e-14)


@forms
def test_slopes_are_written_where_they_are_wanted(form):
    for codes in (KNOWN, PARTIAL):
        potentials, targets, _ = make_problem(form, (codes, {}))
        out = np.empty((8, 3))
        found = slopes_of(Likelihood(), potentials, targets, n_threads=1, out=out).nodes
        assert found is out
        np.testing.assert_array_equal(
            found, slopes_of(Likelihood(), potentials, targets, n_threads=1).nodes
        )


@forms
def test_log_likelihoods_are_those_of_the_known_labels(form):
    for case in TARGETS.values():
        codes, _ = case
        potentials, targets, chains = make_problem(form, case)
        expected = [
            log_prob(c, codes[a:b]) for c, (a, b) in zip(chains, pairwise(OFFSETS), strict=True)
        ]
        found = log_likelihoods(potentials, targets, n_threads=2)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "patterns", [PAIRS, [*PAIRS, (0, 1, 0), (0, 2, 1)]], ids=["pairs", "longer"]
)
def test_labels_that_cannot_be_completed_have_no_likelihood(patterns):
    # 0 is never followed by itself; in the longer grammar not by 1 0 either.
    weights = np.where(np.isin(np.arange(len(patterns)), [0, 9]), -np.inf, 0.5)
    sequences = [
        *([0, 1], [0, 0], [0, -1], [-1, 0, 0, -1], [0, 0, -1], [0, -1, 0], [], [-1], [2, 0, 0]),
        *([0, 1, 0], [0, -1, -1, 0], [-1, -1], [0, 0]),
    ]
    offsets = np.cumsum([0, *map(len, sequences)])
    codes = np.array([code for codes in sequences for code in codes], dtype=np.int32)
    nodes = np.random.default_rng(2).normal(size=(len(codes), 3))
    automaton = None if patterns == PAIRS else Automaton.build(3, patterns)
    arcs = weights.reshape(3, 3) if automaton is None else automaton.arc_scores(weights)
    potentials = scores_of(nodes, arcs, offsets, None, automaton)
    found = log_likelihoods(potentials, targets_of(offsets, codes, 3, automaton), n_threads=1)
    expected = [
        log_prob(PatternChain(nodes[a:b], patterns, weights), codes[a:b])
        for a, b in pairwise(offsets)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert (found[[1, 3, 4, 8, 12]] == -np.inf).all()
    assert found[[6, 7, 11]].tolist() == [0.0, 0.0, 0.0]
    assert (found[9] == -np.inf) == (automaton is not None)
    assert np.isfinite(found[[0, 2, 5, 10]]).all()


def test_a_sequence_without_labellings_is_an_error_all_the_same():
    potentials, targets, _ = make_problem(FORMS["arcs"], (PARTIAL, {}))
    potentials.nodes[5] = -np.inf
    with pytest.raises(NoPathError, match="sequence 2 has no labelling with a finite score"):
        log_likelihoods(potentials, targets, n_threads=1)


def test_counts_of_labels_worked_by_hand():
    # The labels 0 1 1 ?, 0 1 and 2: the first sequence is not counted, for one label is missing.
    offsets, codes = np.array([0, 4, 6, 6, 7]), np.array([0, 1, 1, -1, 0, 1, 2], dtype=np.int32)
    targets = targets_of(offsets, codes, 3, sequence_weights=np.array([1.0, 0.5, 4.0, 2.0]))
    assert targets.pair_codes.tolist() == [-1, 1, 4, -1, -1, 1, -1]
    assert targets.full_codes.tolist() == [-1, -1, -1, -1, 0, 1, 2]
    assert targets.arc_counts.tolist() == [[0.0, 0.5, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert targets.partial.sequences.tolist() == [0]
    assert targets.partial.positions.tolist() == [0, 1, 2, 3]
    assert targets.partial.offsets.tolist() == [0, 4]
    assert targets.weights.tolist() == [1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 2.0]
    # Over the strings 0, 1, 2 and 01.
    automaton = Automaton.build(3, [(0, 1)])
    assert replace(targets, trellis=AutomatonChain(automaton)).arc_counts.tolist() == [
        0.5,
        0.0,
        2.0,
        0.5,
    ]
    known = replace(targets, codes=codes.clip(min=0), sequence_weights=None)
    assert known.partial is None
    assert known.full_codes is known.codes
    assert known.weights is None
    assert known.arc_counts.tolist() == [[0.0, 2.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
