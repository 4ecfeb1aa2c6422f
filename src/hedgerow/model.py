"""What every fitted CRF can do: all the ways from potentials to an answer."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from hedgerow import persist, trellis
from hedgerow.labels import Labels, read_labels
from hedgerow.sequences import Sequences
from hedgerow.trellis import Potentials
from hedgerow.weighting import read_sample_weight

Decode = Literal["viterbi", "marginal"]


class SequenceModel(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: prediction from the potentials that a subclass computes."""

    n_jobs: int | None
    classes_: NDArray[Any]

    @abstractmethod
    def _read(self, X: Any, groups: Any) -> Sequences:
        """Encode X and check it against what the model was fitted on."""

    @abstractmethod
    def _potentials(self, sequences: Sequences) -> Iterator[Potentials]:
        """Scores of all sequences, in one or more runs of consecutive ones."""

    @abstractmethod
    def _to_state(self) -> persist.State:
        """Everything that a model file has to hold."""

    @classmethod
    @abstractmethod
    def _from_state(cls, state: persist.State) -> SequenceModel:
        """Rebuild a fitted model; raises `hedgerow.ModelFileError`."""

    def predict(self, X: Any, *, groups: Any = None, decode: Decode = "viterbi") -> Any:
        """Label every position.

        Parameters
        ----------
        X
            Sequences, in the form used to fit.
        groups
            For a flat X, the sequence of each row.
        decode
            "viterbi" gives the most probable labelling of each sequence as a whole, "marginal"
            the most probable label of each position, which makes the fewest errors on average.

        Returns
        -------
        list of arrays, or one array for a flat X
            Labels of the kind used to fit.
        """
        if decode not in ("viterbi", "marginal"):
            raise ValueError(f"decode is {decode!r}; expected 'viterbi' or 'marginal'")
        sequences = self._read_fitted(X, groups)
        return sequences.mirror(self._labels().decode(self._decode(sequences, decode)))

    def predict_marginals(self, X: Any, *, groups: Any = None) -> Any:
        """Probability of each label at each position, given the whole sequence.

        Returns
        -------
        list of (T, K) arrays, or one (N, K) array for a flat X
            Columns in the order of ``classes_``.
        """
        sequences = self._read_fitted(X, groups)
        return sequences.mirror(self._marginals(sequences))

    def predict_proba(self, X: Any, *, groups: Any = None) -> NDArray[np.float64]:
        """Return the same as one (N, K) array, whatever the form of X."""
        return self._marginals(self._read_fitted(X, groups))

    def log_likelihood(self, X: Any, y: Any, *, groups: Any = None) -> NDArray[np.float64]:
        """Log probability of the labels y of each sequence, (S,)."""
        sequences = self._read_fitted(X, groups)
        codes = self._read_codes(y, sequences)
        parts, begin = [], 0
        for part in self._potentials(sequences):
            end = begin + len(part.nodes)
            parts.append(
                trellis.log_likelihood(
                    part.nodes,
                    part.arcs,
                    part.offsets,
                    codes[begin:end],
                    edges=part.edges,
                    n_jobs=self.n_jobs,
                )
            )
            begin = end
        return np.concatenate(parts)

    def score(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, groups: Any = None
    ) -> float:
        """Share of positions that `predict` labels right.

        ``sample_weight`` has a weight for each sequence.
        """
        sequences = self._read_fitted(X, groups)
        right = self._decode(sequences, "viterbi") == self._read_codes(y, sequences)
        weights = read_sample_weight(sample_weight, sequences)
        if weights is None:
            return float(np.mean(right))
        return float(np.average(right, weights=np.repeat(weights, sequences.lengths)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which `hedgerow.load` reads.

        The file is written beside its place and moved there when it is whole.
        """
        self._check_fitted()
        persist.write(Path(path), type(self).__name__, self._to_state())

    def _decode(self, sequences: Sequences, decode: Decode) -> NDArray[np.int32]:
        if decode == "marginal":
            best: NDArray[np.int32] = self._marginals(sequences).argmax(axis=1).astype(np.int32)
            return best
        parts = [
            trellis.viterbi(
                part.nodes, part.arcs, part.offsets, edges=part.edges, n_jobs=self.n_jobs
            )
            for part in self._potentials(sequences)
        ]
        return np.concatenate(parts)

    def _marginals(self, sequences: Sequences) -> NDArray[np.float64]:
        parts = [
            trellis.forward_backward(
                part.nodes,
                part.arcs,
                part.offsets,
                edges=part.edges,
                pairs=None,
                n_jobs=self.n_jobs,
            ).marginals
            for part in self._potentials(sequences)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _labels(self) -> Labels:
        return Labels(self.classes_)

    def _read_codes(self, y: Any, sequences: Sequences) -> NDArray[np.int32]:
        return self._labels().encode(read_labels(y, sequences), sequences)

    def _read_fitted(self, X: Any, groups: Any) -> Sequences:
        self._check_fitted()
        return self._read(X, groups)

    def _check_fitted(self) -> None:
        if not hasattr(self, "classes_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit before using it"
            )
