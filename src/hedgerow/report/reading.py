"""Readings: the predictions of a model for some data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.decoding import Decode
from hedgerow.estimator import Estimator
from hedgerow.fitted import compare_codes
from hedgerow.model import Inputs
from hedgerow.report.calibration import Calibration
from hedgerow.sequences import Sequences, cut_runs
from hedgerow.threads import count_threads

# Number of positions whose marginals are in memory at a time.
BATCH = 1 << 16
OTHER: dict[Decode, Decode] = {"viterbi": "marginal", "marginal": "viterbi"}
# Number of labels that are kept for each position, the most probable ones.
N_TOP = 4


@dataclass(frozen=True, eq=False)
class Reading:
    """Labels of N positions of S sequences, and their probabilities.

    Attributes
    ----------
    sequences : Sequences
        X, as the model reads it.
    labels : list of str
        The K classes of the model, followed by labels of y that the model does not know.
    truth : (N,) int32 or None
        Code of the label of each position, -1 where it is not known; None without y.
    decode : {"viterbi", "marginal"}
        The decoder.
    predicted, otherwise : (N,) int32
        Labels predicted by this decoder, and by the other one.
    predicted_probs : (N,) float32
        Marginal of the label predicted by this decoder.
    top_labels, top_probs : (N, M) int32, (N, M) float32
        The most probable labels and their marginals, largest first.
    truth_probs : (N,) float32 or None
        Marginal of the true label, NaN where it is not known.
    scores : (S,) float32
        Quality per position: the log-likelihood of the known labels; without y, the mean log
        marginal of the predicted labels.
    calibration : Calibration or None
        Calibration of the marginals; None without y.
    """

    sequences: Sequences
    labels: list[str]
    truth: NDArray[np.int32] | None
    decode: Decode
    predicted: NDArray[np.int32]
    otherwise: NDArray[np.int32]
    predicted_probs: NDArray[np.float32]
    top_labels: NDArray[np.int32]
    top_probs: NDArray[np.float32]
    truth_probs: NDArray[np.float32] | None
    scores: NDArray[np.float32]
    calibration: Calibration | None

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which positions have a label that is known, (N,)."""
        if self.truth is None:
            return np.zeros(len(self.predicted), np.bool_)
        return self.truth >= 0

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which positions are labelled incorrectly, (N,)."""
        wrong: NDArray[np.bool_] = self.known & (self.predicted != self.truth)
        return wrong

    def log_odds(self, position: int, label: int, against: int) -> float:
        """Log-ratio of two marginals; a label must be predicted, true or in `top_labels`."""
        log_prob, log_prob_against = (
            np.log(self._find_prob(position, code)) for code in (label, against)
        )
        return float(log_prob - log_prob_against)

    def _find_prob(self, position: int, code: int) -> float:
        if self.predicted[position] == code:
            return float(self.predicted_probs[position])
        at = np.flatnonzero(self.top_labels[position] == code)
        if len(at):
            return float(self.top_probs[position, at[0]])
        assert self.truth_probs is not None
        return float(self.truth_probs[position])

    def by_sequence(self, flags: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Number of flagged positions in each sequence, (S,)."""
        return sum_parts(flags.astype(np.int64), self.sequences.offsets)


def sum_parts(values: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[Any]:
    """Sums over the positions of each sequence, (S,)."""
    return np.diff(np.concatenate([[0], np.cumsum(values)])[offsets])


def read_data(model: Estimator, sequences: Sequences, y: Any, decode: Decode) -> Reading:
    """Label sequences, as the model reads them, and compare with y if it is not None."""
    labels = [str(label) for label in model.classes_.tolist()]
    truth = None if y is None else _read_truth(model, y, sequences, labels)
    calibration = Calibration.empty(len(model.classes_))
    parts, begin = [], 0
    for first, stop in cut_runs(sequences.offsets, BATCH):
        part = sequences.part(first, stop)
        end = begin + part.n_positions
        known = None if truth is None else truth[begin:end]
        parts.append(_read_part(model, part, known, decode))
        if truth is not None:
            calibration.add(parts[-1]["marginals"], truth[begin:end])
        del parts[-1]["marginals"]
        begin = end
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Reading(
        sequences,
        labels,
        truth,
        decode,
        arrays["predicted"],
        arrays["otherwise"],
        arrays["predicted_probs"],
        arrays["top_labels"],
        arrays["top_probs"],
        arrays.get("truth_probs"),
        arrays["scores"],
        None if truth is None else calibration,
    )


def _read_truth(
    model: Estimator, y: Any, sequences: Sequences, labels: list[str]
) -> NDArray[np.int32]:
    """Code of each label; labels that the model does not know come after its own."""
    truth = compare_codes(model, y, sequences)
    labels += [str(label) for label in truth.strange.tolist()]
    return truth.codes


def _read_part(
    model: Estimator, part: Sequences, truth: NDArray[np.int32] | None, decode: Decode
) -> dict[str, NDArray[Any]]:
    inputs, n_threads = Inputs(part), count_threads(model.n_jobs)
    predicted, otherwise = (
        model.model_.predict(inputs, one, n_threads=n_threads) for one in (decode, OTHER[decode])
    )
    marginals = model.model_.marginals(inputs, n_threads=n_threads)
    n_labels, every = marginals.shape[1], np.arange(len(predicted))
    n_top = min(N_TOP, n_labels)
    top_labels = np.argsort(-marginals, axis=1, kind="stable")[:, :n_top].astype(np.int32)
    found: dict[str, NDArray[Any]] = {
        "predicted": predicted,
        "otherwise": otherwise,
        "predicted_probs": marginals[every, predicted].astype(np.float32),
        "top_labels": top_labels,
        "top_probs": np.take_along_axis(marginals, top_labels, axis=1).astype(np.float32),
        "marginals": marginals,
    }
    if truth is None:
        log_probs = np.log(np.maximum(marginals[every, predicted], np.finfo(np.float64).tiny))
        sums, counts = sum_parts(log_probs, part.offsets), part.lengths
    else:
        # A label that the model does not know has probability 0, and does not inform the others.
        known = np.where(truth < n_labels, truth, -1).astype(np.int32)
        truth_probs = np.where(known >= 0, marginals[every, np.maximum(known, 0)], 0.0)
        truth_probs[truth < 0] = np.nan
        found["truth_probs"] = truth_probs.astype(np.float32)
        sums = model.model_.log_likelihoods(inputs, known, n_threads=n_threads)
        counts = sum_parts((known >= 0).astype(np.int64), part.offsets)
    found["scores"] = (sums / np.maximum(counts, 1)).astype(np.float32)
    return found
