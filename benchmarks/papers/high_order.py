"""Experiments of Ye, Lee, Chieu and Wu (2009), "Conditional Random Fields with High-Order Features
for Sequence Labeling", with LinearCRF; and two more: chunking, and the cost of many patterns.

    high_order.py [synthetic|ocr|chunking|cost|all] [--data DIR] [--plots DIR] [--jobs N] [--quick]

An experiment has parts, each run in a fresh process so that its peak memory is its own. One JSON
document goes to stdout, progress to stderr, pictures to the folder of ``--plots``.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common

EXPERIMENTS = ("synthetic", "ocr", "chunking", "cost")
PLOTTED = ("synthetic", "ocr", "cost")


def load_experiment(name: str) -> ModuleType:
    """Imported by name, so that a process holds nothing but what its own experiment needs."""
    return import_module(f"high_order_{name}")


def run_part(options: argparse.Namespace) -> None:
    """What a fresh process does: one part of one experiment, its record left in the folder."""
    name, part = options.side.split(":")
    record = load_experiment(name).measure(part, options)
    record["peak_memory_mib"] = common.peak_memory_mib()
    common.write_side(options.folder, record)


def run_experiment(name: str, options: argparse.Namespace) -> common.Record:
    """Run all parts, in turn and as often as the experiment asks, and sum up their records."""
    module = load_experiment(name)
    runs: dict[str, list[common.Record]] = {part: [] for part in module.PARTS}
    for _ in range(1 if options.quick else module.REPEATS):
        for part, records in runs.items():
            records.append(common.run_side(f"{name}:{part}"))
    summary: common.Record = module.summarise(runs)
    summary["peak_memory_mib"] = {
        part: max(record["peak_memory_mib"] for record in records) for part, records in runs.items()
    }
    return summary


def draw_plots(results: dict[str, common.Record], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in PLOTTED:
        if name in results:
            path = folder / f"high_order_{name}.png"
            figure = load_experiment(name).draw(results[name])
            figure.savefig(path, dpi=150)
            common.log(f"drew {path}")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", nargs="?", choices=(*EXPERIMENTS, "all"), default="all")
    parser.add_argument("--data", type=Path, help="folder that holds conll2000/, for chunking")
    parser.add_argument("--plots", type=Path, default=Path("plots"), help="where pictures go")
    parser.add_argument("--jobs", type=int, help="threads; all cores unless given (cost: always 1)")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.data is None and options.experiment in ("chunking", "all"):
        parser.error("chunking needs --data DIR, a folder that holds conll2000/train.txt.gz")
    return options


def main() -> None:
    options = read_options()
    if options.side:
        run_part(options)
        return
    import matplotlib  # here, so that its absence shows before the work and not after

    matplotlib.use("Agg")
    machine = common.machine_facts()
    names = EXPERIMENTS if options.experiment == "all" else (options.experiment,)
    results = {name: run_experiment(name, options) for name in names}
    common.print_json(
        {
            "paper": "Ye, Lee, Chieu and Wu (2009), high-order features",
            "quick": options.quick,
            "jobs": options.jobs,
            **results,
            "machine": machine,
        }
    )
    draw_plots(results, options.plots)


if __name__ == "__main__":
    main()
