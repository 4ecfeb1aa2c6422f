"""Experiments of Dietterich, Hao and Ashenfelter (2008), "Gradient Tree Boosting for Training
Conditional Random Fields", with TreeCRF and LinearCRF.

    treecrf.py EXPERIMENT --data DIR [--only PART ...] [--jobs N] [--quick] [...]

``treecrf.py EXPERIMENT --help`` describes an experiment and its options. It has parts, each run in
a fresh process. One JSON document goes to stdout, progress to stderr, pictures to the folder of
``--plots``.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import experiments

EXPERIMENTS = ("tables", "time", "missing")

if __name__ == "__main__":
    title = "Dietterich, Hao and Ashenfelter (2008), gradient tree boosting"
    experiments.run_paper("treecrf", EXPERIMENTS, title, __doc__)
