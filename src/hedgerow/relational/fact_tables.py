"""Tables of facts: frames of events and of facts about them become a `Database`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from hedgerow.encode.codes import code_values, in_blocks, is_missing
from hedgerow.encode.forms import as_frame
from hedgerow.encode.groups import name_groups, read_groups
from hedgerow.relational.database import GLOBAL, Database, Relation
from hedgerow.relational.fact_reader import Constants, check_texts, text_of, to_list
from hedgerow.suggestions import suggest

__all__ = ["read_tables"]

Frame = nw.DataFrame[Any]
# Instead of the id of a constant or of a position.
MISSING = -1
# Instead of a position: events of several sequences have the key.
AMBIGUOUS = -2
# Instead of a sequence: one without events.
UNKNOWN = -2


def read_tables(
    events: Any,
    tables: Mapping[str, Any],
    sequence: str | None,
    key: str | None,
    references: Iterable[str],
) -> Database:
    """Turn tables into facts; `Atoms.from_tables` has the parameters."""
    if not isinstance(tables, Mapping):
        raise TypeError(
            f"tables is of type {type(tables).__name__}; expected a dict of DataFrames by predicate"
        )
    references = tuple(to_list(references, "references", "a list of names of columns"))
    frame = _read_frame(events, "events")
    if not len(frame):
        raise ValueError("events has no rows; expected one for each position")
    frames = {name: _read_frame(table, f"tables[{name!r}]") for name, table in tables.items()}
    _check_columns(frame, frames, sequence, key, references)
    reader = _TableReader(frame, sequence, key, references)
    relations = reader.read_events(frame)
    for name, table in frames.items():
        if name in relations:
            raise ValueError(
                f"tables[{name!r}] and a column of events are both called {name!r}; all facts of a "
                "predicate must have the same number and kinds of arguments: rename one"
            )
        relations[name] = reader.read_table(table, name)
    return Database.of(reader.offsets, reader.constants.texts(), check_texts(relations))


class _TableReader:
    """Reads columns of tables that share constants and positions."""

    def __init__(
        self, events: Frame, sequence: str | None, key: str | None, references: tuple[str, ...]
    ) -> None:
        self.constants = Constants()
        self._sequence, self._key = sequence, key
        self._references = {*references, *([] if key is None else [key])}
        self._n_facts = 0
        n_rows = len(events)
        self.offsets = np.array([0, n_rows], np.int64)
        self._sequences: dict[Any, int] = {}
        if sequence is not None:
            groups = events[sequence]
            self.offsets = read_groups(groups, n_rows, sequence, "events")
            names = name_groups(groups, self.offsets)
            self._sequences = {name: number for number, name in enumerate(names)}
        lengths = np.diff(self.offsets)
        self._sequence_of = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        if key is not None:
            self._index_keys(events[key])

    def _index_keys(self, keys: nw.Series[Any]) -> None:
        """Number the events by key, and by sequence and key."""
        values = keys.to_list()
        self._by_key: dict[Any, int] = {}
        self._by_both: dict[tuple[int, Any], int] = {}
        for row, (value, number) in enumerate(zip(values, self._sequence_of.tolist(), strict=True)):
            if is_missing(value):
                raise ValueError(f"column {self._key!r} of events has no key at row {row}")
            if not isinstance(value, Hashable):
                raise _not_hashable(f"column {self._key!r} of events")
            if (number, value) in self._by_both:
                raise ValueError(
                    f"column {self._key!r} of events has the key {value!r} twice in one sequence, "
                    f"at rows {self._by_both[number, value]} and {row}; keys identify events: make "
                    "them unique"
                )
            self._by_both[number, value] = row
            # A key that occurs in several sequences identifies an event only together with its
            # sequence.
            self._by_key[value] = row if value not in self._by_key else AMBIGUOUS

    def read_events(self, frame: Frame) -> dict[str, Relation]:
        """Every column of the events, as facts about them."""
        rows = np.arange(len(frame), dtype=np.int32)
        relations = {}
        columns = [name for name in frame.columns if name not in (self._sequence, self._key)]
        for number, name in enumerate(columns):
            where = f"column {name!r} of events"
            is_link = name in self._references
            values = (
                self._positions(frame[name], self._sequence_of, where)
                if is_link
                else self._constants(frame[name], where)
            )
            there = values != MISSING
            pairs = np.column_stack([rows, values])[there]
            # Facts are in the order of positions, and at a position in that of columns.
            order = pairs[:, 0].astype(np.int64) * len(columns) + number
            relations[str(name)] = Relation(
                (True, is_link), pairs, self._sequence_of[pairs[:, 0]], order
            )
        self._n_facts = len(columns) * len(frame)
        return relations

    def read_table(self, frame: Frame, name: str) -> Relation:
        """Facts of one predicate; those of sequences or events that are not here are dropped."""
        where = f"tables[{name!r}]"
        scopes = np.full(len(frame), GLOBAL, np.int32)
        there = np.ones(len(frame), np.bool_)
        columns = [column for column in frame.columns if column != self._sequence]
        if self._sequence is not None and self._sequence in frame.columns:
            distinct, codes = _code(frame[self._sequence], where)
            numbers = [self._sequences.get(value, UNKNOWN) for value in distinct]
            scopes = np.array(numbers, np.int32)[codes]
            there = scopes != UNKNOWN
        asked = scopes  # the sequence in which a key is looked up
        is_position = tuple(column in self._references for column in columns)
        arguments = np.empty((len(frame), len(columns)), np.int32)
        for number, column in enumerate(columns):
            at = f"column {column!r} of {where}"
            if is_position[number]:
                values = self._positions(frame[column], asked, at)
                found = np.where(values >= 0, self._sequence_of[values], MISSING)
                _check_one_sequence(scopes, found, at)
                scopes = np.where(scopes == GLOBAL, found, scopes)
            else:
                values = self._constants(frame[column], at)
            arguments[:, number] = values
            there &= values != MISSING
        if len(frame) and not there.any():
            raise ValueError(
                f"no row of {where} is a fact about these events: all have a missing value, or "
                f"name other events or sequences; compare its columns with those of events"
            )
        ranks = self._n_facts + np.arange(len(frame))
        self._n_facts += len(frame)
        chosen = np.flatnonzero(there)
        return Relation(is_position, arguments, scopes, ranks).take(chosen).distinct()

    def _constants(self, series: nw.Series[Any], where: str) -> NDArray[np.int32]:
        """Ids of constants, `MISSING` where there is none."""
        distinct, codes = _code(series, where)
        numbers = [
            MISSING if is_missing(value) else self.constants.number(text_of(value, where))
            for value in distinct
        ]
        return np.array(numbers, np.int32)[codes]

    def _positions(
        self, series: nw.Series[Any], scopes: NDArray[np.int32], where: str
    ) -> NDArray[np.int32]:
        """Rows of events by their keys, in these sequences; `MISSING` where there is none."""
        found = np.full(len(series), MISSING, np.int32)
        for row, (value, scope) in enumerate(zip(series.to_list(), scopes.tolist(), strict=True)):
            if is_missing(value):
                continue
            if not isinstance(value, Hashable):
                raise _not_hashable(where)
            if scope == GLOBAL:
                found[row] = self._by_key.get(value, MISSING)
            else:
                found[row] = self._by_both.get((scope, value), MISSING)
            if found[row] == AMBIGUOUS:
                raise ValueError(
                    f"{where} has the key {value!r}, which events of several sequences have; give "
                    f"the table the column {self._sequence!r} too, or make keys unique"
                )
        return found


def _code(series: nw.Series[Any], where: str) -> tuple[list[Any], NDArray[np.int32]]:
    """Distinct values of a column, and the index of each row's value."""
    try:
        return code_values(in_blocks(series.to_list()))
    except TypeError:
        raise _not_hashable(where) from None


