"""Results of training, bit for bit, to compare two versions of hedgerow.

Trains both estimators in many configurations on small data, and loads the model files that older
versions wrote; records losses, histories, weights, trees and predictions of all kinds. Only public
names are used, so that the same script runs with either version::

    PYTHONPATH=BEFORE/src python benchmarks/behaviour.py > before.json
    PYTHONPATH=AFTER/src python benchmarks/behaviour.py --compare before.json

The bits are those of one machine: records of two machines may differ.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "data"))

import common
import make_models
import numpy as np
from behaviour_data import Data
from behaviour_trainings import TRAININGS
from numpy.typing import NDArray

from hedgerow import DataWarning, LinearCRF, TreeCRF, load

Answers = dict[str, Any]
# Trains or loads a model with a number of threads; returns it, and data to predict.
Make = Callable[[int | None], tuple[Any, Data]]

EXPLAINED = ("label", "against", "prob", "log_odds", "bias", "before", "after")
MODELS = Path(make_models.__file__).parent
WORDS = Data(make_models.X, make_models.Y)
FILES = {
    "linear_crf_format_1": WORDS,
    "linear_crf_format_2": Data(make_models.X, make_models.CHUNKS),
    "linear_crf_format_3": WORDS,
    "linear_crf_format_4": Data(make_models.ITEMS, make_models.ITEM_LABELS),
    "tree_crf_format_2": Data(make_models.FRAMES, make_models.CHUNKS),
    "tree_crf_format_3": Data(make_models.FRAMES, make_models.Y),
    "tree_crf_format_4": Data(make_models.TABLE, np.concatenate(make_models.Y)),
}


def load_file(name: str, n_jobs: int | None) -> tuple[Any, Data]:
    model = load(MODELS / f"{name}.hedgerow")
    return model.set_params(n_jobs=n_jobs), FILES[name]


def configurations() -> dict[str, Make]:
    trainings: dict[str, Make] = {training.name: training.run for training in TRAININGS}
    assert len(trainings) == len(TRAININGS), "two configurations are the same"
    return trainings | {f"load {name}": partial(load_file, name) for name in FILES}


# Results of a model.


def learnt(crf: Any) -> Answers:
    """What a model has learned."""
    if hasattr(crf, "set_output"):  # which earlier versions do not have
        crf.set_output(transform="default")
    answers = {
        "history": crf.history_,
        "classes": crf.classes_,
        "decode": crf.decode_,
        "patterns": crf.patterns(),
        # Earlier versions call it transitions.
        "transitions": getattr(crf, "transition_weights", getattr(crf, "transitions", None))(),
    }
    if isinstance(crf, TreeCRF):
        return answers | {
            "best_round": crf.best_round_,
            "trees": crf.trees(),
            "importances": crf.importances(),
            "feature_importances": crf.feature_importances_,
        }
    assert isinstance(crf, LinearCRF)
    return answers | {
        "attributes": crf.attributes_,
        "n_weights": crf.n_weights_,
        "weights": crf.weights(),
    }


def predicted(crf: Any, data: Data) -> Answers:
    """The results of all prediction methods of a model."""
    X, ask = data.X, {"groups": data.groups}
    path = crf.predict(X, **ask, decode="viterbi")
    if isinstance(path, list):
        known: Any = [[*alternate(labels)] for labels in path]
    else:
        known = np.array([*alternate(path)], dtype=object)
    best = [pair for found in crf.predict_k_best(X, 3, **ask) for pair in found]
    drawn = crf.sample(X, 2, random_state=0, **ask)
    return {
        "marginals": crf.predict_proba(X, **ask),
        "viterbi": join(path),
        "marginal": join(crf.predict(X, **ask, decode="marginal")),
        "log_likelihoods": crf.log_likelihood(X, data.y, **ask),
        "reversed_log_likelihoods": crf.log_likelihood(X, backwards(data.y), **ask),
        "score": crf.score(X, data.y, **ask),
        "known_marginals": join(crf.predict_marginals(X, **ask, known=known)),
        "known_labels": join(crf.predict(X, **ask, known=known)),
        "pattern_marginals": join(crf.predict_pattern_marginals(X, **ask)),
        "k_best": {"labels": join([row for row, _ in best]), "log_probs": [p for _, p in best]},
        "sample": np.hstack(drawn) if isinstance(drawn, list) else drawn,
        "explanation": explained(crf, data),
    }


def explained(crf: Any, data: Data) -> Answers:
    """The explanation of the label of the first position of a sequence."""
    explanation = crf.explain(data.one(), 0)
    answers = {name: getattr(explanation, name) for name in EXPLAINED}
    return answers | {"features": explanation.features, "transitions": explanation.transitions}


def alternate(labels: Any) -> Iterator[Any]:
    """Every other label, with None in between."""
    return (None if n % 2 else label for n, label in enumerate(labels))


def backwards(y: Any) -> Any:
    """Labels in reverse order, which may violate constraints: by sequence, or of all rows."""
    return [labels[::-1] for labels in y] if isinstance(y, list) else y[::-1]


def join(parts: Any) -> NDArray[Any]:
    return np.concatenate(parts) if isinstance(parts, list) else parts


# A record: the bits of all numbers, and digests of everything else.


def flatten(answers: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values; entries of tables and similar objects have names with a dot."""
    for name, value in answers.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def keep(value: Any) -> common.Record:
    """A digest; for floating-point numbers also their bits."""
    array = np.asarray(value)
    if array.dtype.kind != "f" or array.dtype.itemsize != 8:
        text = json.dumps([str(array.dtype), array.tolist()], default=str)
        return {"sha256": hashlib.sha256(text.encode()).hexdigest()}
    bits = np.ascontiguousarray(array, "<f8").tobytes()
    return {
        "sha256": hashlib.sha256(repr(array.shape).encode() + bits).hexdigest(),
        "shape": array.shape,
        "bits": base64.b64encode(zlib.compress(bits)).decode(),
    }


