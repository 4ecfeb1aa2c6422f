"""Experiments of Chen, Singh, Taskar and Guestrin (2015), "Efficient Second-Order Gradient Boosting
for Conditional Random Fields", with TreeCRF.

    gbcrf.py EXPERIMENT [--only PART ...] [--jobs N] [--quick] [...]

``gbcrf.py EXPERIMENT --help`` describes an experiment and its options. It has parts, each run in a
fresh process so that its peak memory is its own. One JSON document goes to stdout, progress to
stderr, pictures to the folder of ``--plots``.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import experiments

EXPERIMENTS = ("table2", "one_fold", "figure1", "jpred", "ner", "growth")

if __name__ == "__main__":
    title = "Chen, Singh, Taskar and Guestrin (2015), second-order boosting"
    experiments.run_paper("gbcrf", EXPERIMENTS, title, __doc__)
