"""Labelled sequences: X, y and weights as passed to `fit`, checked against each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core
from hedgerow.base_scores import read_base_scores
from hedgerow.comm import ALONE, Comm
from hedgerow.data_warning import warn_user
from hedgerow.encode import renumber_items, seen_items
from hedgerow.encode.suspects import warn_of_suspects
from hedgerow.identity import identify_sequences
from hedgerow.labels import Constraints, LabelColumn, Labels, read_constraints, read_labels
from hedgerow.objectives import Targets, TrainingObjective
from hedgerow.parameters import plain_value
from hedgerow.potentials import GivenScores, Potential
from hedgerow.relational import RelationalFeatures
from hedgerow.seen_groups import SeenGroups
from hedgerow.sequences import Sequences
from hedgerow.training.label_parameters import LabelParameters
from hedgerow.trellis import Trellis
from hedgerow.weighting import class_weights, read_sample_weight

__all__ = ["Labelled", "read_labelled"]


@dataclass(frozen=True, eq=False)
class Labelled:
    """N positions of S sequences with their labels and weights.

    Attributes
    ----------
    sequences : Sequences
        X.
    index : StringIndex
        Names of its attributes.
    labels : Labels
        The classes.
    codes : (N,) int32
        Label of each position, -1 if it is not known.
    constraints : Constraints or None
        Constraints on labellings.
    sequence_weights : (S,) or None
        Weight of each sequence.
    position_weights : (N,) or None
        Weight of each position, if positions differ within a sequence.
    seen_groups : SeenGroups
        How the X passed to `fit` is divided into sequences, and their ids.
    given : tuple of Potential
        Potentials that are not learned.
    base : Labelled or None
        The same sequences with the features of a base model that is not trained yet.
    comm : Comm
        The workers; these sequences are a part of those of all workers.
    queries : RelationalFeatures or None
        What turns facts into attributes, if X contains facts.
    """

    sequences: Sequences
    index: _core.StringIndex
    labels: Labels
    codes: NDArray[np.int32]
    constraints: Constraints | None
    sequence_weights: NDArray[np.float64] | None
    position_weights: NDArray[np.float64] | None
    seen_groups: SeenGroups
    given: tuple[Potential, ...] = ()
    base: Labelled | None = None
    comm: Comm = ALONE
    queries: RelationalFeatures | None = None

    def targets(self, trellis: Trellis) -> Targets:
        """Only the labels and weights."""
        offsets, parents = self.sequences.offsets, self.sequences.parents
        by_sequence, by_position = self.sequence_weights, self.position_weights
        return Targets(offsets, self.codes, trellis, by_sequence, by_position, parents, self.comm)

    def identify(
        self, n_threads: int = 1, more: NDArray[np.uint64] | None = None
    ) -> NDArray[np.uint64]:
        """A number for each sequence, (S,), that does not depend on their order.

        Sequences with different features of the base, or different ``more``, (S,), have different
        numbers.
        """
        weights = self.sequence_weights, self.position_weights
        of_base = None if self.base is None else self.base.identify(n_threads)
        digests = self.index.digests() if self.sequences.schema.kind == "items" else None
        return identify_sequences(
            self.sequences,
            self.codes,
            *weights,
            of_base,
            more,
            attributes=digests,
            n_threads=n_threads,
            comm=self.comm,
        )

    def weights_of_positions(self) -> NDArray[np.float64] | None:
        """Weight of each position, (N,); None if there are no weights."""
        if self.position_weights is not None or self.sequence_weights is None:
            return self.position_weights
        return np.repeat(self.sequence_weights, self.sequences.lengths)

    def counts(self) -> NDArray[np.bool_]:
        """Whether the label of each position is known and has a positive weight, (N,)."""
        weights, known = self.weights_of_positions(), self.codes >= 0
        return known if weights is None else known & (weights > 0)

    def can_cut(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a sequence can be cut before each of these positions, which are inside sequences.

        With constraints this is possible where a sequence may end and another may begin; with
        parents, where no position has its parent on the other side, so that roots and leaves stay
        the same.
        """
        if self.sequences.parents is not None:
            return ~self._are_tied()[positions]
        if self.constraints is None:
            return np.ones(len(positions), np.bool_)
        before, after = self.codes[positions - 1], self.codes[positions]
        allowed = self.constraints.end[before] & self.constraints.start[after]
        return allowed & (before >= 0) & (after >= 0)

    def _are_tied(self) -> NDArray[np.bool_]:
        """Whether a cut before each position would separate a child from its parent, (N,)."""
        sequences = self.sequences
        assert sequences.parents is not None
        children = np.flatnonzero(sequences.parents >= 0)
        begins = np.repeat(sequences.offsets[:-1], sequences.lengths)
        ends = np.stack([children, sequences.parents[children] + begins[children]])
        opened = np.bincount(ends.min(axis=0) + 1, minlength=sequences.n_positions + 1)
        closed = np.bincount(ends.max(axis=0) + 1, minlength=sequences.n_positions + 1)
        return np.cumsum(opened - closed)[: sequences.n_positions] > 0

    def select(
        self, numbers: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> Labelled:
        """Some sequences, by number, each from one position to another."""
        lengths = ends - begins
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        positions = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)
        by_sequence, by_position = self.sequence_weights, self.position_weights
        return replace(
            self,
            sequences=self.sequences.select(positions, offsets),
            codes=self.codes[positions],
            sequence_weights=None if by_sequence is None else by_sequence[numbers],
            position_weights=None if by_position is None else by_position[positions],
            base=self.base and self.base.select(numbers, begins, ends),
        )

    def drop_unseen(self) -> Labelled:
        """The same data without names of attributes that do not occur on any worker."""
        if self.sequences.schema.kind != "items":
            return self
        return self.renumber(seen_items(self.sequences, self.index, self.comm))

    def renumber(self, index: _core.StringIndex) -> Labelled:
        """The same data with attributes numbered by another index; others are dropped."""
        if self.sequences.schema.kind != "items" or index is self.index:
            return replace(self, index=index)
        return replace(
            self, sequences=renumber_items(self.sequences, self.index, index), index=index
        )


