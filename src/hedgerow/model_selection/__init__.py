"""Model selection: whole sequences in every fold, wherever scikit-learn takes ``cv=``."""

from hedgerow.model_selection.cross_val import cross_val_predict
from hedgerow.model_selection.splitters import (
    SequenceKFold,
    StratifiedSequenceKFold,
    train_test_split,
)

__all__ = ["SequenceKFold", "StratifiedSequenceKFold", "cross_val_predict", "train_test_split"]
