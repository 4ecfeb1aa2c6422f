"""Damaged model files: how hedgerow and its peers react to the same damage.

Each library saves a small model; copies of the file are truncated, or have bytes changed, dropped,
inserted or swapped; a separate process loads each copy and predicts with it. An outcome is

- refused: an exception,
- same: it loads and predicts as before,
- other: it loads and predicts something else, and says nothing,
- crash: the process dies,
- hang: no answer within 20 seconds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

BENCHMARKS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent / "tests")]

import common  # noqa: E402

from reference.model_files import mutants  # noqa: E402

MODULES = {
    "hedgerow TreeCRF": "hedgerow.tree_crf",
    "hedgerow LinearCRF": "hedgerow.linear_crf",
    "CRFsuite": "pycrfsuite",
    "XGBoost": "xgboost",
    "LightGBM": "lightgbm",
}
SUFFIXES = dict.fromkeys(MODULES, "model") | {"XGBoost": "ubj", "LightGBM": "txt"}
OUTCOMES = ["refused", "same", "other", "crash"]
SECONDS = 20.0


def make_data() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Twenty short sequences of three numbers, with three labels."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(10, 3)) for _ in range(20)]
    return X, [np.digitize(x[:, 0], [-0.5, 0.5]) for x in X]


def to_items(X: list[np.ndarray]) -> list[list[dict[str, float]]]:
    return [[{f"x{i}": value for i, value in enumerate(row)} for row in x.tolist()] for x in X]


def save_model(library: str, path: Path) -> None:
    X, y = make_data()
    rows, labels = np.concatenate(X), np.concatenate(y)
    if library.startswith("hedgerow"):
        from hedgerow import LinearCRF, TreeCRF

        crf = TreeCRF(n_rounds=10) if "Tree" in library else LinearCRF()
        crf.fit(X, y).save(path)
    elif library == "CRFsuite":
        import pycrfsuite

        trainer = pycrfsuite.Trainer(verbose=False)
        for items, codes in zip(to_items(X), y, strict=True):
            trainer.append(items, [str(code) for code in codes])
        trainer.train(str(path))
    elif library == "XGBoost":
        import xgboost

        data = xgboost.DMatrix(rows, labels)
        xgboost.train({"objective": "multi:softprob", "num_class": 3}, data, 10).save_model(path)
    else:
        import lightgbm

        settings = {"objective": "multiclass", "num_class": 3, "verbose": -1}
        lightgbm.train(settings, lightgbm.Dataset(rows, labels), 10).save_model(path)


def predict(library: str, path: Path) -> Any:
    X, _ = make_data()
    rows = np.concatenate(X)
    if library.startswith("hedgerow"):
        import hedgerow

        return [marginals.tolist() for marginals in hedgerow.load(path).predict_marginals(X)]
    if library == "CRFsuite":
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open(str(path))
        return [
            [tagger.tag(items), [tagger.marginal(label, 0) for label in sorted(tagger.labels())]]
            for items in to_items(X)
        ]
    if library == "XGBoost":
        import xgboost

        booster = xgboost.Booster()
        booster.load_model(path)
        return booster.predict(xgboost.DMatrix(rows)).tolist()
    import lightgbm

    return lightgbm.Booster(model_file=str(path)).predict(rows).tolist()


def damaged(data: bytes, n_each: int) -> Iterator[tuple[str, bytes]]:
    """Truncated files, and the same number of files with other damage."""
    for length in np.linspace(0, len(data) - 1, n_each).astype(int):
        yield "truncated", data[:length]
    for mutant in mutants(data, n_each):
        yield "changed", mutant


def judge(library: str, path: Path, expected: Any) -> str:
    """The outcome of one file, determined in a child process, which may crash."""
    child = os.fork()
    if child == 0:
        try:
            same = predict(library, path) == expected
            os._exit(OUTCOMES.index("same" if same else "other"))
        except BaseException:
            os._exit(OUTCOMES.index("refused"))
        finally:
            os._exit(OUTCOMES.index("crash"))
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return OUTCOMES[code] if 0 <= code < len(OUTCOMES) else "crash"
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hang"


def predict_in_child(library: str, path: Path) -> Any:
    """Predictions with the intact file, in a child, so that no OpenMP threads exist at a fork."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(
        target=lambda: writer.send(predict(library, path))
    )
    child.start()
    expected = reader.recv()
    child.join()
    return expected


def measure(library: str, n_each: int) -> dict[str, dict[str, int]]:
    """Outcomes by kind of damage."""
    outcomes: dict[str, Counter[str]] = {"truncated": Counter(), "changed": Counter()}
    importlib.import_module(MODULES[library])
    with tempfile.TemporaryDirectory() as name:
        path, copy = Path(name, f"model.{SUFFIXES[library]}"), Path(name, f"c.{SUFFIXES[library]}")
        saving = multiprocessing.get_context("fork").Process(
            target=save_model, args=(library, path)
        )
        saving.start()
        saving.join()
        expected = predict_in_child(library, path)
        for damage, data in damaged(path.read_bytes(), n_each):
            copy.write_bytes(data)
            outcomes[damage][judge(library, copy, expected)] += 1
    return {damage: dict(counts) for damage, counts in outcomes.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="files of each kind of damage")
    parser.add_argument("--libraries", nargs="+", choices=MODULES, default=list(MODULES))
    parser.add_argument("--alone", choices=MODULES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        sys.stdout.write(f"\n{json.dumps(measure(options.alone, options.count))}\n")
        return
    record: common.Record = {"machine": common.machine_facts(), "count": options.count}
    for library in options.libraries:
        common.log(library)
        command = [sys.executable, __file__, "--alone", library, "--count", str(options.count)]
        # Discard the output of the libraries.
        found = subprocess.run(command, check=True, capture_output=True).stdout
        record[library] = json.loads(found.splitlines()[-1])
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
