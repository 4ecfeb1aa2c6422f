"""Tasks: thirteen data sets of different kinds, each small enough to train on in seconds."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np
from numpy.typing import NDArray

from hedgerow.datasets import load_ocr

# Training sequences and labels, test sequences and labels, and how far a window reaches.
Task = tuple[list[Any], list[Any], list[Any], list[Any], int]


def letters(*, one_fold: bool) -> Task:
    X, y, fold = load_ocr()
    train = (fold == 0) == one_fold
    test = np.flatnonzero(~train)[:: 3 if one_fold else 1]
    return *pick(X, y, np.flatnonzero(train)), *pick(X, y, test), 0


def pick(X: Any, y: Any, numbers: NDArray[np.intp]) -> tuple[list[Any], list[Any]]:
    return [X[i] for i in numbers], [list(y[i]) for i in numbers]


def one_hot(texts: list[str]) -> list[NDArray[np.float64]]:
    alphabet = {letter: i for i, letter in enumerate(sorted(set("".join(texts))))}
    return [np.eye(len(alphabet))[[alphabet[letter] for letter in text]] for text in texts]


def read_table(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt", encoding="utf8") as lines:
        return [line.rstrip("\n").split("\t") for line in lines]


def nettalk(folder: Path, *, column: int, window: int) -> Task:
    """A thousand words to train on, eight thousand to test on."""
    table = read_table(folder / "nettalk" / "nettalk.tsv.gz")
    table = [row for row in table if len(row[0]) == len(row[1]) == len(row[2])]
    rows = [table[i] for i in np.random.default_rng(0).permutation(len(table))[:9000]]
    X, y = one_hot([row[0] for row in rows]), [list(row[column]) for row in rows]
    return X[:1000], y[:1000], X[1000:], y[1000:], window


def protein(folder: Path) -> Task:
    train, test = (read_table(folder / "protein_qs" / f"{n}.tsv.gz") for n in ("train", "test"))
    X, y = one_hot([row[0] for row in train + test]), [list(row[1]) for row in train + test]
    n = len(train)
    return X[:n], y[:n], X[n:], y[n:], 5


def structure(folder: Path, *, labels: str, blind_only: bool = True) -> Task:
    """Three hundred proteins of JPred4 to train on; its blind set, or all others, to test on."""
    with np.load(folder / "jpred4" / "jpred4.npz") as file:
        rows = np.hstack([file["pssm"].astype(np.float32), file["hmm_e5"] / np.float32(1e5)])
        bounds, codes, blind = file["offsets"][1:-1], file[labels], file["split"] == 1
    X, y = np.split(rows, bounds), np.split(codes, bounds)
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(~blind))
    test = np.concatenate([np.flatnonzero(blind), drawn[:0] if blind_only else drawn[300:]])
    return *pick(X, y, drawn[:300]), *pick(X, y, test), 5


def chunks(folder: Path, *, n_sentences: int | None = 1000) -> Task:
    """The first sentences of CoNLL-2000 to train on, and to test on; None: all of them."""
    parts = []
    for name in ("train", "test"):
        sentences = common.read_conll(folder / "conll2000" / f"{name}.txt.gz")[:n_sentences]
        X = [
            [{"w=" + w.lower(): 1, "p=" + tag: 1, "s=" + w[-3:]: 1} for w, tag, _ in sentence]
            for sentence in sentences
        ]
        parts += [X, [[label for _, _, label in sentence] for sentence in sentences]]
    return parts[0], parts[1], parts[2], parts[3], 2


def hyphenation(folder: Path) -> Task:
    """Where words may be divided, from binary features."""
    parts: list[Any] = []
    for path in ("train", "test"):
        (file,) = (folder / "treecrf_sparse").glob(f"*hyph*{path}*")
        rows = read_table(file)
        n_features = int(rows[0][0].split()[2])
        numbers = np.array([row[0].split() for row in rows[1:] if row[0]], np.int64)
        X = np.zeros((len(numbers), n_features))
        np.put_along_axis(X, numbers[:, 3:-1], 1, axis=1)
        bounds = np.flatnonzero(np.diff(numbers[:, 0])) + 1
        parts += [np.split(X, bounds), np.split(numbers[:, -1], bounds)]
    return parts[0], parts[1], parts[2], parts[3], 0


def entities(folder: Path) -> Task:
    """A thousand sentences of CoNLL-2003 to train on, as many of testb to test on."""
    parts = []
    for name in ("train", "testb"):
        sentences = common.read_conll(folder / "conll2003" / f"eng.{name}.gz")
        sentences = [s for s in sentences if s[0][0] != "-DOCSTART-"]
        sentences = [sentences[i] for i in np.random.default_rng(0).permutation(len(sentences))]
        kept = sentences[:1000]
        parts += [word_features([[(w, tag) for w, tag, *_ in s] for s in kept])]
        parts += [[[token[-1] for token in s] for s in kept]]
    return parts[0], parts[1], parts[2], parts[3], 2


def parts_of_speech(folder: Path) -> Task:
    """A thousand sentences of the English Web Treebank to train on, as many to test on."""
    parts = []
    for name in ("train", "test"):
        rows = read_table(folder / "ud_english_ewt" / f"en_ewt-ud-{name}.conllu.gz")
        sentences: list[list[list[str]]] = [[]]
        for row in rows:
            if row[0].isdigit():
                sentences[-1].append(row)
            elif row == [""] and sentences[-1]:
                sentences.append([])
        chosen = np.random.default_rng(0).permutation(len(sentences) - 1)[:1000]
        kept = [sentences[i] for i in chosen]
        parts += [word_features([[(row[1],) for row in s] for s in kept])]
        parts += [[[row[3] for row in s] for s in kept]]
    return parts[0], parts[1], parts[2], parts[3], 2


def word_features(sentences: list[list[tuple[str, ...]]]) -> list[Any]:
    """Words, suffixes, capitals, digits, and tags if there are any."""
    return [
        [
            {f"w={w.lower()}": 1, f"s={w[-3:]}": 1, f"s2={w[-2:]}": 1}
            | {"upper": int(w[0].isupper()), "digit": int(any(c.isdigit() for c in w))}
            | {f"p={tag}": 1 for tag in tags}
            for w, *tags in sentence
        ]
        for sentence in sentences
    ]


def gestures(folder: Path) -> Task:
    """Phases of gestures from sensors: five recordings of two people, two of a third to test on."""
    with np.load(folder / "gesture_phase" / "gesture_phase.npz") as file:
        rows, bounds, codes = file["vel"], file["offsets"][1:-1], file["y"]
    X, y = np.split(rows, bounds), np.split(codes, bounds)
    return *pick(X, y, np.arange(5)), *pick(X, y, np.arange(5, 7)), 3


def genes(folder: Path) -> Task:
    """Genes of bacteria: pieces of 2,000 bases, 20 of the first genome and 50 of the second."""
    parts: list[Any] = []
    for genome, n_pieces in ((0, 20), (1, 50)):
        bases, labels = read_genome(folder, genome)
        begins = np.linspace(0, len(bases) - 2000, n_pieces).astype(int)
        parts += [[np.eye(4)[bases[begin : begin + 2000]] for begin in begins]]
        parts += [[labels[begin : begin + 2000] for begin in begins]]
    return parts[0], parts[1], parts[2], parts[3], 10


def read_genome(folder: Path, genome: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Bases, 0 to 3, and labels of one genome."""
    with np.load(folder / "dna_genes" / "dna_genes.npz") as file:
        n, packed, offsets = int(file["n"]), file["seq_packed"], file["offsets"]
        labels = np.repeat(file["run_label"], np.diff(np.append(file["run_start"], n)))
    bases = np.stack([(packed >> shift) & 3 for shift in (0, 2, 4, 6)], axis=1).ravel()[:n]
    own = slice(offsets[genome], offsets[genome + 1])
    return bases[own], labels[own]


