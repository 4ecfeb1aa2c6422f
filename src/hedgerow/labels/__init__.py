"""Labels: the classes, their codes, and which label may follow which."""

from hedgerow.labels.classes import Labels
from hedgerow.labels.column import LabelColumn
from hedgerow.labels.constraints import Constraints, pin_known, read_constraints
from hedgerow.labels.grammar import Grammar
from hedgerow.labels.patterns import Patterns, rare_shares
from hedgerow.labels.reading import check_missing_label, read_labels
from hedgerow.labels.truth import Truth, read_truth, warn_of_strange

__all__ = [
    "Constraints",
    "Grammar",
    "LabelColumn",
    "Labels",
    "Patterns",
    "Truth",
    "check_missing_label",
    "pin_known",
    "rare_shares",
    "read_constraints",
    "read_labels",
    "read_truth",
    "warn_of_strange",
]
