"""Statistics: confidence intervals of scores, and tests of the difference between models."""

from hedgerow.stats.deviance_analysis import Deviance, deviance
from hedgerow.stats.mcnemars_test import McNemar, mcnemar
from hedgerow.stats.sequence_bootstrap import Bootstrap, bootstrap

__all__ = ["Bootstrap", "Deviance", "McNemar", "bootstrap", "deviance", "mcnemar"]
