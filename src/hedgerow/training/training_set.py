"""Training sets: what training needs to know about the data, apart from X."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.decoding import Decode, DecodeParameter
from hedgerow.labels import Grammar, Labels
from hedgerow.objectives import Targets, TrainingObjective
from hedgerow.parameters import plain_value
from hedgerow.potentials import BaseModel, Potential
from hedgerow.relational import RelationalFeatures
from hedgerow.seen_groups import SeenGroups
from hedgerow.sequences import Schema
from hedgerow.training.label_parameters import LabelParameters
from hedgerow.training.labelled import Labelled
from hedgerow.training.pattern_penalty import pattern_penalties
from hedgerow.trellis import Trellis


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The training data without their attributes, which are released early.

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
    trellis : Trellis
        The trellis of the grammar.
    targets : Targets
        Labels of the positions, and the weight of each.
    pattern_penalties : (P,) or None
        Strength of the L2 penalty of each label pattern; None if `pattern_lambda` is None.
    seen_groups : SeenGroups
        How X was divided into sequences, and their ids.
    decode : {"viterbi", "marginal"}
        The decoder of all accuracies during training.
    given : tuple of Potential
        Potentials that are not learned.
    identities : (S,) uint64 or None
        What random draws of sequences depend on; None if nothing is drawn.
    queries : RelationalFeatures or None
        What turns facts into attributes, if X contains facts.
    """

    schema: Schema
    index: _core.StringIndex
    labels: Labels
    grammar: Grammar
    trellis: Trellis
    targets: Targets
    pattern_penalties: NDArray[np.float64] | None
    seen_groups: SeenGroups
    decode: Decode
    given: tuple[Potential, ...] = ()
    identities: NDArray[np.uint64] | None = None
    queries: RelationalFeatures | None = None

    @classmethod
    def learn(
        cls,
        crf: LabelParameters,
        labelled: Labelled,
        *,
        objective: TrainingObjective,
        has_edges: bool = False,
    ) -> TrainingSet:
        """Learn the label patterns.

        ``has_edges`` says whether label pairs have scores that differ from position to position;
        this is also the case if given potentials score them. Patterns of a base model are kept.
        """
        given = labelled.given
        base = next((each for each in given if isinstance(each, BaseModel)), None)
        grammar = Grammar.learn(
            labelled.labels,
            labelled.codes,
            labelled.sequences.offsets,
            parents=labelled.sequences.parents,
            order=int(crf.order),
            min_pattern_count=int(crf.min_pattern_count),
            label_patterns=plain_value("label_patterns", crf.label_patterns),
            constraints=labelled.constraints,
            has_edges=has_edges or any(potential.has_edges for potential in given),
            more=None if base is None else base.patterns,
            comm=labelled.comm,
        )
        trellis = crf.build_trellis(grammar)
        targets = labelled.targets(trellis)
        penalties = pattern_penalties(crf.pattern_lambda, grammar.patterns, targets)
        return cls(
            labelled.sequences.schema,
            labelled.index,
            labelled.labels,
            grammar,
            trellis,
            targets,
            penalties,
            labelled.seen_groups,
            _curve_decoder(crf.decode, objective),
            given,
            queries=labelled.queries,
        )


def _curve_decoder(asked: DecodeParameter, objective: TrainingObjective) -> Decode:
    """The decoder of accuracies during training: the requested one, or that of the objective.

    If neither is set, marginals, which training computes anyway.
    """
    if asked != "auto":
        return asked
    return objective.decode or "marginal"
