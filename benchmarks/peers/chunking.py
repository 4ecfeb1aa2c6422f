"""CoNLL-2000 chunking with CRF++'s template: LinearCRF against CRFsuite, one model, one loss.

Both sides get the same Python lists of attribute strings, or in ``crfsuite_dicts`` and
``hedgerow_dicts`` the same dicts from attribute strings to 1, and run the same number of L-BFGS
iterations. Training is timed from the lists or dicts to the trained model, and tagging uses the
same format.

With ``--wapiti PATH``, Wapiti's program, two more sides have a weight for every attribute and
label: Wapiti, and ``LinearCRF(all_pairs=True)``. Both read the same file with the same template,
from which training is timed to the model file. Wapiti's penalty is ``rho2 / 2 * |w|^2``, so that
``--rho2 2`` is ``reg_lambda=2``, and CRFsuite's ``c2=1``. An iteration of Wapiti also counts the
errors on the training set, which cannot be turned off.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common

# Offsets of the tokens joined into one attribute, as in CRF++'s example template.
WORD_WINDOWS = ((-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1))
POS_WINDOWS = (
    *((-2,), (-1,), (0,), (1,), (2,)),
    *((-2, -1), (-1, 0), (0, 1), (1, 2)),
    *((-2, -1, 0), (-1, 0, 1), (0, 1, 2)),
)
DICTS = "_dicts"
PEER_SIDES = (*common.SIDES, *(side + DICTS for side in common.SIDES))
WAPITI_SIDES = ("wapiti", "hedgerow_all_pairs")
PENALTY = 2.0
RATIOS = (
    "train_seconds",
    "train_cpu_seconds",
    "tag_seconds",
    "peak_mib_after_training",
    "training_mib",
)
WAPITI_RATIOS = (
    "train_seconds",
    "train_cpu_seconds",
    "seconds_per_iteration",
    "cpu_seconds_per_iteration",
    "peak_mib_after_training",
)


def window_attributes(
    tokens: list[str], name: str, windows: tuple[tuple[int, ...], ...]
) -> list[list[str]]:
    """Attributes of each position, such as ``w[-1,0]=the|man``."""
    padded = ["_B-2", "_B-1", *tokens, "_B+1", "_B+2"]
    named = [(f"{name}[{','.join(map(str, window))}]=", window) for window in windows]
    return [
        [prefix + "|".join([padded[at + offset] for offset in window]) for prefix, window in named]
        for at in range(2, len(tokens) + 2)
    ]


def read_sequences(path: Path) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Attribute strings and chunk labels, a list for each sentence."""
    X, y = [], []
    for sentence in common.read_conll(path):
        words, tags, labels = (list(column) for column in zip(*sentence, strict=True))
        of_words = window_attributes(words, "w", WORD_WINDOWS)
        of_tags = window_attributes(tags, "p", POS_WINDOWS)
        X.append([one + other for one, other in zip(of_words, of_tags, strict=True)])
        y.append(labels)
    return X, y


def to_dicts(X: list[list[list[str]]]) -> list[list[dict[str, int]]]:
    """The same attributes as dicts, as in sklearn-crfsuite, each with the value 1."""
    return [[dict.fromkeys(names, 1) for names in sequence] for sequence in X]


def write_template(path: Path) -> None:
    """The same windows in the language of CRF++, which Wapiti reads too."""
    windows = [(0, window) for window in WORD_WINDOWS] + [(1, window) for window in POS_WINDOWS]
    lines = [
        f"U{number:02}:" + "/".join(f"%x[{offset},{column}]" for offset in window)
        for number, (column, window) in enumerate(windows)
    ]
    path.write_text("\n".join([*lines, "B", ""]))


def iteration_record(marks: Sequence[tuple[float, float]]) -> common.Record:
    """Means over all iterations but the first, from clock and processor time after each."""
    (clock, cpu), (last_clock, last_cpu), n = marks[0], marks[-1], max(1, len(marks) - 1)
    return {
        "iterations": len(marks),
        "seconds_per_iteration": (last_clock - clock) / n,
        "cpu_seconds_per_iteration": (last_cpu - cpu) / n,
    }


def cpu_seconds_of(process: int) -> float:
    """Processor time of a process so far, all threads together (Linux)."""
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / 100


