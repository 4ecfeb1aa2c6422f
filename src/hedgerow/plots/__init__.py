"""Plots of a model and of its predictions for a sequence, with matplotlib.

Every function draws on the axes ``ax``, or on a new figure of suitable size, and returns the axes.
matplotlib is imported only when a plot is drawn: ``pip install "hedgerow[plots]"``.
"""

from hedgerow.plots.curves import learning_curve
from hedgerow.plots.sequence import marginals
from hedgerow.plots.trees import tree
from hedgerow.plots.weights import importances, transitions

__all__ = ["importances", "learning_curve", "marginals", "transitions", "tree"]
