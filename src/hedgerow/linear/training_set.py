"""The training set of a linear model."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow import _core
from hedgerow.labels import Grammar, Labels
from hedgerow.objectives import Targets
from hedgerow.sequences import Schema


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What is known of the training data but for their attributes, which are let go early.

    Attributes
    ----------
    schema : Schema
        What the columns of X are.
    index : StringIndex
        Names of the attributes.
    labels : Labels
        The classes.
    grammar : Grammar
        How the labels depend on each other.
    targets : Targets
        Labels of the positions, and how much each of them counts.
    """

    schema: Schema
    index: _core.StringIndex
    labels: Labels
    grammar: Grammar
    targets: Targets
