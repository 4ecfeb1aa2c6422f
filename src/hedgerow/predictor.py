"""Predictor: the prediction methods of a fitted estimator: labels, probabilities, explanations."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core
from hedgerow.counting import count_of
from hedgerow.decoding import Decode, check_decode
from hedgerow.encode.parents import ParentsFormat
from hedgerow.explain import Explanation
from hedgerow.fitted import check_fitted, compare_codes, read_inputs, read_one
from hedgerow.labels.tables import name_patterns, pair_table, pattern_table
from hedgerow.model import Inputs
from hedgerow.parameters import check_number, read_random_state
from hedgerow.raw_data import RawData
from hedgerow.relational import RelationalFeatures
from hedgerow.seen_groups import SeenGroups, scoring
from hedgerow.shown import Shown
from hedgerow.tables import Table
from hedgerow.threads import count_threads
from hedgerow.weighting import read_sample_weight

__all__ = ["Labeller", "Predictor"]

# From this many sequences on, the threads that label them are started while they are read.
MANY_SEQUENCES = 1000


class Labeller(Protocol):
    """Anything that predicts labels and marginals, such as `hedgerow.model.Model`."""

    def predict(
        self, inputs: Inputs, decode: Decode | None = None, *, n_threads: int
    ) -> NDArray[np.int32]:
        """Codes of the labels, (N,)."""
        ...

    def marginals(self, inputs: Inputs, *, n_threads: int) -> NDArray[np.float64]:
        """Probability of each label at each position, (N, K)."""
        ...


class Predictor(Shown):
    """Base class of the estimators with all methods that predict; it does not train."""

    group_column: str | int | None
    parents_column: str | int | None
    parents_format: ParentsFormat
    missing_label: Any
    n_jobs: int | None
    seen_groups_: SeenGroups | None = None  # of the training data; not saved in a model file

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        check_fitted(self)
        return self.model_.labels.classes

    @property
    def decode_(self) -> Decode:
        """The decoder that `predict` and other methods use by default."""
        check_fitted(self)
        return self.model_.decode

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        check_fitted(self)
        if self.model_.schema.kind != "columns":
            raise AttributeError("X had named attributes, and no columns")
        return self.model_.schema.n_features

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns of X, if they have any."""
        check_fitted(self)
        if self.model_.schema.kind != "columns":
            raise AttributeError("X had named attributes, and no columns")
        names = self.model_.schema.names
        if names is None:
            raise AttributeError("the columns of X had no names")
        return np.array(names, dtype=np.object_)

    @property
    def queries_(self) -> RelationalFeatures:
        """The fitted queries that turn facts into attributes."""
        check_fitted(self)
        if self.model_.queries is None:
            raise AttributeError("X contained no facts, so there are no queries")
        return self.model_.queries

    @property
    def label_patterns_(self) -> list[tuple[Any, ...]]:
        """The label patterns that have weights."""
        check_fitted(self)
        return name_patterns(self.model_.grammar.patterns, self.classes_)

    def patterns(self) -> Any:
        """Weights of label patterns, as a table: pattern, weight."""
        check_fitted(self)
        return self._give(self._pattern_table())

    def _pattern_table(self) -> Table:
        return pattern_table(self.model_.grammar, self.model_.pattern_weights, self.classes_)

    def transition_weights(self) -> Any:
        """Weights of label pairs, as a table: from, to, weight."""
        check_fitted(self)
        return self._give(self._transition_table())

    def _transition_table(self) -> Table:
        return pair_table(self.model_.grammar, self.model_.pattern_weights, self.classes_)

    def predict(
        self,
        X: Any,
        *,
        groups: Any = None,
        known: Any = None,
        decode: Decode | None = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
    ) -> Any:
        """Label every position.

        Parameters
        ----------
        X
            Sequences, in the same format as in `fit`.
        groups
            For a flat X, the sequence of each row.
        known
            Labels that are already known, in the same format as y, with None where they are not
            known. They are kept, and the other labels are predicted given them.
        decode
            "viterbi" finds the most probable labelling of each sequence as a whole, "marginal" the
            most probable label of each position, which has the fewest expected errors. With
            constraints the latter is the allowed labelling whose labels have the largest sum of
            probabilities. None: ``decode_``, the decoder of the model.
        parents
            Parents of the positions, for a model that was fitted with parents, see `fit`.
        base_scores
            Scores of the labels that are added to those of the model, if it was fitted with
            `base_scores`, in one of the formats that `fit` accepts.
        X_base
            Features of the base model, if there is one and it does not use X.

        Returns
        -------
        list of arrays, or one array for a flat X
            Labels of the same type as in `fit`.
        """
        check_decode(decode)
        raw = RawData(X, None, groups, parents, base_scores, X_base)
        is_long = isinstance(X, list) and len(X) >= MANY_SEQUENCES
        with _core.ThreadPool(self._n_threads if is_long else 1):
            inputs = read_inputs(self, raw, known)
            codes = self._labeller.predict(inputs, decode, n_threads=self._n_threads)
            labels = self.model_.labels.decode(codes, n_threads=self._n_threads)
        return inputs.sequences.mirror(labels)

    def predict_marginals(
        self,
        X: Any,
        *,
        groups: Any = None,
        known: Any = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
    ) -> Any:
        """Probability of each label at each position, given the whole sequence.

        ``known`` holds labels that are known already, see `predict` for all arguments.

        Returns
        -------
        list of (T, K) arrays, or one (N, K) array for a flat X
            Columns in the order of ``classes_``.
        """
        inputs = read_inputs(self, RawData(X, None, groups, parents, base_scores, X_base), known)
        marginals = self._labeller.marginals(inputs, n_threads=self._n_threads)
        return inputs.sequences.mirror(marginals)

    def predict_proba(
        self,
        X: Any,
        *,
        groups: Any = None,
        known: Any = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
    ) -> NDArray[np.float64]:
        """Return `predict_marginals` as one (N, K) array, whatever the format of X."""
        inputs = read_inputs(self, RawData(X, None, groups, parents, base_scores, X_base), known)
        return self._labeller.marginals(inputs, n_threads=self._n_threads)

    def predict_pattern_marginals(
        self,
        X: Any,
        *,
        groups: Any = None,
        known: Any = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
    ) -> Any:
        """Probability that each label pattern ends at each position, given the whole sequence.

        ``known`` holds labels that are known already, see `predict` for all arguments.

        Returns
        -------
        list of (T, P) arrays, or one (N, P) array for a flat X
            Columns in the order of ``label_patterns_``.
        """
        inputs = read_inputs(self, RawData(X, None, groups, parents, base_scores, X_base), known)
        marginals = self.model_.pattern_marginals(inputs, n_threads=self._n_threads)
        return inputs.sequences.mirror(marginals)

    def predict_k_best(
        self,
        X: Any,
        k: int,
        *,
        groups: Any = None,
        known: Any = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
    ) -> list[list[tuple[NDArray[Any], float]]]:
        """Find the k most probable labellings of each sequence.

        Besides the k labellings themselves, memory is proportional to the length of a sequence
        times the number of states: about one for each label and each prefix of a label pattern.

        Parameters
        ----------
        X, groups, known, parents, base_scores, X_base
            See `predict`.
        k
            Number of labellings per sequence.

        Returns
        -------
        list of lists of (labels, log-probability)
            For each sequence up to k different labellings, the most probable first; fewer if fewer
            exist.
        """
        check_number("k", k, minimum=1, integer=True)
        inputs = read_inputs(self, RawData(X, None, groups, parents, base_scores, X_base), known)
        return self.model_.k_best(inputs, int(k), n_threads=self._n_threads)

    def sample(
        self,
        X: Any,
        n: int = 1,
        *,
        random_state: Any = None,
        groups: Any = None,
        known: Any = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
    ) -> Any:
        """Sample labellings from their distribution given X.

        Parameters
        ----------
        X, groups, known, parents, base_scores, X_base
            See `predict`.
        n
            Number of labellings per sequence.
        random_state
            A seed, a ``numpy.random.RandomState``, or None for different labellings in every call.

        Returns
        -------
        list of (n, T) arrays, or one (n, N) array for a flat X
        """
        check_number("n", n, minimum=1, integer=True)
        inputs = read_inputs(self, RawData(X, None, groups, parents, base_scores, X_base), known)
        random = read_random_state(random_state)
        codes = self.model_.sample(inputs, int(n), random, n_threads=self._n_threads)
        drawn = inputs.sequences.mirror(self.model_.labels.decode(codes).T)
        return [labels.T for labels in drawn] if isinstance(drawn, list) else drawn.T

    def log_likelihood(
        self,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
    ) -> NDArray[np.float64]:
        """Log probability of the labels y of each sequence, (S,).

        If labels are missing, this is the log probability of the known labels: probabilities are
        summed over all values of the missing ones. Labels that violate a constraint have
        probability 0, so the result is -inf. Labels that did not occur in training give a warning,
        and are treated as missing.
        """
        inputs = read_inputs(self, RawData(X, None, groups, parents, base_scores, X_base))
        codes = compare_codes(self, y, inputs.sequences).known_codes
        return self.model_.log_likelihoods(inputs, codes, n_threads=self._n_threads)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: Any = None,
        decode: Decode | None = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
    ) -> float:
        """Accuracy: the share of the labelled positions that `predict` labels correctly.

        ``sample_weight`` contains one weight per sequence, or per row of a flat X; for the other
        arguments see `predict`. Labels that did not occur in training count as errors, and give a
        warning.
        """
        check_decode(decode)
        with scoring():
            inputs = read_inputs(self, RawData(X, None, groups, parents, base_scores, X_base))
        truth = compare_codes(self, y, inputs.sequences)
        codes, given = truth.codes, truth.given
        if not given.any():
            raise ValueError("every label of y is missing; score needs at least one")
        right = self._labeller.predict(inputs, decode, n_threads=self._n_threads) == codes
        weights = read_sample_weight(sample_weight, inputs.sequences)
        by_position = weights.of_positions(inputs.sequences)
        if by_position is None:
            return float(np.mean(right[given]))
        if not by_position[given].any():
            raise ValueError(
                "sample_weight is zero wherever there is a label; at least one must be positive"
            )
        return float(np.average(right[given], weights=by_position[given]))

    def explain(
        self,
        x: Any,
        position: int,
        label: Any = None,
        against: Any = None,
        *,
        known: Any = None,
        decode: Decode | None = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
    ) -> Explanation:
        """Explain why a position has its label rather than another one.

        The log-odds of the two labels are split exactly into a bias and the contributions of the
        features of the position and its window, of the transitions from and to the predicted labels
        of its neighbours, and of the uncertainty about these labels.

        Parameters
        ----------
        x
            One sequence, in the same format as in `fit`.
        position
            A position in the sequence, counted from 0.
        label
            The label to explain; None: the predicted one.
        against
            The label to compare it with; None: the most probable other one.
        known
            Labels of the sequence that are already known, with None where they are not.
        decode
            The decoder for the labels of the position and its neighbours, see `predict`.
        parents
            The parents of the positions of `x`, (T,), for a model that was fitted with parents.
            Neighbours are then the parent and the children.
        base_scores : (T, K), optional
            Base scores of the sequence, if the model was fitted with `base_scores`.
        X_base
            Features of the base model for the sequence, if it does not use the same features.

        Returns
        -------
        Explanation
            ``print(...)`` formats it as text.
        """
        check_decode(decode)
        raw = RawData(x, parents=parents, base_scores=base_scores, X_base=X_base)
        inputs = read_one(self, raw, known)
        length = inputs.sequences.n_positions
        is_number = isinstance(position, Integral) and not isinstance(position, bool)
        if not (is_number and 0 <= position < length):
            raise ValueError(
                f"position is {position!r}, but x has {count_of(length, 'position')}; expected an "
                f"integer from 0 to {length - 1}"
            )
        found = self.model_.explain(
            inputs, int(position), label, against, decode, n_threads=self._n_threads
        )
        return replace(found, output=self._output)

    @property
    def _labeller(self) -> Labeller:
        """What predicts labels and marginals: the model, or its counterpart on another device."""
        return self.model_

    @property
    def _n_threads(self) -> int:
        return count_threads(self.n_jobs)
