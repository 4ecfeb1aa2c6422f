"""Scores that people report."""

from hedgerow.metrics.chunks import ChunkScores, chunk_scores
from hedgerow.metrics.labels import LabelScores, label_scores
from hedgerow.metrics.scores import Scores

__all__ = ["ChunkScores", "LabelScores", "Scores", "chunk_scores", "label_scores"]
