"""Model selection: splitters of whole sequences, and cross-validated predictions."""

from hedgerow.model_selection.cross_val import cross_val_predict
from hedgerow.model_selection.splitters import (
    SequenceKFold,
    StratifiedSequenceKFold,
    train_test_split,
)

__all__ = ["SequenceKFold", "StratifiedSequenceKFold", "cross_val_predict", "train_test_split"]
