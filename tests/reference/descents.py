"""Descents: the loss, the results of each iteration, and the minimum."""

from hedgerow.descent.loss import LinearLoss
from hedgerow.descent.scaling import UNSCALED
from hedgerow.descent.trainer import DescentTrainer
from hedgerow.objectives import Likelihood
from hedgerow.raw_data import RawData
from hedgerow.training.stopping import Stopping
from hedgerow.training.training import Training


def build_loss(crf, X, y, sample_weight=None, objective=None, *, scaled=False):
    """The loss that `fit` minimises, in units of its own or of the weights; data, rows, layout."""
    trainer = DescentTrainer(crf, objective or Likelihood())
    raw = RawData(X, y, sample_weight=sample_weight)
    training = Training(crf, trainer, Stopping())
    trainer.learn(training.read(raw))
    scaling = trainer.scaling if scaled else UNSCALED
    options = {"reg_lambda": trainer.penalties, "scaling": scaling, "n_threads": 2}
    data, rows, layout = trainer.data, trainer.rows, trainer.layout
    return LinearLoss(rows, data.targets, layout, **options), data, rows, layout


def follow(descent):
    """Run all iterations; returns the minimum, and weights and loss after each."""
    reports = []
    while True:
        try:
            weights, loss = next(descent)
        except StopIteration as end:
            return end.value, reports
        reports.append((weights.copy(), loss))
