"""Why a position has the label it has, and not another."""

from hedgerow.explain.explanation import Explanation
from hedgerow.explain.odds import Contributions, Place

__all__ = ["Contributions", "Explanation", "Place"]