TASKS: dict[str, Callable[[Any], Task]] = {
    "letters": lambda folder: letters(one_fold=False),
    "letters, one fold": lambda folder: letters(one_fold=True),
    "phonemes": lambda folder: nettalk(folder, column=1, window=3),
    "stress": lambda folder: nettalk(folder, column=2, window=6),
    "hyphenation": hyphenation,
    "protein": protein,
    "structure, 3 states": lambda folder: structure(folder, labels="y3"),
    "structure, 8 states": lambda folder: structure(folder, labels="y8"),
    "chunks": chunks,
    "entities": entities,
    "parts of speech": parts_of_speech,
    "gestures": gestures,
    "genes": genes,
}


def known_only(y: list[Any], X_test: list[Any], y_test: list[Any]) -> tuple[list[Any], list[Any]]:
    """Test sequences all of whose labels occur in training."""
    known = set().union(*map(set, y))
    kept = [i for i, labels in enumerate(y_test) if known.issuperset(labels)]
    return [X_test[i] for i in kept], [y_test[i] for i in kept]


def spread_windows(X: list[Any], reach: int) -> list[Any]:
    """Add the columns of neighbours, for a linear model."""
    if reach == 0 or isinstance(X[0], list):
        return X
    padded = [np.pad(rows, ((reach, reach), (0, 0))) for rows in X]
    offsets = range(2 * reach + 1)
    return [
        np.hstack([wide[at : at + len(rows)] for at in offsets])
        for rows, wide in zip(X, padded, strict=True)
    ]
