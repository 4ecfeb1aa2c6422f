"""Plots of fitted models, with matplotlib: ``pip install "hedgerow[plots]"``.

Each draws on the axes it is given, or on new ones, and returns them.
"""

from hedgerow.plots.curves import learning_curve
from hedgerow.plots.sequence import marginals
from hedgerow.plots.trees import tree
from hedgerow.plots.weights import importances, transitions

__all__ = ["importances", "learning_curve", "marginals", "transitions", "tree"]
