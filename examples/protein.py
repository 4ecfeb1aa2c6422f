"""Predict the secondary structure of proteins: helix, strand or coil, residue by residue.

Without data it generates chains of residues, each of which prefers a structure, as in real proteins
but more strongly. With ``--data DIR`` it reads ``train.tsv`` and ``test.tsv`` (or ``.tsv.gz``): on
each line the residues of a protein and its structure, one letter each, with a tab between them.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np

from hedgerow import LinearCRF, TreeCRF

Proteins = tuple[list[list[str]], list[list[str]]]

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
FAVOURED = {"h": "AELMQKRH", "e": "VIYFWTC", "_": "GNPSD"}  # helix, strand, coil
MEAN_LENGTH = {"h": 11, "e": 6, "_": 7}


def make_proteins(n_proteins: int, rng: np.random.Generator) -> Proteins:
    """Runs of helix, strand and coil; there is always a coil between helices and strands."""
    X, y = [], []
    for _ in range(n_proteins):
        structure: list[str] = []
        while len(structure) < 150:
            for kind in ("_", rng.choice(["h", "e"])):
                structure += [kind] * (2 + rng.poisson(MEAN_LENGTH[kind] - 2))
        X.append([draw_residue(kind, t, rng) for t, kind in enumerate(structure)])
        y.append([str(kind) for kind in structure])
    return X, y


def draw_residue(kind: str, t: int, rng: np.random.Generator) -> str:
    """In half of the cases a residue that its structure favours; in strands only at even t."""
    if rng.random() < 0.5 and not (kind == "e" and t % 2):
        return str(rng.choice(list(FAVOURED[kind])))
    return str(rng.choice(list(RESIDUES)))


def read_proteins(path: Path) -> Proteins:
    if not path.exists():
        path = path.with_name(f"{path.name}.gz")
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        lines = [line.split() for line in file if line.strip()]
    return [list(residues) for residues, _ in lines], [list(labels) for _, labels in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", metavar="DIR", type=Path, help="read real proteins from here")
    arguments = parser.parse_args()
    if arguments.data is None:
        rng = np.random.default_rng(0)
        (X, y), (X_test, y_test) = make_proteins(80, rng), make_proteins(20, rng)
    else:
        X, y = read_proteins(arguments.data / "train.tsv")
        X_test, y_test = read_proteins(arguments.data / "test.tsv")
    n_residues = sum(map(len, y_test))
    print(f"{len(X)} proteins for training, {len(X_test)} ({n_residues:,} residues) for testing.\n")

    # A residue is a category; trees can split on five residues to either side.
    rows = [[[residue] for residue in protein] for protein in X]
    rows_test = [[[residue] for residue in protein] for protein in X_test]
    trees = TreeCRF(window=5, n_rounds=100, max_depth=4, learning_rate=0.2, subsample=0.5)
    trees.set_params(random_state=0).fit(rows, y)

    def neighbours(protein: list[str]) -> list[dict[str, str]]:
        """The window as attributes, for a linear model."""
        return [
            {str(d): protein[t + d] for d in range(-5, 6) if 0 <= t + d < len(protein)}
            for t in range(len(protein))
        ]

    linear = LinearCRF(reg_lambda=5.0, tol=1e-3).fit([neighbours(protein) for protein in X], y)

    truth = np.concatenate(y_test)
    print(f"{'correct residues (Q3)':<32}{'Viterbi':>10}{'marginal':>10}")
    inputs = {"TreeCRF": (trees, rows_test), "LinearCRF": (linear, [*map(neighbours, X_test)])}
    for name, (crf, given) in inputs.items():
        right = [
            np.mean(np.concatenate(crf.predict(given, decode=decode)) == truth)
            for decode in ("viterbi", "marginal")
        ]
        print(f"{name:<32}{right[0]:>10.1%}{right[1]:>10.1%}")

    shown = slice(0, 60)
    print("\nresidues ", "".join(X_test[0][shown]))
    print("true     ", "".join(y_test[0][shown]))
    print("predicted", "".join(trees.predict(rows_test[:1], decode="marginal")[0][shown]))


if __name__ == "__main__":
    main()
