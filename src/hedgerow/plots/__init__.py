"""Plots: pictures of a model and of what it makes of a sequence, drawn with matplotlib.

Every function draws on an axes, a new figure's of fitting size unless ``ax`` is given, and returns
it. matplotlib is needed when a plot is drawn, not before: ``pip install "hedgerow[plots]"``.
"""

from hedgerow.plots.curves import learning_curve
from hedgerow.plots.sequence import marginals
from hedgerow.plots.trees import tree
from hedgerow.plots.weights import importances, transitions

__all__ = ["importances", "learning_curve", "marginals", "transitions", "tree"]
