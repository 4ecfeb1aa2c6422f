"""Potentials: the parts of a model that score labels.

Each is one file; it scores sequences, and explains its contributions.
"""

from hedgerow.potentials.attribute_weights import AttributeWeights
from hedgerow.potentials.base_model import BaseModel
from hedgerow.potentials.context_trees import ContextTrees, core_contexts
from hedgerow.potentials.given_scores import GivenScores
from hedgerow.potentials.node_trees import NodeTrees
from hedgerow.potentials.pattern_weights import PatternWeights
from hedgerow.potentials.potential import (
    AddScores,
    ContributionRequest,
    Potential,
    join_contributions,
)

__all__ = [
    "AddScores",
    "AttributeWeights",
    "BaseModel",
    "ContextTrees",
    "ContributionRequest",
    "GivenScores",
    "NodeTrees",
    "PatternWeights",
    "Potential",
    "core_contexts",
    "join_contributions",
]
