"""The choice of the decoder by the difference in accuracy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.decoding import DECODERS, decode_scores
from hedgerow.labels import Constraints
from hedgerow.objectives import Targets
from hedgerow.training.decoder import (
    better_decoder,
    count_right,
    lead_of_marginals,
    proven_decoder,
)
from hedgerow.trellis import Chain, Scores
from reference.scores import scores_of, targets_of

# Two positions and three labels, whose labellings have the probabilities 0.4 (0, 0), 0.3 (1, 1) and
# 0.3 (1, 2). The best as a whole is (0, 0); position by position it is (1, 0), which cannot be.
with np.errstate(divide="ignore"):
    ARCS = np.log([[0.4, 0, 0], [0, 0.3, 0.3], [0, 0, 0]])
OFFSETS = np.array([0, 2])
SCORES = scores_of(np.zeros((2, 3)), ARCS, OFFSETS)


def targets(*codes):
    return targets_of(OFFSETS, np.array(codes, np.int32), 3)


@pytest.mark.parametrize(
    ("codes", "lead"), [((1, 0), 1), ((0, 0), -1), ((2, 2), 0), ((-1, 0), 0), ((1, -1), 1)]
)
def test_both_decoders_worked_by_hand(codes, lead):
    assert lead_of_marginals([SCORES], targets(*codes), n_threads=1).tolist() == [lead]
    right = {
        decode: count_right([SCORES], targets(*codes), decode, n_threads=1) for decode in DECODERS
    }
    assert right["marginal"] - right["viterbi"] == lead


def test_marginals_keep_to_constraints():
    allowed = np.isfinite(ARCS)
    constraints = Constraints(allowed, np.ones(3, np.bool_), np.ones(3, np.bool_))
    scores = Scores(np.zeros((2, 3)), ARCS, OFFSETS, Chain(3, constraints=constraints))
    # (1, 1) has the labels 0.6 and 0.3, (0, 0) 0.4 and 0.4
    assert lead_of_marginals([scores], targets(1, 1), n_threads=1).tolist() == [2]


@pytest.mark.parametrize("weighting", ["none", "sequences", "positions"])
def test_leads_of_sequences_one_by_one(weighting):
    random = np.random.default_rng(0)
    lengths = np.array([3, 0, 5, 1, 0, 8, 2])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n_positions = offsets[-1]
    scores = scores_of(random.normal(size=(n_positions, 3)), random.normal(size=(3, 3)), offsets)
    codes = random.integers(-1, 3, n_positions).astype(np.int32)
    by_sequence = random.random(len(lengths)) if weighting == "sequences" else None
    by_position = random.random(n_positions) if weighting == "positions" else None
    labelled = Targets(offsets, codes, Chain(3), by_sequence, by_position)
    weights = np.ones(n_positions) if labelled.weights is None else labelled.weights
    right = {
        decode: weights * (decode_scores(scores, decode, n_threads=1) == codes)
        for decode in DECODERS
    }
    ahead = right["marginal"] - right["viterbi"]
    expected = [ahead[offsets[s] : offsets[s + 1]].sum() for s in range(len(lengths))]
    assert np.any(expected)
    runs = [scores.part(slice(0, 3)), scores.part(slice(3, 7))]
    for parts in ([scores], runs):
        leads = lead_of_marginals(parts, labelled, n_threads=2)
        np.testing.assert_allclose(leads, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("leads", "expected"), [([2, -1], "marginal"), ([1, -2], "viterbi"), ([1, -1], "otherwise")]
)
def test_the_better_decoder(leads, expected):
    assert better_decoder(np.array(leads, float), "otherwise") == expected


@pytest.mark.parametrize(
    ("leads", "expected"),
    [
        ([0, 0, 0], "marginal"),  # they agree
        ([-1, -1, -1], "viterbi"),  # sure
        ([1, 1, 1], "marginal"),
        ([-3, -1, 0, 0], "marginal"),  # -4, with a standard error of 2.8
        ([-3, -2, -1, 0], "viterbi"),  # -6, with one of 2.6
    ],
)
def test_viterbi_has_to_prove_itself(leads, expected):
    assert proven_decoder(np.array(leads, float)) == expected


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=30))
def test_the_standard_error_of_a_sum(leads):
    n, total = len(leads), sum(leads)
    error = np.sqrt(n / (n - 1) * sum((lead - total / n) ** 2 for lead in leads))
    if abs(total + 1.645 * error) > 1e-9:
        expected = "viterbi" if total < -1.645 * error else "marginal"
        assert proven_decoder(np.array(leads, float)) == expected
