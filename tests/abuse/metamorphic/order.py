"""The order of sequences, and the other sequences in a batch."""

import numpy as np

from abuse.kind import Case, Kind
from abuse.metamorphic.answers import (
    Answers,
    answers,
    assert_same_answers,
    draw_uniforms,
    file_of,
)
from abuse.training import Training
from abuse.trainings import trainings

__all__ = ["KINDS"]


def check_order(case: Case) -> None:
    """Sequences in another order give the same model file, to the last byte.

    Groups merely count the sequences, so that draws do not depend on them.
    """
    training = Training.of(case)
    assert file_of(move(training).fit()) == file_of(training.fit())


def move(training: Training) -> Training:
    """The same training with its sequences in another order."""
    parts = training.parts()
    places = np.random.default_rng(training.case["data"]["seed"]).permutation(len(parts))
    return training.having([parts[place] for place in places])


def check_batches(case: Case) -> None:
    """A sequence gets the same predictions in any batch, bit for bit."""
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
    Kind("metamorphic-order", trainings(based=True), check_order, in_suite=3),
    Kind("metamorphic-batches", trainings(), check_batches, in_suite=3),
]
