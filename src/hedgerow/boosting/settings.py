"""Settings of a boosting run, checked and with defaults filled in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["CurvatureKind", "Settings", "TransitionStep"]

CurvatureKind = Literal["mixing", "exact", "length"]
TransitionStep = Literal["bound", "exact"]


@dataclass(frozen=True)
class Settings:
    """What `hedgerow.TreeCRF` was made with; its documentation explains each."""

    learning_rate: float
    max_leaves: int
    max_depth: int
    min_child_weight: float
    min_split_gain: float
    reg_lambda: float
    max_step: float
    colsample_bytree: float
    colsample_bynode: float
    newton: bool
    curvature: CurvatureKind
    transition_step: TransitionStep
    trim: float
    subsample: float
    negative_ratio: float
    """0: not stratified."""
    seed: int
    n_threads: int

    @property
    def draws(self) -> bool:
        """Whether a round depends on random numbers, so that the next may fare better."""
        sampled = min(self.subsample, self.colsample_bytree, self.colsample_bynode) < 1
        return sampled or self.negative_ratio > 0
