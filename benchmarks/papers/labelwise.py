"""Experiments of Gross, Russakovsky, Do and Batzoglou (2006), "Training Conditional Random Fields
for Maximum Labelwise Accuracy", with LinearCRF and TreeCRF.

    labelwise.py EXPERIMENT [--only PART ...] [--jobs N] [--quick] [...]

Each experiment says with ``labelwise.py EXPERIMENT --help`` what it does and which options it has.
It has parts, each run in a fresh process so that its peak memory is its own. One JSON document goes
to stdout, progress to stderr, pictures to the folder of ``--plots``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common
import experiments

PAPER = "labelwise"
EXPERIMENTS = ("synthetic", "genes", "protein", "protein_choice", "ocr", "time")
NOT_SETTINGS = ("experiment", "data", "plots", "side", "folder")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="experiment", required=True)
    for name in EXPERIMENTS:
        command = commands.add_parser(name)
        if name in sys.argv[1:2]:
            module = experiments.load_experiment(PAPER, name)
            command.description = module.__doc__
            command.add_argument("--only", nargs="+", choices=module.PARTS, metavar="PART")
            experiments.add_options(command)
            module.add_options(command)
    return parser.parse_args()


def main() -> None:
    options = read_options()
    if options.side:
        experiments.run_part(PAPER, options)
        return
    experiments.prepare_plots()
    machine = common.machine_facts()
    name = options.experiment
    parts = options.only or experiments.load_experiment(PAPER, name).PARTS
    summary = experiments.run_experiment(PAPER, name, parts, vars(options).get("repeat", 1))
    common.print_json(
        {
            "paper": "Gross, Russakovsky, Do and Batzoglou (2006), labelwise accuracy",
            "experiment": name,
            "options": {k: v for k, v in vars(options).items() if k not in NOT_SETTINGS},
            **summary,
            "machine": machine,
        }
    )
    experiments.draw_plots(PAPER, {name: summary}, options.plots)


if __name__ == "__main__":
    main()
