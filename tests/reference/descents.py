"""Descents: the loss that they go down, what each iteration gives, and where it ends."""

from hedgerow.descent.loss import LinearLoss
from hedgerow.descent.scaling import UNSCALED, Scaling
from hedgerow.objectives import Likelihood


def build_loss(crf, X, y, sample_weight=None, objective=None, *, scaled=False):
    """The loss that `fit` minimises, in units of its own or of the weights; data, rows, layout."""
    objective = objective or Likelihood()
    labelled, _ = crf._read_training(X, y, sample_weight, None, objective, None)
    data, rows, _ = crf._learn_training(labelled, objective)
    layout = crf._layout(data, rows)
    scaling = UNSCALED
    if scaled:
        scaling = Scaling.of(rows, None, layout, len(data.grammar.patterns), crf.reg_lambda)
    penalties = crf._penalties(data, layout)
    options = {"reg_lambda": penalties, "scaling": scaling, "n_threads": 2}
    return LinearLoss(rows, data.targets, layout, **options), data, rows, layout


def follow(descent):
    """Go through all iterations; returns the minimum, and weights and loss after each of them."""
    reports = []
    while True:
        try:
            weights, loss = next(descent)
        except StopIteration as end:
            return end.value, reports
        reports.append((weights.copy(), loss))
