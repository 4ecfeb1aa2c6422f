"""Explanations: why a position has its label and not another one."""

from hedgerow.explain.explanation import Explanation
from hedgerow.explain.odds import Contributions, Place

__all__ = ["Contributions", "Explanation", "Place"]
