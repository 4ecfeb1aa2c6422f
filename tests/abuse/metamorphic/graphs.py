"""Tree-shaped graphs: the index of a position in its sequence does not matter."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from abuse.kind import Case, Kind
from abuse.training import Training
from abuse.trainings import trainings

__all__ = ["KINDS"]

# Tolerance for marginals of the same positions in a different order, since sums are reordered.
TOLERANCE = 1e-8


@st.composite
def graphs(draw: st.DrawFn) -> Case:
    """Training runs with parents, and possibly with features of ancestors."""
    case = draw(trainings())
    case["data"]["graph"] = True
    if case["data"]["form"] == "facts":  # which do not tell where a position stands
        case["data"]["facts"] |= {"window": 0, "links": False}
    case["parameters"]["window"] = 0
    case["parameters"]["ancestors"] = draw(st.integers(0, 3))
    if case["estimator"] == "LinearCRF":
        del case["parameters"]["window"]
    if case["constrained"] == "scheme":  # which labels keep to from position to position
        case["constrained"] = ""
    return case


def check_graphs(case: Case) -> None:
    """Positions in another order, and trees as separate sequences, get the same predictions."""
    training = Training.of(case)
    crf = training.fit()
    assert training.parents is not None
    xs = [part.x for part in training.parts()]
    rng = np.random.default_rng(case["data"]["seed"])
    for x, parents in zip(xs, training.parents, strict=True):
        expected = marginals(crf, x, parents)
        order = rng.permutation(len(parents))
        assert_close(marginals(crf, take(x, order), renumber(parents, order)), expected[order])
        for tree in split(parents):
            found = marginals(crf, take(x, tree), renumber(parents, tree))
            assert_close(found, expected[tree])


def marginals(crf: Any, x: Any, parents: np.ndarray) -> np.ndarray:
    """Marginals of one sequence, which needs no column of groups."""
    alone = [x.assign(group=0)] if crf.group_column is not None else [x]
    found: np.ndarray = crf.predict_marginals(alone, parents=[parents])[0]
    return found


def renumber(parents: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Parents of some positions, renumbered among these."""
    found = np.full(len(parents) + 1, -1)
    found[places] = np.arange(len(places))
    return found[parents[places]]


def split(parents: np.ndarray) -> list[np.ndarray]:
    """Positions of each tree."""
    roots = np.arange(len(parents))
    for _ in parents:
        roots = np.where(parents[roots] < 0, roots, parents[roots])
    return [np.flatnonzero(roots == root) for root in np.unique(roots)]


def take(x: Any, places: np.ndarray) -> Any:
    """Select positions of a sequence in any format."""
    if isinstance(x, list):
        return [x[place] for place in places]
    return x.iloc[places] if hasattr(x, "iloc") else x[places]


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=TOLERANCE)


KINDS = [Kind("metamorphic-graphs", graphs(), check_graphs, in_suite=6)]
