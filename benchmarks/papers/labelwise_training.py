"""Shared by the experiments: names of objectives, both decoders, and generative estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from hedgerow import LinearCRF
    from hedgerow.decoding import Decode

# Objectives of the marginals come after the likelihood; the margin is for linear models only.
LABELWISE = ("pointwise", "expected_accuracy", "accuracy")
OBJECTIVES = ("likelihood", *LABELWISE)
DECODERS: tuple[Decode, ...] = ("marginal", "viterbi")

LEGENDS = {
    "generative": "generative",
    "likelihood": "likelihood",
    "max_margin": "maximum margin",
    "pointwise": "pointwise likelihood",
    "expected_accuracy": "expected accuracy",
    "accuracy": "labelwise accuracy",
}
COLOURS = dict(zip(LEGENDS, ("C7", "C0", "C4", "C2", "C1", "C3"), strict=True))
MARKERS = dict(zip(LEGENDS, "xosv^D", strict=True))


def default_decoder(objective: str) -> str:
    """The default decoder of a model that was trained for an objective."""
    return "marginal" if objective in LABELWISE else "viterbi"


def join(labels: Any) -> NDArray[Any]:
    """Labels of all positions in one array, from a list of sequences or a flat array."""
    return np.concatenate(labels) if isinstance(labels, list) else np.asarray(labels)


def accuracies(crf: Any, X: Any, y: Any, groups: Any = None) -> dict[str, float]:
    """Share of labels that are right, by decoder."""
    truth = join(y)
    return {
        decode: float(np.mean(join(crf.predict(X, groups=groups, decode=decode)) == truth))
        for decode in DECODERS
    }


def one_hot(codes: NDArray[Any], n_codes: int) -> sparse.csr_matrix:
    """One column per code, (N, n_codes), with a single 1 in each row."""
    n = len(codes)
    ones, rows = np.ones(n), np.arange(n + 1, dtype=np.int32)
    return sparse.csr_matrix((ones, codes.astype(np.int32), rows), shape=(n, n_codes))


def build_generative(
    codes: NDArray[Any], labels: NDArray[Any], starts: NDArray[Any], n_codes: int
) -> LinearCRF:
    """A hidden Markov model as a LinearCRF on ``one_hot`` columns; every count has 1 added.

    Its weights are log P(code | label) and log P(label | label before). ``codes`` (N,) and
    ``labels`` (N,) of all sequences in turn, which begin at the positions ``starts``.
    """
    classes, at = np.unique(labels, return_inverse=True)
    n_labels = len(classes)
    emitted = count_pairs(at, codes, n_labels, n_codes)
    inside = np.setdiff1d(np.arange(1, len(at)), starts)
    followed = count_pairs(at[inside - 1], at[inside], n_labels, n_labels)
    return fill_model(classes, log_shares(emitted), log_shares(followed))


def count_pairs(a: NDArray[Any], b: NDArray[Any], n_a: int, n_b: int) -> NDArray[np.float64]:
    """Number of times each pair of codes occurs, plus 1, (n_a, n_b)."""
    pairs = np.bincount(a.astype(np.int64) * n_b + b, minlength=n_a * n_b)
    return pairs.reshape(n_a, n_b).astype(np.float64) + 1.0


def log_shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of the shares of each row."""
    shares: NDArray[np.float64] = np.log(counts / counts.sum(axis=1, keepdims=True))
    return shares


def fill_model(
    classes: NDArray[Any], emissions: NDArray[np.float64], transitions: NDArray[np.float64]
) -> LinearCRF:
    """A model with given weights: of (label, code) and of (label before, label).

    It is fitted on a sequence that contains every code and label, so that all weights exist.
    """
    from hedgerow import LinearCRF

    n_labels, n_codes = emissions.shape
    n = max(n_labels, n_codes)
    X, y = one_hot(np.arange(n) % n_codes, n_codes), classes[np.arange(n) % n_labels]
    crf = LinearCRF(max_iter=1, tol=0, all_pairs=True).fit(X, y)
    weights = crf._weights
    # The attributes are the columns, in turn, and each has a weight for every label.
    weights.attributes[:] = emissions.T.ravel()
    weights.biases[:] = 0.0
    model = crf.model_
    model.pattern_weights[:] = [transitions[pair] for pair in model.grammar.patterns]
    return crf
