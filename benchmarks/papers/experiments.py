"""Runs the experiments of a paper.

An experiment of a paper is a module ``PAPER_NAME`` with ``measure(part, options)``, which returns
the record of one part, ``summarise(runs)``, which combines the records of all parts, and optionally
``draw(summary)``, which draws a figure. Each part runs in a fresh process, so that its peak memory
is its own: the script starts itself again with ``--side NAME:PART``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import common

Result = TypeVar("Result")

NOT_SETTINGS = ("experiment", "data", "plots", "side", "folder", "finished")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options that all experiments have."""
    parser.add_argument("--plots", type=Path, default=Path("plots"), help="where pictures go")
    parser.add_argument(
        "--jobs", type=int, help="threads, or processes of many trainings; all cores unless given"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)


def run_trainings(
    train: Callable[..., Result], cases: Iterable[tuple[Any, ...]], jobs: int | None
) -> list[Result]:
    """Run many small training runs in parallel processes, each with one thread."""
    from joblib import Parallel, delayed

    found: list[Result] = Parallel(n_jobs=jobs or -1)(delayed(train)(*case) for case in cases)
    return found


def resume_trainings(
    train: Callable[..., Any],
    cases: dict[str, tuple[Any, ...]],
    jobs: int | None,
    file: Path | None,
) -> dict[str, Any]:
    """Results by case, as `run_trainings`, except that those in the file are not computed again.

    Each result is added to the file as soon as it is there, as a line of JSON, so that a run that
    was stopped can be continued; several runs at a time may share the file.
    """
    from joblib import Parallel, delayed

    found: dict[str, Any] = {}
    if file is not None and file.exists():
        found = dict(json.loads(line) for line in file.read_text().splitlines())
    left = {name: case for name, case in cases.items() if name not in found}
    parallel = Parallel(n_jobs=jobs or -1, return_as="generator_unordered")
    for name, result in parallel(delayed(run_named)(train, *pair) for pair in left.items()):
        found[name] = result
        if file is not None:
            with file.open("a") as lines:
                lines.write(json.dumps([name, result]) + "\n")
    return {name: found[name] for name in cases}


def run_named(train: Callable[..., Any], name: str, case: tuple[Any, ...]) -> tuple[str, Any]:
    return name, train(*case)


def load_experiment(paper: str, name: str) -> ModuleType:
    """Import an experiment by name, so that a process loads only what it needs."""
    return import_module(f"{paper}_{name}")


def run_part(paper: str, options: argparse.Namespace) -> None:
    """Run one part of an experiment in a fresh process, and write its record to the folder."""
    name, part = options.side.split(":")
    record = load_experiment(paper, name).measure(part, options)
    record["peak_memory_mib"] = common.peak_memory_mib()
    common.write_side(options.folder, record)


def run_experiment(paper: str, name: str, parts: Sequence[str], repeats: int) -> common.Record:
    """Run all parts, repeatedly, and summarise their records."""
    runs: dict[str, list[common.Record]] = {part: [] for part in parts}
    for _ in range(repeats):
        for part, records in runs.items():
            records.append(common.run_side(f"{name}:{part}"))
    summary: common.Record = load_experiment(paper, name).summarise(runs)
    summary["peak_memory_mib"] = {
        part: max(record["peak_memory_mib"] for record in records) for part, records in runs.items()
    }
    return summary


def prepare_plots() -> None:
    """Import matplotlib before the work, so that it fails early if it is missing."""
    import matplotlib

    matplotlib.use("Agg")


def draw_plots(paper: str, results: dict[str, common.Record], folder: Path) -> None:
    """Draw a figure for each experiment that has one."""
    for name, summary in results.items():
        module = load_experiment(paper, name)
        if hasattr(module, "draw"):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{paper}_{name}.png"
            module.draw(summary).savefig(path, dpi=150)
            common.log(f"drew {path}")


def read_options(paper: str, names: Sequence[str], description: str | None) -> argparse.Namespace:
    """A command for each experiment, with the options of its module."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="experiment", required=True)
    for name in names:
        command = commands.add_parser(name)
        if name in sys.argv[1:2]:
            module = load_experiment(paper, name)
            command.description = module.__doc__
            command.add_argument("--only", nargs="+", choices=module.PARTS, metavar="PART")
            add_options(command)
            module.add_options(command)
    return parser.parse_args()


def run_paper(paper: str, names: Sequence[str], title: str, description: str | None) -> None:
    """Run the experiment that the command line names."""
    options = read_options(paper, names, description)
    if options.side:
        run_part(paper, options)
        return
    prepare_plots()
    machine = common.machine_facts()
    name = options.experiment
    parts = options.only or load_experiment(paper, name).PARTS
    summary = run_experiment(paper, name, parts, vars(options).get("repeat", 1))
    common.print_json(
        {
            "paper": title,
            "experiment": name,
            "options": {k: v for k, v in vars(options).items() if k not in NOT_SETTINGS},
            **summary,
            "machine": machine,
        }
    )
    draw_plots(paper, {name: summary}, options.plots)
