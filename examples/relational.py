"""Relations between values: which commands of a shell session use the same file.

Every session has its own files, so file names are not informative: what matters is whether two
names are the same. Attributes such as ``ls=report.tex`` cannot express that; queries with a
variable, ``ls(X) & previous: cd(X)``, can. They are found by a search before training, or by trees
that extend shorter queries such as ``ls(X)``.
"""

from __future__ import annotations

import numpy as np

from hedgerow import LinearCRF, TreeCRF
from hedgerow.relational import Atoms, RelationalFeatures

COMMANDS = ("cd", "ls", "mv", "tex")


def draw_sessions(
    n_sessions: int, first: int, rng: np.random.Generator
) -> tuple[Atoms, list[list[str]]]:
    """Sessions of 15 commands, labelled by how far back the same file was used last."""
    sequences, labels = [], []
    for session in range(first, first + n_sessions):
        files: list[str] = []
        for number in range(15):
            before = int(rng.integers(0, 3))
            is_old = 0 < before <= len(files)
            files.append(files[-before] if is_old else f"file {number} of {session}")
        sequences.append([[(str(rng.choice(COMMANDS)), file)] for file in files])
        labels.append(
            [
                "1 before"
                if file in files[max(t - 1, 0) : t]
                else "2 before"
                if file in files[max(t - 2, 0) : t]
                else "other"
                for t, file in enumerate(files)
            ]
        )
    return Atoms(sequences), labels


def main() -> None:
    rng = np.random.default_rng(0)
    X, y = draw_sessions(60, 0, rng)
    X_test, y_test = draw_sessions(60, 1000, rng)
    labels, counts = np.unique(np.concatenate(y_test), return_counts=True)
    print(X)
    most = labels[counts.argmax()]
    print(
        f"{counts.max() / counts.sum():.1%} of the commands have the most frequent label, '{most}'"
    )

    flat = RelationalFeatures(window=2)  # constants only
    modes = [f"{command}(+t,+-file)" for command in COMMANDS]
    relational = RelationalFeatures(modes, window=2, min_count=5)
    for name, queries in (("constants", flat), ("variables", relational)):
        for crf in (LinearCRF(queries=queries), TreeCRF(n_rounds=20, n_jobs=1, queries=queries)):
            score = crf.fit(X, y).score(X_test, y_test)
            print(f"{type(crf).__name__}, queries with {name}: {score:.1%} of the labels correct")
    short = RelationalFeatures(
        modes, depth=1, window=2
    )  # one literal, which is not informative by itself
    for name, max_literals in (("alone", 1), ("that trees extend", 3)):
        crf = TreeCRF(n_rounds=20, n_jobs=1, queries=short, max_literals=max_literals).fit(X, y)
        score = crf.score(X_test, y_test)
        print(f"TreeCRF, queries of one literal {name}: {score:.1%} of the labels correct")

    print("\nThe most important queries:\n")
    table = crf.queries_.importances(crf)
    for words, importance in list(zip(table["words"], table["importance"], strict=True))[:6]:
        print(f"{importance:8.1f}  {words}")

    print("\nWhy does the fourth command of a new session have its label?\n")
    print(crf.explain(X_test[0], 3))


if __name__ == "__main__":
    main()
