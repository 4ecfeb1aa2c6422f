"""Answers: all predictions of a model as bytes, to compare bit for bit."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from abuse.training import Training

__all__ = ["ASK", "answer", "model_bytes"]


def model_bytes(model: Any) -> bytes:
    """Its model file: equal models give equal files."""
    with tempfile.TemporaryDirectory(prefix="abuse-") as folder:
        path = Path(folder, "model")
        model.save(path)
        return path.read_bytes()


def _explain(model: Any, training: Training) -> Any:
    x, _ = training.sequences()[0]
    try:
        return str(model.explain(x, 0))
    except ValueError as error:  # there may be no other label to compare it with
        return str(error)


ASK: dict[str, Callable[[Any, Training], Any]] = {
    "predict": lambda model, training: model.predict(training.X, **training.ask_parameters),
    "marginals": lambda model, training: model.predict_marginals(
        training.X, **training.ask_parameters
    ),
    "k_best": lambda model, training: model.predict_k_best(
        training.X, 2, **training.ask_parameters
    ),
    "sample": lambda model, training: model.sample(
        training.X, random_state=0, **training.ask_parameters
    ),
    "explain": _explain,
}


def answer(name: str, model: Any, training: Training) -> bytes:
    """All predictions of a model as one value."""
    return repr(_plain(ASK[name](model, training))).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
