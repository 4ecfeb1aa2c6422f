"""Explanations in tree-shaped graphs: neighbours are the parent and the children."""

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from reference.parents import random_parents

RNG = np.random.default_rng(8)
LENGTHS = [6, 7, 5, 8, 1, 4] * 3
X = [RNG.normal(size=(n, 2)) for n in LENGTHS]
PARENTS = [random_parents(RNG, n) for n in LENGTHS]
# No c has a parent that is an a.
Y = [
    ["abc"[int(x[t, 0] > 0) + int(p[t] >= 0 and x[p[t], 0] > 0)] for t in range(len(x))]
    for x, p in zip(X, PARENTS, strict=True)
]
MODELS = {
    "linear": LinearCRF(max_iter=15, tol=0, n_jobs=1),
    "attributes of pairs": LinearCRF(max_iter=15, tol=0, n_jobs=1, transition_attributes=True),
    "order 2": LinearCRF(max_iter=15, tol=0, n_jobs=1, order=2),
    "trees": TreeCRF(n_rounds=5, n_jobs=1, min_child_weight=0.1),
    "constrained": TreeCRF(
        n_rounds=5, n_jobs=1, end_labels=["a", "b", "c"], forbidden=[("a", "c")]
    ),
}


def without_descendants(x, parents, position):
    """A tree without what is below a position, and where the position is then."""
    below, added = {position}, True
    while added:
        more = {t for t, p in enumerate(parents) if p in below} - below
        below, added = below | more, bool(more)
    kept = [t for t in range(len(x)) if t not in below or t == position]
    places = {t: place for place, t in enumerate(kept)}
    return x[kept], [places.get(parents[t], -1) for t in kept], places[position]


@pytest.mark.parametrize("name", MODELS)
def test_parts_add_up(name):
    crf = MODELS[name].fit(X, Y, parents=PARENTS)
    labels = crf.classes_.tolist()
    for s in range(4):
        probs = crf.predict_marginals(X[s : s + 1], parents=PARENTS[s : s + 1])[0]
        for t in range(LENGTHS[s]):
            found = crf.explain(X[s], t, "b", "c", parents=PARENTS[s])
            odds = np.log(probs[t, labels.index("b")] / probs[t, labels.index("c")])
            assert found.log_odds == pytest.approx(odds)
            assert sum(found.to_table()["contribution"]) == pytest.approx(odds)
            x, parents, place = without_descendants(X[s], PARENTS[s], t)
            cut = crf.predict_marginals([x], parents=[parents])[0][place]
            so_far = np.log(cut[labels.index("b")] / cut[labels.index("c")])
            table = found.transition_table
            below = table["contribution"][table["offset"] > 0].sum()
            assert found.after + below == pytest.approx(odds - so_far, abs=1e-7)
            assert (found.before == 0) == (PARENTS[s][t] < 0) or found.before == 0


def test_relatives_are_shown():
    crf = MODELS["linear"].fit(X, Y, parents=PARENTS)
    parents = [-1, 0, 0, 1, -1]
    x = X[0][:5]
    assert str(crf.explain(x, 0, parents=parents)).startswith("position 0 (a root, children 1, 2)")
    text = str(crf.explain(x, 1, "a", "b", parents=parents))
    assert text.startswith("position 1 (parent 0, child 3): a")
    assert "transition [a] -> " in text
    assert " at 3" in text
    assert "uncertainty about labels above" in text
    assert "uncertainty about labels below" in text
    alone = str(crf.explain(x, 4, parents=parents))
    assert alone.startswith("position 4 (a root, no children)")
    assert "other labels" not in alone
    table = crf.explain(x, 0, parents=parents).transition_table
    assert table["end"].tolist() == [1, 2]
    assert crf.explain(x, 0, parents=parents)._repr_html_()


def test_what_lies_beyond_the_root_is_outside():
    crf = TreeCRF(n_rounds=8, n_jobs=1, ancestors=2, order=0).fit(X, Y, parents=PARENTS)
    roots = [crf.explain(x, int(np.argmin(p)), parents=p) for x, p in zip(X, PARENTS, strict=True)]
    lines = [line for root in roots for line in str(root).splitlines() if "parent]" in line]
    assert lines
    assert all(line.endswith("outside") for line in lines)
