"""Experiments of Ye, Lee, Chieu and Wu (2009), "Conditional Random Fields with High-Order Features
for Sequence Labeling", with LinearCRF; and two more: chunking, and the cost of many patterns.

    high_order.py [synthetic|ocr|genres|chunking|cost|all] [--data DIR] [--plots DIR] [--jobs N]
                  [--only PART ...] [--quick]

An experiment has parts, each run in a fresh process so that its peak memory is its own. One JSON
document goes to stdout, progress to stderr, pictures to the folder of ``--plots``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common
import experiments

PAPER = "high_order"
EXPERIMENTS = ("synthetic", "ocr", "genres", "chunking", "cost")
NEED_DATA = ("genres", "chunking", "all")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", nargs="?", choices=(*EXPERIMENTS, "all"), default="all")
    parser.add_argument("--data", type=Path, help="holds conll2000/ and ud_english_ewt/")
    parser.add_argument("--only", nargs="+", metavar="PART", help="parts of one experiment")
    experiments.add_options(parser)
    options = parser.parse_args()
    if options.only and options.experiment == "all":
        parser.error("--only needs one experiment, as in: high_order.py genres --only 'order 2'")
    if options.data is None and options.experiment in NEED_DATA:
        parser.error("genres and chunking need --data DIR, with ud_english_ewt/ and conll2000/")
    return options


def run_experiment(name: str, options: argparse.Namespace) -> common.Record:
    module = experiments.load_experiment(PAPER, name)
    repeats = 1 if options.quick else module.REPEATS
    return experiments.run_experiment(PAPER, name, options.only or module.PARTS, repeats)


def main() -> None:
    options = read_options()
    if options.side:
        experiments.run_part(PAPER, options)
        return
    experiments.prepare_plots()
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
    experiments.draw_plots(PAPER, results, options.plots)


if __name__ == "__main__":
    main()
