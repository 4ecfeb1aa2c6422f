"""Proteins of Qian and Sejnowski: three kinds of structure, and families of related proteins."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
WINDOW = 5
# Proteins that share this many residues in a row are related.
SHARED = 6
N_FOLDS = 5

# The best settings of order 1 for the likelihood in `labelwise.py protein_choice`.
CHOSEN: dict[str, Any] = {
    "n_rounds": 300,
    "learning_rate": 0.1,
    "max_depth": 4,
    "subsample": 0.5,
    "colsample_bynode": 0.3,
}


@dataclass(frozen=True, eq=False)
class Proteins:
    """Residues as letters, and labels h (helix), e (sheet) and _ (neither), of each protein."""

    residues: list[str]
    labels: list[NDArray[Any]]

    def columns(self, encoding: str) -> list[Any]:
        """The amino acids as one column of categories, or as twenty columns of 0 and 1."""
        if encoding == "one_hot":
            letters = np.array(list(AMINO_ACIDS))
            return [
                (np.array(list(one))[:, None] == letters).astype(np.float32)
                for one in self.residues
            ]
        import pandas as pd  # type: ignore[import-untyped]

        letters = pd.CategoricalDtype(list(AMINO_ACIDS))
        return [
            pd.DataFrame({"residue": pd.Series(list(one), dtype=letters)}) for one in self.residues
        ]

    def families(self) -> NDArray[np.int64]:
        """Number of the family of each protein (connected components of related proteins)."""
        from scipy.sparse.csgraph import connected_components

        words = [
            {one[at : at + SHARED] for at in range(len(one) - SHARED + 1)} for one in self.residues
        ]
        related = np.array([[bool(a & b) for a in words] for b in words])
        found: NDArray[np.int64] = connected_components(related)[1].astype(np.int64)
        return found

    def folds(self) -> NDArray[np.int64]:
        """Fold of each protein: families stay together, and the largest are assigned first."""
        family = self.families()
        sizes = np.bincount(family, weights=[len(one) for one in self.residues])
        fold_of_family, filled = np.zeros(len(sizes), np.int64), np.zeros(N_FOLDS)
        for one in np.argsort(-sizes, kind="stable"):
            fold_of_family[one] = filled.argmin()
            filled[fold_of_family[one]] += sizes[one]
        return fold_of_family[family]


def read_proteins(folder: Path, name: str) -> Proteins:
    """``name`` is train or test."""
    with gzip.open(folder / "protein_qs" / f"{name}.tsv.gz", "rt") as lines:
        pairs = [line.rstrip("\n").split("\t") for line in lines]
    return Proteins([one for one, _ in pairs], [np.array(list(labels)) for _, labels in pairs])
