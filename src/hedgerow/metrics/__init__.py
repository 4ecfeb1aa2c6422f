"""Metrics: precision, recall, F1 and accuracy of labels and chunks, on lists of label lists."""

from hedgerow.metrics.chunks import ChunkScores, chunk_scores
from hedgerow.metrics.flat import (
    flat,
    flat_accuracy_score,
    flat_classification_report,
    flat_confusion_matrix,
    flat_f1_score,
    flat_fbeta_score,
    flat_precision_score,
    flat_recall_score,
)
from hedgerow.metrics.labels import LabelScores, label_scores
from hedgerow.metrics.scores import Scores

__all__ = [
    "ChunkScores",
    "LabelScores",
    "Scores",
    "chunk_scores",
    "flat",
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_confusion_matrix",
    "flat_f1_score",
    "flat_fbeta_score",
    "flat_precision_score",
    "flat_recall_score",
    "label_scores",
]
