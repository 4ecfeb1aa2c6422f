"""The command line on CoNLL-2000 with CRF++'s chunking template, and on a very large file.

It measures the time of start-up; the time of `train`, `tag` and `eval` with their defaults, imports
included; F1 of chunks; and for `tag` on a file made by repeating the test set, tokens per second
and peak memory. Each command runs in its own process.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common

HERE = Path(__file__).resolve().parent
# The template of CRF++'s example for this task.
TEMPLATE = """\
# Unigram
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]

U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]

U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]

# Bigram
B
"""
# Runs a command and leaves its peak memory in a file.
CHILD = """\
import sys
sys.path.insert(0, sys.argv[1])
import common
from hedgerow.cli import main
code = main(sys.argv[3:])
open(sys.argv[2], "w").write(str(common.peak_memory_mib()))
sys.exit(code)
"""


def run_command(folder: Path, *arguments: str | Path, output: int | None = None) -> common.Record:
    """Run a command; returns its wall-clock seconds and its peak memory."""
    common.log(f"hedgerow {' '.join(map(str, arguments))}")
    peak = folder / "peak"
    command = [sys.executable, "-c", CHILD, str(HERE), str(peak), *map(str, arguments)]
    with common.Stopwatch() as watch:
        subprocess.run(command, check=True, stdout=output or sys.stderr)
    return {"seconds": watch.seconds, "peak_mib": float(peak.read_text())}


def start_up(passes: int) -> common.Record:
    """Median seconds to start Python alone, the command line, and the library."""
    commands = {
        "python": ["-c", "pass"],
        "hedgerow --help": ["-m", "hedgerow", "--help"],
        "import hedgerow": ["-c", "import hedgerow"],
        "from hedgerow import TreeCRF": ["-c", "from hedgerow import TreeCRF"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(passes):
        for name, arguments in commands.items():
            with common.Stopwatch() as watch:
                subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(watch.seconds)
    return {name: statistics.median(values) for name, values in seconds.items()}


def chunking(data: Path, folder: Path) -> common.Record:
    """Train, tag and evaluate with the defaults."""
    train, test = data / "conll2000" / "train.txt.gz", data / "conll2000" / "test.txt.gz"
    template, model = folder / "template", folder / "chunks.hedgerow"
    template.write_text(TEMPLATE)
    record = {
        "train": run_command(folder, "train", train, "-m", model, "--template", template),
        "tag": run_command(folder, "tag", model, test, "-o", folder / "tagged.txt"),
    }
    scores = folder / "scores.json"
    with scores.open("w") as file:
        record["eval"] = run_command(folder, "eval", model, test, "--json", output=file.fileno())
    found = json.loads(scores.read_text())
    figures = {"f1": found["chunks"]["f1"], "accuracy": found["accuracy"]}
    return record | figures | {"model_bytes": model.stat().st_size}


def large_file(data: Path, folder: Path, megabytes: float) -> common.Record:
    """Tag a file made by repeating the test set."""
    test = gzip.decompress((data / "conll2000" / "test.txt.gz").read_bytes()).rstrip() + b"\n\n"
    n_copies = max(1, round(megabytes * 1e6 / len(test)))
    large = folder / "large.txt"
    with large.open("wb") as file:
        for _ in range(n_copies):
            file.write(test)
    n_tokens = n_copies * sum(bool(line.strip()) for line in test.split(b"\n"))
    record = run_command(
        folder, "tag", folder / "chunks.hedgerow", large, output=subprocess.DEVNULL
    )
    size = large.stat().st_size
    large.unlink()
    return {
        **record,
        "megabytes": size / 1e6,
        "tokens": n_tokens,
        "tokens_per_second": n_tokens / record["seconds"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds conll2000/")
    parser.add_argument("--megabytes", type=float, default=1000, help="size of the large file")
    parser.add_argument("--passes", type=int, default=9, help="starts of which the median is told")
    options = parser.parse_args()
    machine = common.machine_facts()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        document = {
            "start_up_seconds": start_up(options.passes),
            "chunking": chunking(options.data, folder),
            "large_file": large_file(options.data, folder, options.megabytes),
            "machine": machine,
        }
    common.print_json(document)


if __name__ == "__main__":
    main()
