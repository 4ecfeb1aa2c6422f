"""Trellises: inference with scores of up to 1e5, against an enumeration of all labellings."""

import numpy as np
from hypothesis import strategies as st

from abuse.kind import Case, Kind
from reference.batches import SCORES, batch_cases, make_batch
from reference.exact_trellis import check_batch

__all__ = ["KINDS"]


@st.composite
def batch_of_any_scores(draw: st.DrawFn) -> Case:
    """Short sequences; for half of them all pairs of labels are patterns, as at order 1."""
    case = draw(batch_cases(draw(st.sampled_from(sorted(SCORES))), most_labels=4))
    if draw(st.booleans()):
        labels = range(case["n_labels"])
        case["patterns"] = [[j, k] for j in labels for k in labels]
    return case


def check(case: Case) -> None:
    """All functions of `hedgerow.trellis`, for one batch."""
    check_batch(make_batch(case), np.random.default_rng(case["seed"]), 1 + case["seed"] % 9)


KINDS = [Kind("differential-trellis", batch_of_any_scores(), check, in_suite=3)]
