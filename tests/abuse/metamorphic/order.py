"""The order of sequences, and what else is asked in the same batch."""

import numpy as np

from abuse.kind import Case, Kind
from abuse.metamorphic.alike import assert_alike, assert_same_trees, decided
from abuse.metamorphic.answers import Answers, answers, assert_same_answers, draw_uniforms
from abuse.training import Training, has_directions
from abuse.trainings import learn_from_all, trainings
from hedgerow import LinearCRF

__all__ = ["KINDS"]


def check_order(case: Case) -> None:
    """Sequences in another order give the same model but for rounding.

    Without label patterns, and in the first round, trees are the same to the last bit: a sum over
    sequences has no part in them but for those of histograms, which are exact. Steps that are
    searched, and conjugate directions, go by others.
    """
    training = Training.of(decided(learn_from_all(case)))
    moved = move(training)
    first, second = training.fit(), moved.fit()
    assert_alike(first, second)
    # Attributes are numbered as they come, and among equal splits the first is taken.
    are_attributes = case["data"]["form"] in ("items", "facts")
    if isinstance(first, LinearCRF) or are_attributes or has_directions(first):
        return
    if not first.label_patterns_:
        assert_same_trees(first, second)
    elif first.n_rounds_ and second.n_rounds_:
        cold = Training.of(training.case | {"warm": False})
        first, second = cold.fit(n_rounds=1), move(cold).fit(n_rounds=1)
        assert_same_trees(first, second)


def move(training: Training) -> Training:
    """The same training with its sequences in another order."""
    parts = training.parts()
    places = np.random.default_rng(training.case["data"]["seed"]).permutation(len(parts))
    return training.having([parts[place] for place in places])


def check_batches(case: Case) -> None:
    """A sequence gets the same answers in any batch, to the last bit."""
    training = Training.of(case)
    crf = training.fit()
    uniforms = draw_uniforms(training)
    expected = answers(crf, training, uniforms)
    rng = np.random.default_rng(case["data"]["seed"])
    parts = training.parts()
    places = rng.permutation(len(parts))
    found: Answers = {name: [] for name in expected}
    for some in np.split(places, np.sort(rng.integers(0, len(places) + 1, 2))):
        if len(some):
            batch = training.having([parts[place] for place in some])
            for name, given in answers(crf, batch, [uniforms[place] for place in some]).items():
                found[name] += given
    in_order = {name: [parts[place] for place in places] for name, parts in expected.items()}
    assert_same_answers(found, in_order)


KINDS = [
    Kind("metamorphic-order", trainings(), check_order, in_suite=3),
    Kind("metamorphic-batches", trainings(), check_batches, in_suite=3),
]
