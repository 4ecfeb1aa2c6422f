"""The tasks of the paper: strings of letters, one label per position, and a window of letters.

Letters are missing before windows are made, so a missing letter is missing in all windows.
Positions beyond the ends of a string have a special symbol, which is never missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from labelwise_proteins import AMINO_ACIDS, N_FOLDS, read_proteins
from labelwise_training import join
from numpy.typing import NDArray
from tasks import read_table

MISSING = -1
LETTERS = "abcdefghijklmnopqrstuvwxyz"
N_WORDS = 1000

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Texts:
    """Letters of each string, as numbers from 0 or `MISSING`, and labels of its positions."""

    letters: list[Codes]
    labels: list[NDArray[Any]]

    def pick(self, numbers: NDArray[Any]) -> Texts:
        """Select strings, by number or by mask."""
        at = np.arange(len(self.letters))[numbers]
        return Texts([self.letters[i] for i in at], [self.labels[i] for i in at])

    def erase(self, rate: float, rng: np.random.Generator) -> Texts:
        """The same with letters missing at random."""
        erased = [np.where(rng.random(len(one)) < rate, MISSING, one) for one in self.letters]
        return replace(self, letters=erased)

    def fill(self, letter: int) -> Texts:
        """The same with missing letters replaced by one letter."""
        filled = [np.where(one == MISSING, letter, one) for one in self.letters]
        return replace(self, letters=filled)

    def commonest(self) -> int:
        """The most frequent of the letters that are known."""
        letters = join(self.letters)
        return int(np.bincount(letters[letters != MISSING]).argmax())

    def right(self, predicted: Sequence[Any]) -> NDArray[np.bool_]:
        """Whether each label was predicted, (N,) over all strings."""
        found: NDArray[np.bool_] = join(list(predicted)) == join(self.labels)
        return found


@dataclass(frozen=True, eq=False)
class Task:
    """What to learn.

    Attributes
    ----------
    train, test
        Strings and labels.
    alphabet
        A character for each letter.
    window
        Offsets of the letters in the window of position t; 0 is letter t.
    folds
        Fold of each training string, 0 to N_FOLDS - 1.
    """

    train: Texts
    test: Texts
    alphabet: str
    window: range
    folds: Codes

    def slots(self, texts: Texts) -> list[Codes]:
        """Letters in the window of each position, (n_places, n_slots); outside is the last code."""
        before, after = max(-self.window[0], 0), max(self.window[-1], 0)
        found = []
        for letters, labels in zip(texts.letters, texts.labels, strict=True):
            padded = np.pad(letters, (before, after), constant_values=len(self.alphabet))
            found.append(np.stack([padded[before + o :][: len(labels)] for o in self.window], 1))
        return found

    def indicators(self, texts: Texts) -> list[NDArray[np.float32]]:
        """Binary columns for each slot and letter, including outside; NaN where missing."""
        codes = np.arange(len(self.alphabet) + 1)
        found = []
        for slots in self.slots(texts):
            columns = (slots[:, :, None] == codes).astype(np.float32)
            columns[slots == MISSING] = np.nan
            found.append(columns.reshape(len(slots), -1))
        return found

    def categories(self, texts: Texts) -> list[Any]:
        """A table with a column of characters for each slot, "_" outside; null where missing."""
        import pyarrow

        symbols = np.array([*self.alphabet, "_", None], dtype=np.object_)
        slots = self.slots(texts)
        columns = symbols[np.concatenate(slots)].T
        table = pyarrow.table({f"slot{o:+d}": c for o, c in zip(self.window, columns, strict=True)})
        ends = np.cumsum([len(one) for one in slots]).tolist()
        return [table.slice(end - len(one), len(one)) for end, one in zip(ends, slots, strict=True)]


def encode(strings: Sequence[str], alphabet: str) -> list[Codes]:
    code_of = {letter: code for code, letter in enumerate(alphabet)}
    return [np.array([code_of[letter] for letter in string]) for string in strings]


def deal_folds(n_strings: int) -> Codes:
    """A fold for each string, at random."""
    return np.random.default_rng(0).permutation(n_strings) % N_FOLDS


def protein(folder: Path, draw: int) -> Task:
    """Three kinds of structure; related training proteins are in the same fold."""
    train, test = (read_proteins(folder, name) for name in ("train", "test"))
    parts = [Texts(encode(one.residues, AMINO_ACIDS), one.labels) for one in (train, test)]
    return Task(parts[0], parts[1], AMINO_ACIDS, range(-5, 6), train.folds())


def stress(folder: Path, draw: int) -> Task:
    """Five kinds of stress; words are drawn from the dictionary, as the paper's are not known."""
    table = read_table(folder / "nettalk" / "nettalk.tsv.gz")
    table = [row for row in table if len(row[0]) == len(row[1]) == len(row[2])]
    drawn = np.random.default_rng(draw).permutation(len(table))[: 2 * N_WORDS]
    rows = [table[i] for i in drawn]
    texts = Texts(
        encode([row[0] for row in rows], LETTERS), [np.array(list(row[2])) for row in rows]
    )
    train, test = texts.pick(np.arange(N_WORDS)), texts.pick(np.arange(N_WORDS, 2 * N_WORDS))
    return Task(train, test, LETTERS, range(-6, 7), deal_folds(N_WORDS))


def hyphenation(folder: Path, draw: int) -> Task:
    """Whether a word may be divided after each letter but the last; three letters on each side."""
    train, test = (read_words(folder / "treecrf_sparse", name) for name in ("train", "test"))
    return Task(train, test, LETTERS, range(-2, 4), deal_folds(len(train.letters)))


def read_words(folder: Path, name: str) -> Texts:
    """Words, from a row for each gap: its word, its number, 6, what six slots hold, its label."""
    table = read_table(folder / f"sparse.hyphen.6.{name}.gz")
    rows = np.array([row[0].split() for row in table[1:] if row[0]], np.int64)
    n_symbols = len(LETTERS) + 1
    bounds = np.flatnonzero(np.diff(rows[:, 0])) + 1
    words = np.split(rows[:, 3:-1] % n_symbols, bounds)
    # The third and the fourth slot hold the letters before and after the gap.
    letters = [np.append(word[:, 2], word[-1, 3]) for word in words]
    return Texts(letters, np.split(rows[:, -1], bounds))


TASKS: dict[str, Callable[[Path, int], Task]] = {
    "protein": protein,
    "stress": stress,
    "hyphenation": hyphenation,
}
QUICK_STRINGS = {"protein": 20, "stress": 100, "hyphenation": 100}


def read_task(name: str, folder: Path, *, draw: int = 0, quick: bool = False) -> Task:
    """A task by name; ``draw`` is the number of the draw where words are drawn at random."""
    task = TASKS[name](folder, draw)
    if quick:
        few = np.arange(min(QUICK_STRINGS[name], len(task.test.letters)))
        task = replace(
            task, train=task.train.pick(few), test=task.test.pick(few), folds=task.folds[few]
        )
    return task
