"""Atoms: sequences whose positions are sets of facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hedgerow.counting import count_of
from hedgerow.encode.forms import as_frame
from hedgerow.relational.database import Database
from hedgerow.relational.fact_reader import FactReader, Place, to_list
from hedgerow.relational.fact_tables import read_tables

__all__ = ["AtomSequence", "Atoms"]

EXPECTED = "Atoms, or a list of sequences whose positions are sets or lists of atoms"


class AtomSequence:
    """One sequence of `Atoms`, for lists of sequences such as cross-validation folds."""

    how_to_encode = (
        "which holds facts, but the model was not fitted on facts; turn them into attributes "
        "with the RelationalFeatures that the model was trained with, or fit the model on Atoms"
    )

    def __init__(self, atoms: Atoms, number: int) -> None:
        self.atoms = atoms
        self.number = number

    def __len__(self) -> int:
        offsets = self.atoms.database.offsets
        return int(offsets[self.number + 1] - offsets[self.number])

    def __repr__(self) -> str:
        return f"sequence {self.number} of {self.atoms!r}"


class Atoms(Sequence[AtomSequence]):
    """Sequences whose positions are sets of facts, with background knowledge.

    A fact is an atom: a predicate and its arguments, ``("ls", "report.tex")``. A fact at a position
    T is about that position, and T counts as its first argument: ``ls(T, report.tex)``. The modes
    of `RelationalFeatures`, which say how predicates may be used in queries, include this argument,
    ``ls(+t,-file)``; the names of queries leave it out, ``ls(X)``.

    Parameters
    ----------
    sequences : list of lists
        For each position a list or a set of atoms: tuples of a predicate (a string) and its
        arguments (strings or numbers). ``At(2)`` as an argument is a position of the same sequence,
        so that ``("head", At(2))`` is a link.
    background : list of atoms
        Facts without a position that hold in all sequences: ``("ext", "report.tex", "tex")``.
    per_sequence : list of lists of atoms, optional
        Facts that hold in one sequence only, one list per sequence. They may name positions too:
        ``("near", At(0), At(3))``.

    Notes
    -----
    Constants are compared as text: 3, 3.0 and "3" are the same. A fact that occurs
    twice counts once.

    Examples
    --------
    >>> from hedgerow.relational import Atoms
    >>> X = Atoms(
    ...     [[{("cd", "thesis")}, {("ls", "thesis")}], [{("ls", "music")}]],
    ...     background=[("owner", "thesis", "ann"), ("owner", "music", "bob")],
    ... )
    >>> X
    Atoms: 2 sequences, 3 positions, 5 facts: cd/2, ls/2, owner/2
    """

    database: Database

    def __init__(
        self,
        sequences: Iterable[Any],
        *,
        background: Iterable[Any] = (),
        per_sequence: Iterable[Any] | None = None,
    ) -> None:
        self.database = _read_atoms(sequences, background, per_sequence)

    @classmethod
    def from_database(cls, database: Database) -> Atoms:
        """Wrap facts that are already arrays."""
        atoms = cls.__new__(cls)
        atoms.database = database
        return atoms

    @classmethod
    def from_tables(
        cls,
        events: Any,
        tables: Mapping[str, Any] | None = None,
        *,
        sequence: str | None = None,
        key: str | None = None,
        references: Iterable[str] = (),
    ) -> Atoms:
        """Read a table of events, one row per position, and tables of facts about them.

        Parameters
        ----------
        events : DataFrame
            One row per position, in order; the rows of a sequence must be consecutive. Every
            column except `sequence` and `key` is a predicate: the value 3 of column ``size`` is the
            fact ``size(T, 3)``.
        tables : dict of DataFrames, optional
            Facts by predicate, one per row; the columns are the arguments, in order.
        sequence : str, optional
            The column of events with the sequence ids; without it, all rows are one sequence. In
            other tables, a column of this name gives the sequence in which a fact holds, and is
            not an argument.
        key : str, optional
            The column of events with their keys, which must be unique within a sequence. In other
            tables, values of a column of this name refer to positions.
        references : list of str
            Further columns, of any table, whose values are keys of events: links between
            positions. If a key occurs in several sequences, other tables that contain it need the
            column `sequence` too.

        Notes
        -----
        Missing values of `events` are skipped, except in the columns `sequence` and `key`, where
        they raise an error. Rows of `tables` are skipped if they have a missing value, or are about
        sequences or keys that do not occur in `events`. Tables may be pandas or polars frames, or
        Arrow tables.

        Examples
        --------
        >>> import pandas as pd
        >>> from hedgerow.relational import Atoms
        >>> events = pd.DataFrame({"day": [1, 1, 2], "ls": ["a.tex", "b.mp3", "a.tex"]})
        >>> files = pd.DataFrame({"file": ["a.tex", "b.mp3"], "ending": ["tex", "mp3"]})
        >>> Atoms.from_tables(events, {"ext": files}, sequence="day")
        Atoms: 2 sequences, 3 positions, 5 facts: ls/2, ext/2
        """
        return cls.from_database(
            read_tables(events, {} if tables is None else tables, sequence, key, references)
        )

    @staticmethod
    def are_in(X: Any) -> bool:
        """Whether X is Atoms, or a list of their sequences."""
        return isinstance(X, Atoms) or (
            isinstance(X, list | tuple) and bool(X) and isinstance(X[0], AtomSequence)
        )

    @classmethod
    def of(cls, X: Any) -> Atoms:
        """Convert X to Atoms, unless it is Atoms already.

        X may be a list of sequences taken from Atoms, or a list of sequences as the constructor
        accepts it, without background.
        """
        if isinstance(X, Atoms):
            return X
        if as_frame(X, "X") is not None:
            raise TypeError(
                "X is a DataFrame; expected Atoms: Atoms.from_tables(X, sequence=...) makes facts "
                "of its columns"
            )
        sequences = to_list(X, "X", EXPECTED)
        if not any(isinstance(each, AtomSequence) for each in sequences):
            return cls(sequences)
        ours = [each for each in sequences if isinstance(each, AtomSequence)]
        whole = ours[0].atoms
        if len(ours) < len(sequences) or any(each.atoms is not whole for each in ours):
            raise ValueError(
                "X mixes sequences of several Atoms, whose backgrounds may differ; make one Atoms "
                "of all sequences"
            )
        return whole[np.array([each.number for each in ours], np.int64)]

    def cut(self, column: Any) -> list[NDArray[Any]]:
        """Split a column with one value per position, such as the labels, into sequences.

        Examples
        --------
        >>> [part.tolist() for part in Atoms([[[], []], [[]]]).cut(["a", "b", "c"])]
        [['a', 'b'], ['c']]
        """
        parts = to_list(column, "column", "a list with one value for every position")
        values = np.fromiter(parts, np.object_, len(parts))
        n_positions = self.database.n_positions
        if len(values) != n_positions:
            raise ValueError(
                f"the column has {count_of(len(values), 'value')}, but the sequences have "
                f"{count_of(n_positions, 'position')}; pass one value for every position"
            )
        return np.split(values, self.database.offsets[1:-1])

    def __len__(self) -> int:
        return self.database.n_sequences

    @overload
    def __getitem__(self, which: int) -> AtomSequence: ...
    @overload
    def __getitem__(self, which: slice | NDArray[Any]) -> Atoms: ...
    def __getitem__(self, which: Any) -> AtomSequence | Atoms:
        """One sequence, by number; or Atoms of those that a slice or an array selects."""
        if isinstance(which, slice | np.ndarray | list):
            return Atoms.from_database(self.database.select(np.arange(len(self))[which]))
        return AtomSequence(self, range(len(self))[which])

    def __repr__(self) -> str:
        data = self.database
        relations = ", ".join(
            f"{name}/{len(relation.is_position)}" for name, relation in data.relations.items()
        )
        return (
            f"Atoms: {count_of(len(self), 'sequence')}, {count_of(data.n_positions, 'position')}, "
            f"{count_of(data.n_facts, 'fact')}: {relations}"
        )


def _read_atoms(
    sequences: Iterable[Any], background: Iterable[Any], per_sequence: Iterable[Any] | None
) -> Database:
    """Read atoms in the order of sequences and positions, those of the background last."""
    reader = FactReader()
    ends: list[int] = []
    for number, sequence in enumerate(to_list(sequences, "X", EXPECTED)):
        where, first = f"X[{number}]", sum(ends[-1:])
        positions = to_list(
            sequence, where, "a sequence, a list of positions that are sets or lists of atoms"
        )
        if not positions:
            raise ValueError(f"{where} is empty; a sequence needs at least one position: drop it")
        for position, atoms in enumerate(positions):
            place = f"{where}[{position}]"
            reader.read(
                atoms, Place(place, number, first, len(positions), position=first + position)
            )
        ends.append(first + len(positions))
    if not ends:
        raise ValueError("X is empty; expected at least one sequence")
    offsets = np.array([0, *ends], np.int64)
    one_list = "a list with the atoms of each sequence"
    facts = [] if per_sequence is None else to_list(per_sequence, "per_sequence", one_list)
    if per_sequence is not None and len(facts) != len(ends):
        raise ValueError(
            f"per_sequence has facts of {count_of(len(facts), 'sequence')}, but X has "
            f"{len(ends)}; pass one list of atoms for every sequence"
        )
    for number, atoms in enumerate(facts):
        first, last = offsets[number : number + 2].tolist()
        reader.read(atoms, Place(f"per_sequence[{number}]", number, first, last - first))
    reader.read(background, Place("background"))
    return reader.database(offsets)