def record_of(make: Make, n_jobs: int | None) -> common.Record:
    """Train or load, and predict; if a configuration fails, record its error."""
    try:
        crf, data = make(n_jobs)
        answers = {"loss": crf.loss_} | learnt(crf) | predicted(crf, data)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {
        "loss": crf.loss_,
        "loss_hex": float(crf.loss_).hex(),
        "steps": int(crf.n_rounds_ if isinstance(crf, TreeCRF) else crf.n_iter_),
        "answers": {name: keep(value) for name, value in flatten(answers)},
    }


# Two records.


def numbers_of(kept: common.Record) -> NDArray[np.float64]:
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(kept["bits"])), "<f8")
    return numbers.reshape(kept["shape"])


def relative_difference(before: common.Record, after: common.Record) -> float:
    """Largest difference divided by the largest number; infinite if it is not defined."""
    if "bits" not in before or "bits" not in after:
        return np.inf
    old, new = numbers_of(before), numbers_of(after)
    if old.shape != new.shape:
        return np.inf
    finite = np.isfinite(old)
    if not np.array_equal(old[~finite], new[~finite], equal_nan=True):
        return np.inf
    if not np.isfinite(new[finite]).all():
        return np.inf
    largest = np.abs(old[finite]).max(initial=np.finfo(np.float64).tiny)
    return float(np.abs(new[finite] - old[finite]).max(initial=0.0) / largest)


def differences(before: common.Record | None, after: common.Record | None) -> dict[str, float]:
    """The relative difference of each result of a configuration that has changed."""
    if before is None or after is None:
        return {"not in both records": np.inf}
    for record in (before, after):
        if "error" in record:
            return {record["error"]: np.inf}
    found = {} if before["steps"] == after["steps"] else {"steps": np.inf}
    old, new = before["answers"], after["answers"]
    for name in old | new:
        if name not in old or name not in new:
            found[name] = np.inf
        elif old[name]["sha256"] != new[name]["sha256"]:
            found[name] = relative_difference(old[name], new[name])
    return found


def compare(
    before: Mapping[str, common.Record], after: Mapping[str, common.Record], tolerance: float
) -> bool:
    """Print the differences; return whether any is larger than the tolerance.

    A tolerance of 0 compares bits: 0 and -0 differ.
    """
    n_same, n_beyond = 0, 0
    for name in before | after:
        found = differences(before.get(name), after.get(name))
        n_same += not found
        n_beyond += any(not tolerance or far > tolerance for far in found.values())
        told = [
            f"{answer} differs" if far == np.inf else f"{answer} {far:.1e}"
            for answer, far in found.items()
        ]
        print(f"{name}: {', '.join(told) or 'same bits'}")
    print(f"{len(before | after)} configurations: {n_same} same bits, {n_beyond} beyond tolerance")
    return n_beyond > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compare", type=Path, metavar="FILE", help="an earlier record")
    parser.add_argument("--tolerance", type=float, default=0.0, help="relative difference allowed")
    parser.add_argument("--only", default="", help="configurations whose names have this in them")
    parser.add_argument("--jobs", type=int, help="threads of all trainings; the table's otherwise")
    options = parser.parse_args()
    machine = common.machine_facts()
    # Some configurations predict their own training data on purpose.
    warnings.simplefilter("ignore", DataWarning)
    with common.Stopwatch() as watch:
        records = {
            name: record_of(make, options.jobs)
            for name, make in configurations().items()
            if options.only in name
        }
    errors = {name: record["error"] for name, record in records.items() if "error" in record}
    for name, error in errors.items():
        common.log(f"{name}: {error}")
    common.log(f"{len(records)} configurations, {watch.seconds:.1f} s")
    if options.compare:
        kept = json.loads(options.compare.read_text())["configurations"]
        before = {name: record for name, record in kept.items() if options.only in name}
        raise SystemExit(compare(before, records, options.tolerance))
    common.print_json({"configurations": records, "seconds": watch.seconds, "machine": machine})
    raise SystemExit(bool(errors))


if __name__ == "__main__":
    main()