def wapiti_record(options: argparse.Namespace, folder: Path) -> common.Record:
    """From the file to the model file, by Wapiti's own program."""
    for name in ("train", "test"):
        with gzip.open(folder / f"{name}.txt.gz") as source:
            (options.folder / name).write_bytes(source.read())
    write_template(options.folder / "template")
    program = str(options.wapiti.resolve())
    train = [program, "train", "--algo", "l-bfgs", "--pattern", "template"]
    # A threshold of 0 never holds: none of its stopping rules ends the run early.
    train += ["--rho1", "0", "--rho2", str(PENALTY), "--stopeps", "0"]
    train += ["--nthread", str(options.jobs or 2), "--maxiter", str(options.iterations)]
    marks, n_weights = [], 0
    with (
        common.Stopwatch() as watch,
        subprocess.Popen(
            [*train, "train", "model"], cwd=options.folder, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stderr is not None
        for line in process.stderr:
            if " obj=" in line:
                marks.append((time.perf_counter(), cpu_seconds_of(process.pid)))
            elif "nb features:" in line:
                n_weights = int(line.split()[-1])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, "label", "-m", "model", "test", "out"], cwd=options.folder, check=True)
    with gzip.open(options.folder / "out.gz", "wb") as packed:
        packed.write((options.folder / "out").read_bytes())
    tagged = common.read_conll(options.folder / "out.gz")
    return {
        "train_seconds": watch.seconds,
        "train_cpu_seconds": used.ru_utime + used.ru_stime,
        **iteration_record(marks),
        "n_weights": n_weights,
        "peak_mib_after_training": used.ru_maxrss / 1024,
        "predicted": [[token[-1] for token in sentence] for sentence in tagged],
    }


def all_pairs_record(options: argparse.Namespace, folder: Path) -> common.Record:
    """From the same file to a model file, as ``hedgerow train`` does it."""
    from hedgerow import LinearCRF
    from hedgerow.files import make_recipe, read_file

    template, marks = options.folder / "template", []
    write_template(template)
    recipe = make_recipe(str(folder / "train.txt.gz"), template=str(template))
    crf = LinearCRF(
        all_pairs=True,
        reg_lambda=PENALTY,
        max_iter=options.iterations,
        tol=0,
        n_jobs=options.jobs,
        callbacks=[lambda step: marks.append((time.perf_counter(), time.process_time()))],
    )
    with common.Stopwatch() as watch:
        train = read_file(str(folder / "train.txt.gz"), recipe)
        crf.fit(train.X, train.y)
        crf.save(options.folder / "model")
    peak = common.peak_memory_mib()
    test = read_file(str(folder / "test.txt.gz"), recipe)
    return {
        "train_seconds": watch.seconds,
        "train_cpu_seconds": watch.cpu_seconds,
        **iteration_record(marks),
        "loss": float(crf.loss_),
        "n_weights": int(crf.n_weights_),
        "peak_mib_after_training": peak,
        **common.tag_record(crf.predict, test.X),
    }


def side_record(options: argparse.Namespace, folder: Path) -> common.Record:
    if options.side == "wapiti":
        return wapiti_record(options, folder)
    if options.side == "hedgerow_all_pairs":
        return all_pairs_record(options, folder)
    is_dicts = options.side.endswith(DICTS)

    def read(name: str) -> tuple[list[Any], list[list[str]]]:
        X, y = read_sequences(folder / f"{name}.txt.gz")
        return (to_dicts(X) if is_dicts else X), y

    X, y = read("train")
    before = common.peak_memory_mib()
    common.log("input built, training")
    if options.side.removesuffix(DICTS) == "crfsuite":
        trained, tag = common.train_crfsuite(X, y, options.iterations, options.folder)
    else:
        trained, tag = common.train_hedgerow(X, y, options.iterations, options.jobs)
    after = common.peak_memory_mib()
    tagged = common.tag_record(tag, read("test")[0])
    memory = {
        "peak_mib_before_training": before,
        "peak_mib_after_training": after,
        "training_mib": after - before,
        "peak_mib_at_end": common.peak_memory_mib(),
    }
    return {**trained, **tagged, **memory}


def main() -> None:
    parser = common.side_parser(__doc__, PEER_SIDES + WAPITI_SIDES)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds conll2000/")
    parser.add_argument("--wapiti", type=Path, help="Wapiti's program: compare all pairs with it")
    options = parser.parse_args()
    folder = options.data / "conll2000"
    if options.side:
        common.write_side(options.folder, side_record(options, folder))
        return
    machine = common.machine_facts()

    def score(record: common.Record) -> common.Record:
        from hedgerow.metrics import chunk_scores

        truth = [[token[-1] for token in s] for s in common.read_conll(folder / "test.txt.gz")]
        return {"f1": float(chunk_scores(truth, record["predicted"]).f1)}

    names = PEER_SIDES + WAPITI_SIDES if options.wapiti else PEER_SIDES
    sides = common.run_sides(options, score, names)

    def ratios(peer: str, side: str, names: Sequence[str]) -> common.Record:
        pair = {"peer": sides.get(peer), "hedgerow": sides.get(side)}
        found = {name: record for name, record in pair.items() if record is not None}
        return common.ratios(found, names, "peer")

    common.print_json(
        {
            "task": "conll2000 chunking",
            "iterations": options.iterations,
            "jobs": options.jobs,
            "repeat": options.repeat,
            **sides,
            "crfsuite_over_hedgerow": ratios("crfsuite", "hedgerow", RATIOS),
            "crfsuite_over_hedgerow_dicts": ratios("crfsuite_dicts", "hedgerow_dicts", RATIOS),
            "wapiti_over_hedgerow_all_pairs": ratios(*WAPITI_SIDES, WAPITI_RATIOS),
            "machine": machine,
        }
    )


if __name__ == "__main__":
    main()
