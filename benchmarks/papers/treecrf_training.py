"""Shared by the experiments: the boosting of the paper, its grids, and results by round."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from labelwise_training import DECODERS
from treecrf_tasks import Texts

if TYPE_CHECKING:
    from hedgerow import TreeCRF

# First-order boosting on all examples. One thread, since models are trained in parallel.
FIRST_ORDER: dict[str, Any] = {"newton": False, "trim": 0, "n_jobs": 1}
# Trees on the input and the previous label, without weights of label pairs.
PAIR_TREES: dict[str, Any] = {"transitions": "trees", "label_patterns": []}
LAMBDAS = (0, 5, 10, 20, 40, 80)
LEAVES = (30, 50, 75, 100)
MAX_LEAVES = 100

MAX_ROUNDS = 200
QUICK_ROUNDS = 4

# Correct labels by decoder.
Right = dict[str, int]


def count_right(crf: Any, X: list[Any], texts: Texts) -> Right:
    """Number of correct labels, by decoder."""
    return {decode: int(texts.right(crf.predict(X, decode=decode)).sum()) for decode in DECODERS}


def follow_rounds(
    X: list[Any],
    y: list[Any],
    X_held: list[Any],
    held: Texts,
    looks: tuple[int, ...],
    **parameters: Any,
) -> list[Right]:
    """Correct labels after each number of rounds; warm starts give the same as one long run."""
    from hedgerow import TreeCRF

    crf: TreeCRF | None = None
    found = []
    for before, after in pairwise((0, *looks)):
        crf = TreeCRF(n_rounds=after - before, **parameters).fit(X, y, init=crf)
        found.append(count_right(crf, X_held, held))
    return found