def read_labelled(
    crf: LabelParameters,
    sequences: Sequences,
    index: _core.StringIndex,
    y: Any,
    sample_weight: ArrayLike | None = None,
    base_scores: Any = None,
    *,
    objective: TrainingObjective,
    labels: Labels | None = None,
    comm: Comm = ALONE,
) -> Labelled:
    """Read everything that comes with X; raises ValueError or TypeError if it is invalid.

    Parameters
    ----------
    crf
        The estimator, whose parameters define how to read the data.
    sequences, index
        X, and the names of its attributes.
    y, sample_weight, base_scores
        As the user passed them.
    objective
        The objective.
    labels
        The classes, if they are already known and y must not have others.
    comm
        The workers that train together.
    """
    warn_of_suspects(sequences, type(crf).__name__, sample_weight)
    column = read_labels(y, sequences, missing_label=crf.missing_label)
    if objective.needs_all_labels:
        column.require_all(sequences, objective.needs_all_labels)
    if labels is None:
        labels, codes = Labels.learn(column, comm)
        if comm.size > 1:
            labels = Labels.union(comm.gather(labels))
            codes = labels.encode(column, sequences)
    else:
        column.require_any(comm)
        codes = labels.encode(column, sequences)
    if len(labels.classes) == 1:
        warn_user(
            f"y has a single label, {labels.classes.tolist()[0]!r}: there is nothing to learn, and "
            "this label will be predicted everywhere; check that y contains the labels of all "
            "sequences"
        )
    constraints = _read_constraints(crf, labels, codes, sequences)
    weight = read_sample_weight(sample_weight, sequences, comm)
    if weight.by_position is not None:
        column.require_all(sequences, "sample_weight with different weights in a sequence")
    position_weights = _read_class_weight(crf, labels, column, codes, sequences, comm)
    if position_weights is None:
        position_weights = weight.by_position
    elif (of_positions := weight.of_positions(sequences)) is not None:
        position_weights *= of_positions
    scores = read_base_scores(base_scores, sequences, labels)
    return Labelled(
        replace(sequences, base_scores=scores),
        index,
        labels,
        codes,
        constraints,
        weight.by_sequence,
        position_weights,
        SeenGroups.of(sequences),
        (*(() if scores is None else (GivenScores(),)), *crf.given_potentials()),
        comm=comm,
    )


def _read_constraints(
    crf: LabelParameters, labels: Labels, codes: NDArray[np.int32], sequences: Sequences
) -> Constraints | None:
    constraints = read_constraints(
        labels,
        constraints=crf.constraints,
        allowed=plain_value("allowed", crf.allowed),
        forbidden=plain_value("forbidden", crf.forbidden),
        start_labels=plain_value("start_labels", crf.start_labels),
        end_labels=plain_value("end_labels", crf.end_labels),
    )
    if constraints is not None:
        constraints.check(codes, sequences, labels)
    return constraints


def _read_class_weight(
    crf: LabelParameters,
    labels: Labels,
    column: LabelColumn,
    codes: NDArray[np.int32],
    sequences: Sequences,
    comm: Comm,
) -> NDArray[np.float64] | None:
    """Weight of each position by its label, (N,); None if `class_weight` is None."""
    if crf.class_weight is None:
        return None
    column.require_all(sequences, "class_weight")
    counts = comm.sum(np.bincount(codes, minlength=len(labels.classes)))
    return class_weights(plain_value("class_weight", crf.class_weight), labels, counts)[codes]
