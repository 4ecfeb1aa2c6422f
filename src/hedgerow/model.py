"""What every fitted CRF can do: all the ways from scores to an answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import trellis
from hedgerow.decoding import Decode, decode_marginals
from hedgerow.estimator import Estimator
from hedgerow.explain import Explanation, Place
from hedgerow.labels import pin_known
from hedgerow.labels.tables import Table
from hedgerow.objectives import Targets, log_likelihoods
from hedgerow.parameters import check_number, read_random_state
from hedgerow.sequences import Sequences
from hedgerow.threads import count_threads
from hedgerow.trellis import NoPathError, Scores, Trellis
from hedgerow.weighting import read_sample_weight

Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class Question:
    """What a model is asked about: sequences, and codes of known labels, (N,) with -1, or None."""

    sequences: Sequences
    known: NDArray[np.int32] | None


class SequenceModel(Estimator):
    """Base of the estimators: prediction from the scores that a subclass computes."""

    n_jobs: int | None

    @abstractmethod
    def _scores(self, sequences: Sequences) -> Iterator[Scores]:
        """Scores of all sequences, in one or more runs of consecutive ones."""

    @property
    @abstractmethod
    def _trellis(self) -> Trellis:
        """What the arcs of the scores belong to."""

    @property
    def _n_threads(self) -> int:
        return count_threads(self.n_jobs)

    @abstractmethod
    def _contributions(
        self, sequences: Sequences, position: int, signs: NDArray[np.int64]
    ) -> tuple[float, Table]:
        """What makes up a sum of scores at a position of one sequence, see `explain`.

        ``signs`` (K,) says how often the score of each label counts. Returns what is there without
        any feature, and the columns feature, offset, value, contribution.
        """

    def predict(
        self, X: Any, *, groups: Any = None, known: Any = None, decode: Decode | None = None
    ) -> Any:
        """Label every position.

        Parameters
        ----------
        X
            Sequences, in the form used to fit.
        groups
            For a flat X, the sequence of each row.
        known
            Labels that are known already, in the form of y, None where they are not. They come out
            as they went in, and the others are chosen in their light.
        decode
            "viterbi" gives the most probable labelling of each sequence as a whole, "marginal" the
            most probable label of each position, which makes the fewest errors on average. Under
            constraints the latter is the labelling, of those that are allowed, whose labels have
            the largest sum of probabilities. None: ``decode_``, which is "marginal" for models
            trained for an objective of the marginals, such as accuracy, and else "viterbi".

        Returns
        -------
        list of arrays, or one array for a flat X
            Labels of the kind used to fit.
        """
        if decode not in ("viterbi", "marginal", None):
            raise ValueError(f"decode is {decode!r}; expected 'viterbi', 'marginal' or None")
        question = self._ask(X, groups, known)
        return question.sequences.mirror(self._labels().decode(self._decode(question, decode)))

    def predict_marginals(self, X: Any, *, groups: Any = None, known: Any = None) -> Any:
        """Probability of each label at each position, given the whole sequence.

        ``known`` holds labels that are known already, see `predict`.

        Returns
        -------
        list of (T, K) arrays, or one (N, K) array for a flat X
            Columns in the order of ``classes_``.
        """
        question = self._ask(X, groups, known)
        return question.sequences.mirror(self._marginals(question))

    def predict_proba(
        self, X: Any, *, groups: Any = None, known: Any = None
    ) -> NDArray[np.float64]:
        """Return the same as one (N, K) array, whatever the form of X."""
        return self._marginals(self._ask(X, groups, known))

    def predict_pattern_marginals(self, X: Any, *, groups: Any = None, known: Any = None) -> Any:
        """Probability that each label pattern ends at each position, given the whole sequence.

        ``known`` holds labels that are known already, see `predict`.

        Returns
        -------
        list of (T, P) arrays, or one (N, P) array for a flat X
            Columns in the order of ``label_patterns_``.
        """
        question = self._ask(X, groups, known)
        patterns = self._trellis.pattern_arcs

        def measure(part: Scores) -> NDArray[np.float64]:
            found = trellis.forward_backward(
                part, pairs=None, patterns=patterns, n_threads=self._n_threads
            ).pattern_marginals
            assert found is not None
            return found

        return question.sequences.mirror(_join(self._answer(question, measure)))

    def predict_k_best(
        self, X: Any, k: int, *, groups: Any = None, known: Any = None
    ) -> list[list[tuple[NDArray[Any], float]]]:
        """Find the k most probable labellings of each sequence.

        Takes memory in proportion to the length of a sequence times the number of states, about
        one for every label and every beginning of a label pattern.

        Parameters
        ----------
        X, groups, known
            See `predict`.
        k
            How many.

        Returns
        -------
        list of lists of (labels, log-probability)
            For each sequence up to k different labellings, the most probable first; fewer if there
            are no more.
        """
        check_number("k", k, minimum=1, integer=True)
        question = self._ask(X, groups, known)
        labels = self._labels()
        found: list[list[tuple[NDArray[Any], float]]] = []

        def search(part: Scores) -> None:
            # There are K^T labellings: of short sequences fewer, perhaps, than were asked for.
            longest = int(np.diff(part.offsets).max())
            most = min(int(k), len(self.classes_) ** min(longest, 64))
            codes, counts, log_probs = trellis.k_best(part, most, n_threads=self._n_threads)
            for s, (begin, end) in enumerate(pairwise(part.offsets.tolist())):
                n_found = int(counts[s])
                rows = labels.decode(codes[:n_found, begin:end])
                found.append(list(zip(rows, log_probs[:n_found, s].tolist(), strict=True)))

        self._answer(question, search)
        return found

    def sample(
        self,
        X: Any,
        n: int = 1,
        *,
        random_state: Any = None,
        groups: Any = None,
        known: Any = None,
    ) -> Any:
        """Draw labellings at random, each as often as it is probable.

        Parameters
        ----------
        X, groups, known
            See `predict`.
        n
            How many labellings of each sequence.
        random_state
            A seed, a ``numpy.random.RandomState``, or None for other labellings every time.

        Returns
        -------
        list of (n, T) arrays, or one (n, N) array for a flat X
        """
        check_number("n", n, minimum=1, integer=True)
        question = self._ask(X, groups, known)
        random = read_random_state(random_state)

        def draw(part: Scores) -> NDArray[np.int32]:
            uniforms = random.random_sample((int(n), part.n_positions))
            return trellis.sample(part, uniforms, n_threads=self._n_threads)

        codes = np.concatenate(self._answer(question, draw), axis=1)
        drawn = question.sequences.mirror(self._labels().decode(codes).T)
        return [labels.T for labels in drawn] if isinstance(drawn, list) else drawn.T

    def log_likelihood(self, X: Any, y: Any, *, groups: Any = None) -> NDArray[np.float64]:
        """Log probability of the labels y of each sequence, (S,).

        Where labels are missing it is that of the others, summed over all ways to fill in the
        missing ones. Labels that break a constraint have probability 0.
        """
        question = self._ask(X, groups, None)
        return self._log_likelihoods(question, self._read_codes(y, question.sequences))

    def _log_likelihoods(self, question: Question, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Log probability of labels by their codes, (N,) with -1 for missing: (S,)."""
        begin = 0

        def measure(part: Scores) -> NDArray[np.float64]:
            nonlocal begin
            begin, first = begin + part.n_positions, begin
            targets = Targets(part.offsets, codes[first:begin], part.trellis)
            return log_likelihoods(part, targets, n_threads=self._n_threads)

        return np.concatenate(self._answer(question, measure))

    def score(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, groups: Any = None
    ) -> float:
        """Share of positions that `predict` labels right, of those whose label is not missing.

        ``sample_weight`` has a weight for each sequence, or for each row of a flat X.
        """
        question = self._ask(X, groups, None)
        codes = self._read_codes(y, question.sequences)
        given = codes >= 0
        if not given.any():
            raise ValueError("every label of y is missing; score needs at least one")
        right = self._decode(question, None) == codes
        weights = read_sample_weight(sample_weight, question.sequences)
        by_position = weights.of_positions(question.sequences)
        if by_position is None:
            return float(np.mean(right[given]))
        if not by_position[given].any():
            raise ValueError(
                "sample_weight is zero wherever there is a label; at least one must count"
            )
        return float(np.average(right[given], weights=by_position[given]))

    def explain(
        self, x: Any, position: int, label: Any = None, against: Any = None, *, known: Any = None
    ) -> Explanation:
        """Tell why a position has its label: what speaks for it, and against another label.

        The log-odds of the two labels are split, without a remainder, into what each feature of the
        position and its window adds, what the transitions from and to the predicted neighbours
        add, and what comes from the neighbours not being certain.

        Parameters
        ----------
        x
            One sequence, in the form used to fit.
        position
            A position of it, counted from 0.
        label
            The label to explain; None: the one that `predict` gives.
        against
            The label to compare it with; None: the most probable other one.
        known
            Labels of the sequence that are known already, None where they are not.

        Returns
        -------
        Explanation
            ``print(...)`` shows it as text.
        """
        question = self._ask_one(x, known)
        length = question.sequences.n_positions
        is_number = isinstance(position, Integral) and not isinstance(position, bool)
        if not (is_number and 0 <= position < length):
            raise ValueError(
                f"position is {position!r}, but x has {length} positions; expected an integer from "
                f"0 to {length - 1}"
            )
        (part,) = self._answer(question, lambda part: part)
        place = Place(
            part,
            int(position),
            self._decode(question, None),
            self._grammar,
            self._pattern_weights,
            self._labels(),
        )
        label_code, against_code = place.choose(label, against)
        signs = np.zeros(len(self.classes_), np.int64)
        signs[label_code], signs[against_code] = 1, -1
        bias, features = self._contributions(question.sequences, place.position, signs)
        return place.explain((label_code, against_code), bias, features)

    def _ask_one(self, x: Any, known: Any) -> Question:
        """Read one sequence, not wrapped in a list."""
        self._check_fitted()
        try:
            question = self._ask([x], None, None if known is None else [known])
        except (TypeError, ValueError):
            sequences = self._read_if_possible(x)
            if sequences is None or sequences.flat:
                raise
        else:
            # A table that carries its own groups may have several.
            sequences = None if self.group_column is None else self._read_if_possible(x)
            if sequences is None or sequences.n_sequences == 1:
                return question
        raise ValueError(
            f"x holds {sequences.n_sequences} sequence(s) in a list or by groups, but one "
            "is expected; pass it alone, X[0] for example"
        )

    def _read_if_possible(self, X: Any) -> Sequences | None:
        try:
            return self._read(X, None)
        except (TypeError, ValueError):
            return None

    def _decode(self, question: Question, decode: Decode | None) -> NDArray[np.int32]:
        if (decode or self.decode_) == "viterbi":
            best = self._answer(
                question, lambda part: trellis.viterbi(part, n_threads=self._n_threads)
            )
            return np.concatenate(best)
        return decode_marginals(
            self._marginals(question),
            question.sequences.offsets,
            self._grammar.constraints,
            known=question.known,
            n_threads=self._n_threads,
        )

    def _marginals(self, question: Question) -> NDArray[np.float64]:
        parts = self._answer(
            question,
            lambda part: (
                trellis.forward_backward(part, pairs=None, n_threads=self._n_threads).marginals
            ),
        )
        return _join(parts)

    def _ask(self, X: Any, groups: Any, known: Any) -> Question:
        self._check_fitted()
        sequences = self._read(X, groups)
        if known is None:
            return Question(sequences, None)
        return Question(sequences, self._read_codes(known, sequences, "known"))

    def _answer(self, question: Question, answer: Callable[[Scores], Answer]) -> list[Answer]:
        """Answers for runs of consecutive sequences, from their scores."""
        answers, begin = [], 0
        try:
            for part in self._scores(question.sequences):
                if question.known is not None:
                    pin_known(part.nodes, question.known[begin : begin + part.n_positions])
                begin += part.n_positions
                answers.append(answer(part))
        except NoPathError:
            self._explain_dead_end(question)
            raise
        return answers

    def _explain_dead_end(self, question: Question) -> None:
        """Raise an error that names the place where constraints and known labels leave no path."""
        sequences, constraints = question.sequences, self._grammar.constraints
        if constraints is None:
            return
        if question.known is not None:
            constraints.check(question.known, sequences, self._labels(), "known")
        nothing_known = np.full(sequences.n_positions, -1, dtype=np.int32)
        dead_end = constraints.find_dead_end(nothing_known, sequences.offsets)
        if dead_end is not None:
            where = f"sequence {dead_end[0]}" if sequences.flat else f"X[{dead_end[0]}]"
            raise ValueError(
                f"{where}, of length {sequences.lengths[dead_end[0]]}, cannot be labelled: no "
                f"labels of its positions up to {dead_end[1]} keep to the constraints; leave it "
                "out or relax the constraints"
            )


def _join(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Rows of consecutive runs of sequences, one after the other."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
