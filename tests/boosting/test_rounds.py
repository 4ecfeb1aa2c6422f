"""Weights of the trees of each round, if rounds have directions."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.boosting.rounds import Part, Rounds, coefficients
from hedgerow.state import ModelFileError
from hedgerow.trees.forest import Forest
from reference.forests import make_stump

SHARES = st.floats(0, 2)


@given(st.lists(st.tuples(SHARES, SHARES), max_size=8), st.integers(0, 10**6))
def test_coefficients_are_those_of_all_directions_added_up(moves, seed):
    rng = np.random.default_rng(seed)
    trees = rng.normal(size=(len(moves), 5))  # what those of each round add to five scores
    scores, direction = np.zeros(5), np.zeros(5)
    for values, (step, carry) in zip(trees, moves, strict=True):
        direction = values + carry * direction
        scores = scores + step * direction
    found = coefficients([Part(None, step, carry) for step, carry in moves])
    np.testing.assert_allclose(np.array(found) @ trees, scores, rtol=1e-9, atol=1e-9)


def test_rounds_that_are_not_there_cannot_be_kept():
    columns = SimpleNamespace(
        n_asked=1, n_columns=1, categorical=np.array([False]), cut_offsets=np.array([0, 1])
    )
    rounds = Rounds.begin(Forest.join(1, []), np.zeros(0), 0, have_directions=True)
    for _ in range(3):
        rounds.add(Part(make_stump(cuts=1), 0.5, 0.25), rounds.weights)
    again = Rounds.unpack(rounds.pack(), 1, 0, columns, have_directions=True)
    assert [part.step for part in again.parts] == [1.0, 0.5, 0.5, 0.5]
    assert [part.carry for part in again.parts] == [0.0, 0.25, 0.25, 0.25]
    assert (again.n_rounds, again.n_kept) == (3, 1)
    state = rounds.pack()
    state.tensors["steps"] = state.tensors["carries"] = np.ones(2)
    with pytest.raises(ModelFileError, match="its rounds do not fit together"):
        Rounds.unpack(state, 1, 0, columns, have_directions=True)


def test_worked_by_hand():
    parts = [Part(None, 1.0, 0.0), Part(None, 2.0, 0.5), Part(None, 3.0, 0.25)]
    assert coefficients(parts) == [1.0 + 0.5 * (2.0 + 0.25 * 3.0), 2.0 + 0.25 * 3.0, 3.0]
    assert coefficients(parts[:2]) == [1.0 + 0.5 * 2.0, 2.0]
    assert coefficients([Part(None), Part(None)]) == [1.0, 1.0]
    assert coefficients([]) == []
