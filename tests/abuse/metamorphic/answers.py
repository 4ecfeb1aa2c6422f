"""Answers: all predictions of a model for sequences, and its file, to compare bit for bit."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from abuse.training import Training
from hedgerow import LinearCRF, TreeCRF

__all__ = ["Answers", "answers", "assert_same_answers", "draw_uniforms", "file_of"]

K_BEST = 3
# Predictions by method; one array per sequence.
Answers = dict[str, list[list[np.ndarray]]]


class FixedUniforms(np.random.RandomState):
    """Random numbers that were drawn before: (n, N) for n labellings of N positions.

    So a position gets the same numbers in any batch.
    """

    def __init__(self, uniforms: np.ndarray) -> None:
        super().__init__(0)
        self._uniforms = uniforms
        self._begin = 0

    def random_sample(self, size: tuple[int, int]) -> np.ndarray:
        begin, self._begin = self._begin, self._begin + size[1]
        return np.ascontiguousarray(self._uniforms[:, begin : self._begin])


def draw_uniforms(training: Training) -> list[np.ndarray]:
    """Random numbers (2, T) for two labellings of each sequence."""
    rng = np.random.default_rng(0)
    return [rng.random((2, length)) for length in training.case["data"]["lengths"]]


def answers(
    crf: LinearCRF | TreeCRF, training: Training, uniforms: list[np.ndarray] | None = None
) -> Answers:
    """All predictions, by sequence, for any format of X."""
    uniforms = draw_uniforms(training) if uniforms is None else uniforms
    X, y, asked = training.X, training.y, training.ask_parameters
    ends = np.cumsum(training.case["data"]["lengths"])[:-1]
    best = crf.predict_k_best(X, K_BEST, **asked)
    flat: dict[str, Any] = {
        "viterbi": crf.predict(X, decode="viterbi", **asked),
        "marginal": crf.predict(X, decode="marginal", **asked),
        "marginals": crf.predict_marginals(X, **asked),
        "patterns": crf.predict_pattern_marginals(X, **asked),
        "log-likelihood": list(crf.log_likelihood(X, y, **asked)),
    }
    drawn = crf.sample(X, 2, random_state=FixedUniforms(np.hstack(uniforms)), **asked)
    if not isinstance(drawn, list):
        drawn = np.split(drawn, ends, axis=1)
    found = {
        name: parts if isinstance(parts, list) else np.split(parts, ends)
        for name, parts in flat.items()
    }
    return {name: [[np.asarray(part)] for part in parts] for name, parts in found.items()} | {
        "sample": [[part] for part in drawn],
        "k best": [
            [np.array([labels for labels, _ in part]), np.array([score for _, score in part])]
            for part in best
        ],
    }


def assert_same_answers(found: Answers, expected: Answers) -> None:
    """Bit for bit."""
    for name, parts in expected.items():
        assert len(found[name]) == len(parts), name
        for number, (ours, theirs) in enumerate(zip(found[name], parts, strict=True)):
            for one, two in zip(ours, theirs, strict=True):
                message = f"{name} of sequence {number}"
                np.testing.assert_array_equal(one, two, err_msg=message)
                if one.dtype.kind == "f":
                    assert one.tobytes() == two.tobytes(), f"{message}: a zero has another sign"


def file_of(crf: LinearCRF | TreeCRF, **changes: Any) -> bytes:
    """The bytes of its model file, after changing some parameters that are stored there."""
    kept = crf.get_params(deep=False)
    with tempfile.TemporaryDirectory() as folder:
        crf.set_params(**{"n_jobs": 1, "verbose": 0} | changes)
        crf.save(Path(folder, "model"))
        crf.set_params(**kept)
        return Path(folder, "model").read_bytes()
