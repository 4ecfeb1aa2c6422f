"""Model: a trained model, with all methods from scores to predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core, trellis
from hedgerow.base_scores import check_base_scores_given, read_base_scores
from hedgerow.base_sequences import check_no_base, check_same_positions, data_of_base, of_base
from hedgerow.decoding import Decode, decode_marginals
from hedgerow.encode import GivenParents, encode_alike
from hedgerow.explain import Contributions, Explanation, Place
from hedgerow.labels import Grammar, Labels, pin_known
from hedgerow.lazy import LazyAttributes, lazy
from hedgerow.objectives import Targets, log_likelihoods
from hedgerow.potentials import (
    BaseModel,
    ContributionRequest,
    GivenScores,
    NodeTrees,
    PatternWeights,
    Potential,
    join_contributions,
)
from hedgerow.potentials.scoring import score, sum_arcs
from hedgerow.raw_data import RawData
from hedgerow.relational import RelationalFeatures
from hedgerow.sequences import Schema, Sequences, cut_runs
from hedgerow.tables import Table
from hedgerow.trellis import NoPathError, Scores, Trellis

__all__ = ["Inputs", "Model"]

# Random numbers are drawn for about this many positions at a time; the samples depend on it.
DRAWN_AT_ONCE = 1 << 16

Answer = TypeVar("Answer")
Number = TypeVar("Number", bound=np.generic)
AnyPotential = TypeVar("AnyPotential", bound=Potential)


@dataclass(frozen=True, eq=False)
class Inputs:
    """The input of a model: sequences, and codes of known labels, (N,), -1 where unknown."""

    sequences: Sequences
    known: NDArray[np.int32] | None = None

    def of(self, number: int) -> Inputs:
        """The input of one sequence."""
        begin, end = self.sequences.offsets[number : number + 2].tolist()
        known = None if self.known is None else self.known[begin:end]
        return Inputs(self.sequences.part(number, number + 1), known)


@dataclass(frozen=True, eq=False, repr=False)
class Model(LazyAttributes):
    """A trained model.

    Attributes
    ----------
    labels : Labels
        The K classes.
    schema, index : Schema, StringIndex
        The columns of X, and the names of attributes.
    grammar, trellis : Grammar, Trellis
        How labels depend on each other, and the arcs between them.
    potentials : tuple of Potential
        The parts of the scores, which are added up.
    decode : {"viterbi", "marginal"}
        The default decoder.
    base : Model or None
        The base model; its scores are one of the potentials.
    queries : RelationalFeatures or None
        What turns facts into attributes, if X contains facts.
    """

    labels: Labels
    schema: Schema
    index: _core.StringIndex
    grammar: Grammar
    trellis: Trellis
    potentials: tuple[Potential, ...]
    decode: Decode
    base: Model | None = None
    queries: RelationalFeatures | None = None

    def potential(self, kind: type[AnyPotential]) -> AnyPotential:
        """The potential of a kind; raises LookupError if the model has none."""
        for potential in self.potentials:
            if isinstance(potential, kind):
                return potential
        raise LookupError(f"the model has no {kind.__name__}")

    @property
    def pattern_weights(self) -> NDArray[np.float64]:
        """Weights of the label patterns, (P,)."""
        return self.potential(PatternWeights).weights

    @property
    def takes_base_scores(self) -> bool:
        """Whether scores that the user passes are added to its own."""
        return any(isinstance(potential, GivenScores) for potential in self.potentials)

    @property
    def unused_arguments(self) -> set[str]:
        """Arguments of `fit` that come with X, and that the model was fitted without."""
        uses = {
            "parents": self.schema.has_parents,
            "base_scores": self.takes_base_scores,
            "X_base": self.base is not None,
        }
        return {name for name, used in uses.items() if not used}

    def read(
        self,
        raw: RawData,
        *,
        group_column: Any,
        parents: GivenParents,
        name: str,
        n_threads: int = 1,
    ) -> Sequences:
        """Read all arguments but y, and check them against the training data.

        ``parents`` defines how the parents are given; ``name`` is for messages.
        """
        if self.base is not None:
            raw = raw.repeatable()  # the base reads it too
        sequences = self.encode(
            raw, group_column=group_column, parents=parents, name=name, n_threads=n_threads
        )
        for potential in self.potentials:
            potential.check_values(sequences, name, n_threads=n_threads)
        check_base_scores_given(raw.base_scores, expected=self.takes_base_scores, name=name)
        scores = read_base_scores(raw.base_scores, sequences, self.labels)
        sequences = replace(sequences, base_scores=scores)
        if self.base is None:
            check_no_base(raw.X_base, name)
            return sequences
        return self.base.read_base(
            sequences, raw, group_column=group_column, parents=parents, n_threads=n_threads
        )

    def read_base(
        self,
        sequences: Sequences,
        raw: RawData,
        *,
        group_column: Any,
        parents: GivenParents,
        n_threads: int,
    ) -> Sequences:
        """The same sequences, with the features of this model as the base of another one."""
        advice = ""
        if raw.X_base is None and self.schema != sequences.schema:
            advice = "; if the base was trained on X_base, pass X_base too"
        X_base = raw.X_base
        raw, group_column = data_of_base(raw, sequences, group_column, parents)
        if not self.takes_base_scores:
            raw = replace(raw, base_scores=None)
        with of_base(X_base, advice):
            seen = self.read(
                raw,
                group_column=group_column,
                parents=replace(parents, values=raw.parents),
                name="the base",
                n_threads=n_threads,
            )
        check_same_positions(seen, sequences)
        return replace(sequences, base=seen)

    def as_base(self) -> BaseModel:
        """Its potentials as the base of another model, except the scores that the user passes."""
        left_out = (PatternWeights, GivenScores)
        return BaseModel(
            tuple(part for part in self.potentials if not isinstance(part, left_out)),
            self.trellis,
            self.grammar.patterns,
            self.pattern_weights,
        )

    def encode(
        self,
        raw: RawData,
        *,
        group_column: Any,
        parents: GivenParents,
        name: str,
        n_threads: int = 1,
    ) -> Sequences:
        """Encode X, divided into sequences, with their parents; a part of `read`."""
        return encode_alike(
            self.find_attributes(raw.X),
            raw.groups,
            self.schema,
            self.index,
            group_column=group_column,
            parents=parents,
            name=name,
            n_threads=n_threads,
        )

    def find_attributes(self, X: Any) -> Any:
        """X unchanged; for facts, the queries that hold and that scores depend on."""
        return X if self._asked_queries is None else self._asked_queries.transform(X)

    @lazy
    def _asked_queries(self) -> RelationalFeatures | None:
        """The queries that its scores depend on."""
        if self.queries is None:
            return None
        names = self.index.names()
        for potential in self.potentials:
            if isinstance(potential, NodeTrees):
                names = [names[column] for column in potential.asked_attributes()]
        return self.queries.only(set(names))

    @lazy
    def arcs(self) -> NDArray[np.float64]:
        """Scores of the arcs, the same at every position."""
        return sum_arcs(self.potentials, self.trellis)

    def scores(self, sequences: Sequences, n_threads: int) -> Iterator[Scores]:
        """Scores of all sequences, in runs of consecutive ones."""
        return score(self.potentials, sequences, self.arcs, self.trellis, n_threads)

    def predict(
        self, inputs: Inputs, decode: Decode | None = None, *, n_threads: int
    ) -> NDArray[np.int32]:
        """Codes of the labels, (N,)."""
        begin = 0

        def find(part: Scores) -> NDArray[np.int32]:
            nonlocal begin
            own = slice(begin, begin + part.n_positions)
            begin = own.stop
            if (decode or self.decode) == "viterbi":
                return trellis.viterbi(part, n_threads=n_threads)
            return decode_marginals(
                trellis.forward_backward(part, pairs=None, n_threads=n_threads).marginals,
                part.offsets,
                self.grammar.constraints,
                known=None if inputs.known is None else inputs.known[own],
                parents=part.parents,
                n_threads=n_threads,
            )

        return _join(self._answer(inputs, n_threads, find))

    def marginals(self, inputs: Inputs, *, n_threads: int) -> NDArray[np.float64]:
        """Probability of each label at each position, (N, K)."""

        def measure(part: Scores) -> NDArray[np.float64]:
            return trellis.forward_backward(part, pairs=None, n_threads=n_threads).marginals

        return _join(self._answer(inputs, n_threads, measure))

    def pattern_marginals(self, inputs: Inputs, *, n_threads: int) -> NDArray[np.float64]:
        """Probability that each label pattern ends at each position, (N, P)."""
        patterns = self.trellis.pattern_arcs

        def measure(part: Scores) -> NDArray[np.float64]:
            found = trellis.forward_backward(
                part, pairs=None, patterns=patterns, n_threads=n_threads
            ).pattern_marginals
            assert found is not None
            return found

        return _join(self._answer(inputs, n_threads, measure))

    def k_best(
        self, inputs: Inputs, k: int, *, n_threads: int
    ) -> list[list[tuple[NDArray[Any], float]]]:
        """For each sequence up to k labellings with their log probabilities, the best first."""
        found: list[list[tuple[NDArray[Any], float]]] = []

        def search(part: Scores) -> None:
            # There are K^T labellings: possibly fewer than requested for short sequences.
            longest = int(np.diff(part.offsets).max())
            most = min(k, part.n_labels ** min(longest, 64))
            codes, counts, log_probs = trellis.k_best(part, most, n_threads=n_threads)
            for s, (begin, end) in enumerate(pairwise(part.offsets.tolist())):
                n_found = int(counts[s])
                rows = self.labels.decode(codes[:n_found, begin:end])
                found.append(list(zip(rows, log_probs[:n_found, s].tolist(), strict=True)))

        self._answer(inputs, n_threads, search)
        return found

    def sample(
        self, inputs: Inputs, n: int, random: np.random.RandomState, *, n_threads: int
    ) -> NDArray[np.int32]:
        """Codes of n random labellings, (n, N)."""
        offsets = inputs.sequences.offsets
        runs = [offsets[stop] - offsets[first] for first, stop in cut_runs(offsets, DRAWN_AT_ONCE)]
        uniforms = np.concatenate([random.random_sample((n, size)) for size in runs], axis=1)
        begin = 0

        def draw(part: Scores) -> NDArray[np.int32]:
            nonlocal begin
            own = slice(begin, begin + part.n_positions)
            begin = own.stop
            return trellis.sample(part, uniforms[:, own], n_threads=n_threads)

        return np.concatenate(self._answer(inputs, n_threads, draw), axis=1)

    def log_likelihoods(
        self, inputs: Inputs, codes: NDArray[np.int32], *, n_threads: int
    ) -> NDArray[np.float64]:
        """Log probability of each sequence's labels, (S,); ``codes`` (N,) are -1 if missing."""
        sequences = inputs.sequences
        targets = Targets(sequences.offsets, codes, self.trellis, parents=sequences.parents)
        first = 0

        def measure(part: Scores) -> NDArray[np.float64]:
            nonlocal first
            begin, first = first, first + part.n_sequences
            return log_likelihoods(part, targets.part(slice(begin, first)), n_threads=n_threads)

        return np.concatenate(self._answer(inputs, n_threads, measure))

    def explain(
        self,
        inputs: Inputs,
        position: int,
        label: Any,
        against: Any,
        decode: Decode | None = None,
        *,
        n_threads: int,
    ) -> Explanation:
        """Why a position of one sequence has its label, see `hedgerow.TreeCRF.explain`."""
        predicted = self.predict(inputs, decode, n_threads=n_threads)
        place = self._find_place(inputs, position, predicted, n_threads)
        codes = place.choose(label, against)
        ((bias, features),) = self._contributions(inputs, {position: codes}, predicted)
        return place.explain(codes, bias, features, explains_arcs=self._explains_arcs)

    def contributions(
        self,
        inputs: Inputs,
        pairs: Mapping[int, tuple[int, int]],
        predicted: NDArray[np.int32],
        *,
        n_threads: int,
    ) -> Iterator[Contributions]:
        """Contributions to the log-odds of two labels, for some positions of some sequences.

        This is the cheap part of `explain`, without sums over labellings.

        Parameters
        ----------
        inputs
            The sequences.
        pairs
            Codes of the two labels, by index of the position among the N positions of all
            sequences, in ascending order.
        predicted
            Codes of the labels of all positions, (N,).
        n_threads
            Number of threads.
        """
        found = self._contributions(inputs, pairs, predicted)
        last, place = -1, None
        for (position, pair), (bias, features) in zip(pairs.items(), found, strict=True):
            number, own_position = inputs.sequences.locate(position)
            if place is None or number != last:
                own = slice(*inputs.sequences.offsets[number : number + 2].tolist())
                place = self._find_place(inputs.of(number), 0, predicted[own], n_threads)
                last = number
            transitions = replace(place, position=own_position).weigh_transitions(
                pair, explains_arcs=self._explains_arcs
            )
            yield Contributions(bias, features, transitions)

    @property
    def _explains_arcs(self) -> bool:
        return any(part.scores_arcs for part in self.potentials)

    def _find_place(
        self, inputs: Inputs, position: int, predicted: NDArray[np.int32], n_threads: int
    ) -> Place:
        (part,) = self._answer(inputs, n_threads, lambda part: part)
        return Place(part, position, predicted, self.grammar, self.pattern_weights, self.labels)

    def _contributions(
        self,
        inputs: Inputs,
        pairs: Mapping[int, tuple[int, int]],
        predicted: NDArray[np.int32],
    ) -> list[tuple[float, Table]]:
        """Contributions of features to the score of a label minus that of another, by position."""
        signs = np.zeros((len(pairs), len(self.labels.classes)), np.int64)
        for row, (label, against) in zip(signs, pairs.values(), strict=True):
            row[label], row[against] = 1, -1
        asked = ContributionRequest(np.fromiter(pairs, np.int64, len(pairs)), signs, predicted)
        return join_contributions(self.potentials, inputs.sequences, asked)

    def _answer(
        self, inputs: Inputs, n_threads: int, answer: Callable[[Scores], Answer]
    ) -> list[Answer]:
        """Results for runs of consecutive sequences, from their scores."""
        answers, begin = [], 0
        try:
            with _core.ThreadPool():
                for part in self.scores(inputs.sequences, n_threads):
                    if inputs.known is not None:
                        pin_known(part.nodes, inputs.known[begin : begin + part.n_positions])
                    begin += part.n_positions
                    answers.append(answer(part))
        except NoPathError:
            self._explain_dead_end(inputs)
            raise
        return answers

    def _explain_dead_end(self, inputs: Inputs) -> None:
        """Raise an error that names the place where constraints and known labels leave no path."""
        sequences, constraints = inputs.sequences, self.grammar.constraints
        if constraints is None:
            return
        if inputs.known is not None:
            constraints.check(inputs.known, sequences, self.labels, "known")
        nothing_known = np.full(sequences.n_positions, -1, dtype=np.int32)
        dead_end = constraints.find_dead_end(nothing_known, sequences.offsets, sequences.parents)
        if dead_end is not None:
            where = f"sequence {dead_end[0]}" if sequences.flat else f"X[{dead_end[0]}]"
            part = f"positions 0 to {dead_end[1]}" if dead_end[1] else "position 0"
            if sequences.parents is not None:
                part = f"position {dead_end[1]} and of the positions below it"
            raise ValueError(
                f"{where}, of length {sequences.lengths[dead_end[0]]}, cannot be labelled: no "
                f"labels of {part} satisfy the constraints; leave it out or relax the constraints"
            )


def _join(parts: list[NDArray[Number]]) -> NDArray[Number]:
    """Concatenate rows of consecutive runs of sequences."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
