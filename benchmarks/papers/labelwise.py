"""Experiments of Gross, Russakovsky, Do and Batzoglou (2006), "Training Conditional Random Fields
for Maximum Labelwise Accuracy", with LinearCRF and TreeCRF.

    labelwise.py EXPERIMENT [--only PART ...] [--jobs N] [--quick] [...]

``labelwise.py EXPERIMENT --help`` describes an experiment and its options. It has parts, each run
in a fresh process so that its peak memory is its own. One JSON document goes to stdout, progress to
stderr, pictures to the folder of ``--plots``.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import experiments

EXPERIMENTS = ("hmm", "synthetic", "genes", "protein", "protein_choice", "ocr", "time")

if __name__ == "__main__":
    title = "Gross, Russakovsky, Do and Batzoglou (2006), labelwise accuracy"
    experiments.run_paper("labelwise", EXPERIMENTS, title, __doc__)
