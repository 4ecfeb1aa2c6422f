"""Alike: models that may differ by rounding, and by decisions that depend on rounding.

Boosting and line searches make decisions. If two splits have the same gain up to rounding, a
different order of a sum may choose the other one, and everything after that differs. So models are
compared round by round up to the first tree with a different split, which must have been a tie.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from abuse.kind import Case
from hedgerow import LinearCRF, TreeCRF
from hedgerow.shown import with_plain_tables

__all__ = ["assert_alike", "assert_same_trees", "decided"]

# Parameters with which rounding decides only ties: no leaf has exactly this weight, and no example
# this gradient (with trim=0, rounding decides whether an example whose label is certain counts);
# and nothing is sampled, since draws depend on the indices of sequences, positions, labels and
# columns.
DECIDED = {
    "min_child_weight": 0.0731058578,
    "trim": 0.000731058578,
    "subsample": 1.0,
    "stratified": False,
    "colsample_bytree": 1.0,
    "colsample_bynode": 1.0,
}
# Gradients are in single precision: their sums are accurate to about 2^-24, and a gain is a
# difference of squares of them. No sum here exceeds a few thousand.
PRECISION = 1e-5
# Number of iterations in which rounding errors do not exceed PRECISION: each may amplify them by
# the condition number, and the L-BFGS memory is in single precision.
N_ITERATIONS = 4
# Objectives of which a linear model has no saddle points.
CONVEX = ("likelihood", "softmax_margin", "max_margin")
SIDES = ("left", "right")


def decided(case: Case) -> Case:
    """The same training run, in which rounding decides only ties."""
    if case["estimator"] == "TreeCRF":
        return case | {"parameters": case["parameters"] | DECIDED}
    return case | {"warm": False}  # earlier iterations would amplify rounding errors


def assert_alike(
    first: LinearCRF | TreeCRF,
    second: LinearCRF | TreeCRF,
    rename: Callable[[Any], Any] = lambda label: label,
    same_cuts: bool = True,
) -> None:
    """The two models are equal up to rounding.

    ``rename`` maps a label to its name in the second model; ``same_cuts``: whether columns have the
    same cuts.
    """
    n_compared = min(len(crf.history_.get("loss", ())) for crf in (first, second))
    takes_first = first.objective in ("accuracy", "max_margin")
    if takes_first:  # of equally good labels or labellings, the first is chosen
        n_compared = 0 if first.objective == "max_margin" else min(n_compared, 1)
    if len(first.classes_) == 1:  # all slopes are zero up to rounding, which stages depend on
        n_compared = 0
    if isinstance(first, LinearCRF):
        n_compared = min(n_compared, N_ITERATIONS)
        if first.objective not in CONVEX:
            n_compared = min(n_compared, count_iterations(first.history_.get("loss", ())))
    else:
        n_compared = min(n_compared, first.n_rounds_, second.n_rounds_)  # less if stopped early
        n_compared = count_same_rounds(first, second, n_compared, rename, same_cuts)
        if takes_first and first.transition_step != "bound":
            n_compared = 0  # after the trees it takes several steps, the later ones from ties
    ours, theirs = (np.array(crf.history_.get("loss", [])[:n_compared]) for crf in (first, second))
    np.testing.assert_allclose(theirs, ours, rtol=PRECISION, atol=1e-9)


def count_iterations(losses: Sequence[float]) -> int:
    """Number of iterations up to the first one that hardly lowers the loss.

    If that is a saddle point, rounding decides when the next iterations leave it.
    """
    for number, (before, after) in enumerate(pairwise(losses), 1):
        if before - after <= PRECISION * abs(before):
            return number
    return len(losses)


def count_same_rounds(
    first: TreeCRF, second: TreeCRF, n_rounds: int, rename: Callable[[Any], Any], same_cuts: bool
) -> int:
    """Number of rounds before the first one in which a tie was broken differently."""
    for number in range(1, n_rounds + 1):
        for label in first.classes_:
            ours = with_plain_tables(first).trees(round=number, label=label)
            theirs = with_plain_tables(second).trees(round=number, label=rename(label))
            if not is_same_tree(ours, theirs, same_cuts):
                return number - 1
    return n_rounds


def is_same_tree(
    ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], same_cuts: bool
) -> bool:
    """Whether two trees are equal up to rounding; if not, they must differ at a tie."""
    questions = ["feature", "offset"] + ["threshold", "categories"] * same_cuts
    tables, todo = (ours, theirs), [(0, 0)]  # nodes are numbered by gain: equal ones may be swapped
    while todo:
        nodes = todo.pop()
        pairs = list(zip(tables, nodes, strict=True))
        children = [[table[side][node] for side in SIDES] for table, node in pairs]
        if (children[0][0] < 0) != (children[1][0] < 0):
            return False  # the gain is nearly 0, or another leaf had the same gain
        if children[0][0] < 0:
            continue
        asked = [str([table[name][node] for name in questions]) for table, node in pairs]
        parts = [
            [table[name][child] for name in ("weight", "value") for child in both]
            for table, both in zip(tables, children, strict=True)
        ]
        if asked[0] != asked[1] or not np.allclose(*parts, rtol=PRECISION, atol=PRECISION):
            gains = [table["gain"][node] for table, node in pairs]
            scale = np.abs(ours["value"]).max() * ours["weight"].max() + max(gains)
            assert abs(gains[0] - gains[1]) <= PRECISION * max(1.0, scale), (
                f"no tie, but another split: {asked[0]} gains {gains[0]}, {asked[1]} {gains[1]}"
            )
            return False
        todo += zip(*children, strict=True)
    return True


def assert_same_trees(first: TreeCRF, second: TreeCRF, *but: str) -> None:
    """Bit for bit, except for some columns of the table of trees."""
    ours, theirs = (with_plain_tables(crf).trees() for crf in (first, second))
    for name in set(ours) - set(but):
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
