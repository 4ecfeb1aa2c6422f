"""Experiments of Gutmann and Kersting, "Stratified Gradient Boosting for Fast Training of
Conditional Random Fields", with TreeCRF.

    stratified.py EXPERIMENT [--only PART ...] [--jobs N] [--quick] [...]

``stratified.py EXPERIMENT --help`` describes an experiment and its options. It has parts, each run
in a fresh process so that its peak memory is its own. One JSON document goes to stdout, progress to
stderr, pictures to the folder of ``--plots``.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import experiments

EXPERIMENTS = ("curves",)

if __name__ == "__main__":
    title = "Gutmann and Kersting, stratified gradient boosting"
    experiments.run_paper("stratified", EXPERIMENTS, title, __doc__)
