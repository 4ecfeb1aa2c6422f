"""The decoder of a model: the better one on data set aside, or a rule on the training sequences."""

import numpy as np
import pytest

from hedgerow.decoding import DECODERS
from hedgerow.labels import Constraints
from hedgerow.objectives import ExpectedAccuracy, Likelihood, MaxMargin, OfMarginals
from hedgerow.training.decoder import (
    Decoded,
    choose_decoder,
    count_right,
    share_repeated,
    suit_training,
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
    both = Decoded.of([SCORES], targets(*codes), 1)
    assert both.lead == lead / np.sum(np.array(codes) >= 0)
    assert both.gain == pytest.approx((0.6 + 0.4 - (0.4 + 0.4)) / 2)
    right = {
        decode: count_right([SCORES], targets(*codes), decode, n_threads=1) for decode in DECODERS
    }
    assert right["marginal"] - right["viterbi"] == lead


def test_of_many_runs_some_are_decoded():
    codes = [(1, 0), (0, 0), (0, 0), (1, 0), (0, 0)]
    runs = [targets(*each) for each in codes]
    together = targets_of(np.arange(0, 12, 2), np.concatenate([run.codes for run in runs]), 3)
    both = Decoded.of([SCORES] * 5, together, 1, every=3)  # the first and the fourth
    assert both == Decoded.of(
        [SCORES] * 2, targets_of(np.arange(0, 6, 2), np.array([1, 0, 1, 0], np.int32), 3), 1
    )


def test_marginals_keep_to_constraints():
    allowed = np.isfinite(ARCS)
    constraints = Constraints(allowed, np.ones(3, np.bool_), np.ones(3, np.bool_))
    scores = Scores(np.zeros((2, 3)), ARCS, OFFSETS, Chain(3, constraints=constraints))
    both = Decoded.of([scores], targets(1, 1), 1)
    assert both.lead == 1  # (1, 1) has the labels 0.6 and 0.3, (0, 0) 0.4 and 0.4
    assert both.gain == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("both", "codes", "expected"),
    [
        (Decoded(0, 0.0), [0, 1], "viterbi"),  # they agree
        (Decoded(0, 0.01), [0, 1], "marginal"),  # more is expected of marginals
        (Decoded(-1, 0.01), [0, 1], "viterbi"),  # but labels say otherwise
        (Decoded(0, 0.0), [0, 0], "marginal"),  # labels persist
        (Decoded(-1, 0.0), [0, 0], "viterbi"),
        (Decoded(0, 0.0), [0, -1], "viterbi"),
    ],
)
def test_the_rule_on_training_sequences(both, codes, expected):
    assert suit_training(both, targets(*codes)) == expected


def test_how_often_labels_are_repeated():
    codes = np.array([0, 0, 0, 1, -1, 1, 1, 1], np.int32)
    offsets = np.array([0, 2, 6, 7, 8])
    # Pairs within sequences are 00, 01 and two with a label that is not known.
    assert share_repeated(targets_of(offsets, codes, 2)) == 0.5
    assert share_repeated(targets_of(np.array([0, 1]), codes[:1], 2)) == 0.0


class Learnt:
    """An update, as far as its scores are concerned."""

    n_threads = 1

    def score_kept(self, sequences):
        return [sequences]

    def score_training(self):
        return [SCORES]


class Aside:
    """An eval set."""

    sequences = SCORES

    def __init__(self, *codes):
        self.targets = targets(*codes)


LABELWISE = OfMarginals(ExpectedAccuracy())


@pytest.mark.parametrize("asked", DECODERS)
def test_a_decoder_that_is_asked_for(asked):
    assert choose_decoder(asked, LABELWISE, None, [], None) == asked


@pytest.mark.parametrize(
    ("objective", "eval_sets", "expected"),
    [
        (Likelihood(), [Aside(0, 0), Aside(1, 0)], "marginal"),  # the last set decides
        (LABELWISE, [Aside(0, 0)], "viterbi"),
        (MaxMargin(), [Aside(1, 0)], "marginal"),
        (Likelihood(), [Aside(2, 2)], "viterbi"),  # as good as each other
        (LABELWISE, [Aside(2, 2)], "marginal"),
        (LABELWISE, [], "marginal"),
        (MaxMargin(), [], "viterbi"),
        (Likelihood(), [], "marginal"),
    ],
)
def test_a_choice(objective, eval_sets, expected):
    assert choose_decoder("auto", objective, Learnt(), eval_sets, targets(1, 2)) == expected
