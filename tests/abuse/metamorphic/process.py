"""The process of a training run: its hash seed, its BLAS threads, how it was started."""

import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import joblib
import numpy as np
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from abuse.kind import Case, Kind
from abuse.metamorphic.answers import file_of
from abuse.training import Training
from abuse.trainings import trainings
from hedgerow import TreeCRF

__all__ = ["KINDS", "digests"]

# Environments of a separate process.
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "hash seed 0": {"PYTHONHASHSEED": "0"},
    "hash seed 1": {"PYTHONHASHSEED": "1"},
    "another hash seed": {"PYTHONHASHSEED": "4294967295"},
    "one thread of BLAS": {"OPENBLAS_NUM_THREADS": "1"},
    "two threads of BLAS": {"OPENBLAS_NUM_THREADS": "2"},
    "three threads of BLAS": {"OPENBLAS_NUM_THREADS": "3", "OMP_NUM_THREADS": "3"},
}
METHODS = multiprocessing.get_all_start_methods()  # Windows has but one
STARTS = [way for way in ("fork", "spawn", "forkserver") if way in METHODS] + ["loky"]
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


@st.composite
def batches(draw: st.DrawFn) -> Case:
    """Several training runs at once, since starting a process takes longer than training."""
    return {
        # First without a new process: this is the part that the test suite runs.
        "way": draw(st.sampled_from(["limits", *ENVIRONMENTS, *STARTS])),
        "trainings": draw(st.lists(trainings(based=True), min_size=1, max_size=10)),
        "many labels": draw(st.booleans()),
    }


def fit(case: Case) -> bytes:
    """A model file; items and parameters are sets, whose order depends on the hash seed."""
    training = Training.of(case)
    named = training.label_parameters().items()
    changes = {name: set(value) for name, value in named if isinstance(value, list)}
    if case["data"]["form"] == "items":
        rng = np.random.default_rng(case["data"]["seed"])
        for x in training.X:
            for number, row in enumerate(x):
                words = set(rng.choice(WORDS, rng.integers(0, 6), replace=False).tolist())
                x[number] = row | {"words": words}
    elif case["data"]["form"] == "facts":
        for x in training.X:
            x[:] = map(set, x)
    return file_of(training.fit(**changes))


def fit_many_labels(seed: int) -> bytes:
    """A model file with so many label pairs that BLAS would use several threads for their sums."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(20, 2)) for _ in range(12)]
    y = [rng.integers(0, 125, len(x)) for x in X]
    crf = TreeCRF(n_rounds=2, transition_step="exact", max_depth=1, n_jobs=1)
    return file_of(crf.fit([*X, np.zeros((125, 2))], [*y, np.arange(125)]))


def digests(case: Case) -> list[str]:
    """Digests of model files."""
    files = [fit(one) for one in case["trainings"]]
    if case["many labels"]:
        files.append(fit_many_labels(case["trainings"][0]["data"]["seed"]))
    return [hashlib.sha256(file).hexdigest() for file in files]


def check_process(case: Case) -> None:
    """Any process writes the same model files, to the last byte."""
    way, expected = case["way"], digests(case)
    if way == "limits":
        with threadpool_limits(1):
            found = digests(case)
    elif way in ENVIRONMENTS:
        found = in_environment(case, ENVIRONMENTS[way])
    elif way == "loky":
        (found,) = joblib.Parallel(n_jobs=2)([joblib.delayed(digests)(case)])
    else:
        found = started_by(way, case)
    assert found == expected


def started_by(way: str, case: Case) -> list[str]:
    """Digests from a process that multiprocessing has started."""
    with ProcessPoolExecutor(1, multiprocessing.get_context(way)) as pool:
        return pool.submit(digests, case).result()


def in_environment(case: Case, environment: dict[str, str]) -> list[str]:
    """Digests from a separate process."""
    code = "import json, sys; from abuse.metamorphic.process import digests; "
    code += "print(json.dumps(digests(json.load(sys.stdin))))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(case),
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


KINDS = [Kind("metamorphic-process", batches(), check_process, in_suite=1, share=2.0)]