def _not_hashable(where: str) -> TypeError:
    return TypeError(f"{where} contains lists, dicts or other objects; expected strings or numbers")


def _read_frame(table: Any, where: str) -> Frame:
    frame = as_frame(table, where)
    if frame is None:
        raise TypeError(
            f"{where} is of type {type(table).__name__}; expected a DataFrame of pandas or polars, "
            "or an Arrow table"
        )
    return frame


def _check_columns(
    events: Frame,
    tables: dict[str, Frame],
    sequence: str | None,
    key: str | None,
    references: tuple[str, ...],
) -> None:
    for parameter, name in (("sequence", sequence), ("key", key)):
        if name is not None and (not isinstance(name, str) or name not in events.columns):
            raise ValueError(
                f"{parameter} is {name!r}, but events has no such column"
                + (suggest(str(name), events.columns) or f"; it has {', '.join(events.columns)}")
            )
    if references and key is None:
        raise ValueError(
            f"references lists the column {references[0]!r}, whose values are keys of events, but "
            "key is None; pass key=..., the name of the column of events with these keys"
        )
    known = {column for frame in (events, *tables.values()) for column in frame.columns}
    for name in references:
        if name not in known:
            raise ValueError(
                f"references lists the column {name!r}, which no table has"
                + suggest(str(name), sorted(known))
            )


def _check_one_sequence(scopes: NDArray[np.int32], found: NDArray[np.int32], where: str) -> None:
    """Check that all positions of a fact are in the same sequence."""
    apart = np.flatnonzero((scopes != GLOBAL) & (found != MISSING) & (scopes != found))
    if len(apart):
        raise ValueError(
            f"row {apart[0]} of {where} names an event of a different sequence from the rest of "
            "the row; all events of a fact must be in one sequence"
        )
