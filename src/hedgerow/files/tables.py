"""Tables: rows with named columns, one of which contains the sequence ids.

Files of all table formats arrive here as Arrow tables, part by part, and are assembled into whole
sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.data_warning import warn_user
from hedgerow.encode.cut_frame import CutFrame
from hedgerow.files.batch import Batch, cut
from hedgerow.files.columns import check_named_once, find_column, list_columns
from hedgerow.files.errors import FileError, Path, display_name
from hedgerow.files.heads import read_heads
from hedgerow.files.recipe import Kind
from hedgerow.files.request import Request

# Number of cells that are read at a time, so that wide tables need no more memory.
MOST_CELLS = 1 << 18
# Number of groups that a stream remembers, to notice one that occurs again.
MOST_REMEMBERED = 1 << 17

TYPE_OF_FEATURE = {
    "number": pa.float64(),
    "integer": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.string(),
}
TYPE_OF_LABEL = {
    "number": pa.float64(),
    "integer": pa.int64(),
    "bool": pa.bool_(),
    "text": pa.string(),
}


class TableColumns:
    """Which columns of a file are read, and their types; raises `FileError` if one is missing.

    ``group`` is None if the file has no group column and `Request.may_lack_groups` is true.
    """

    def __init__(self, request: Request, names: Sequence[str]) -> None:
        path, recipe, known = request.path, request.recipe, request.known
        assert recipe.group is not None
        group = recipe.columns[recipe.group]
        self.group: str | None = group
        if request.may_lack_groups and group not in names:
            self.group = None
            warn_user(
                f"{display_name(path)} has no column {group!r} of sequence ids, so all rows are "
                "read as one sequence"
            )
        self.features = [recipe.columns[number] for number in recipe.features]
        self.label = recipe.columns[recipe.label] if request.labels else None
        self.known = None if known is None else names[find_column(names, known, path)]
        if self.known is not None and self.known in (self.group, *self.features):
            raise FileError(
                path,
                f"column {self.known!r} cannot hold known labels: the model uses it as a feature "
                "or as the group",
            )
        self.heads = None if recipe.heads is None else recipe.columns[recipe.heads]
        needed = (self.group, *self.features, self.label, self.heads)
        used = [name for name in needed if name is not None]
        for name in used:
            if name not in names:
                purpose = ", which the model was trained on,"
                advice = ""
                if name == group:
                    purpose = ", which contains the sequence ids,"
                    advice = "add it, with one value in all rows if they are one sequence; "
                raise FileError(
                    path, f"column {name!r}{purpose} is missing; {advice}{list_columns(names)}"
                )
        check_named_once(names, [*used, *([] if self.known is None else [self.known])], path)
        kinds = dict(zip(recipe.columns, recipe.kinds, strict=True))
        self.types = {name: TYPE_OF_FEATURE[kinds[name]] for name in self.features}
        self.label_type = TYPE_OF_LABEL[recipe.kinds[recipe.label]]
        # Number of rows that are read at a time.
        self.n_rows = max(1, min(request.n_positions, MOST_CELLS // len(names)))
        self._path = path
        self._remember_all = request.keeps_all

    def stream(self, parts: Iterable[pa.Table]) -> Iterator[Batch]:
        """Whole sequences of the parts of a table."""
        if self.group is None:
            tables = [part for part in parts if len(part)]
            if tables:
                rows = pa.concat_tables(tables)
                yield self._to_batch(rows, [0, len(rows)])
            return
        for rows, offsets in _whole_groups(parts, self.group, self._path, self._remember_all):
            yield self._to_batch(rows, offsets)

    def _to_batch(self, rows: pa.Table, offsets: list[int]) -> Batch:
        columns = [self._feature(rows, name) for name in self.features]
        table = pa.table(columns, names=self.features).combine_chunks()
        y = None if self.label is None else self._labels(rows, self.label, offsets)
        known = None
        if self.known is not None:
            known = cut(_to_text(rows.column(self.known)).to_pylist(), offsets)
        parents = None
        if self.heads is not None:
            parents = read_heads(
                rows.column(self.heads).to_pylist(),
                offsets,
                lambda position, what: self._complain_of_head(rows, position, what),
            )
        names = None
        if self.group is not None:
            names = rows.column(self.group).take(offsets[:-1]).to_pylist()
        return Batch(CutFrame(table, offsets), y, rows, known, parents=parents, names=names)

    def _complain_of_head(self, rows: pa.Table, position: int, what: str) -> FileError:
        where = f"column {self.heads!r}"
        if self.group is not None:
            where += f" of group {rows.column(self.group)[position].as_py()!r}"
        return FileError(self._path, f"{where}: {what}")

    def _feature(self, rows: pa.Table, name: str) -> Any:
        """One column in the type used in training; empty text is missing."""
        column = rows.column(name)
        kind = self.types[name]
        if kind == pa.string():
            return _to_text(column)
        if column.type == pa.float32():
            return column
        # Numbers other than 0 and 1 in place of bools are kept.
        as_bool = kind == pa.bool_() and column.type == pa.bool_()
        return column.cast(kind if as_bool else pa.float64(), safe=False)

    def _labels(self, rows: pa.Table, name: str, offsets: list[int]) -> list[list[Any]]:
        try:
            column = rows.column(name)
            is_text = self.label_type == pa.string()
            column = _to_text(column) if is_text else column.cast(self.label_type)
            if self.label_type == pa.float64():
                column = self._to_integers(column, name)
        except pa.ArrowException as error:
            raise FileError(
                self._path,
                f"column {name!r} does not hold labels of the kind used in training: {error}",
            ) from None
        return cut(column.to_pylist(), offsets)

    def _to_integers(self, column: Any, name: str) -> Any:
        """Labels that are integers; raises `FileError` for others."""
        fraction = pc.filter(column, pc.not_equal(pc.floor(column), column))
        if len(fraction):
            raise FileError(
                self._path,
                f"column {name!r} holds the number {fraction[0].as_py()}, but labels are text or "
                "whole numbers; choose another column of labels, or turn numbers into classes "
                "first, such as low and high",
            )
        return column.cast(pa.int64())


def check_table(
    path: Path, columns: Sequence[str], group: int | str | None, label: int | str | None
) -> tuple[int, int]:
    """Find the group and the label column of a table."""
    check_named_once(columns, columns, path)
    if group is None:
        raise FileError(
            path,
            "a table needs a group column, which contains the sequence ids; name it with group=, "
            "or --group on the command line: "
            f"{list_columns(columns)}",
        )
    group_number = find_column(columns, group, path)
    label_number = find_column(columns, -1 if label is None else label, path)
    if group_number == label_number:
        raise FileError(
            path,
            f"column {columns[group_number]!r} is both the group and the label; "
            f"say which column holds the labels: {list_columns(columns)}",
        )
    return group_number, label_number


def find_kinds(
    path: Path, columns: Sequence[str], types: Sequence[Any], used: Sequence[int]
) -> tuple[Kind, ...]:
    """Kinds of all columns; raises `FileError` if one of the `used` has an unsupported type."""
    for number in used:
        if kind_of(types[number]) is None:
            advice = "convert it, or choose other columns"
            if pa.types.is_list(types[number]) or pa.types.is_large_list(types[number]):
                advice = "if a row holds a whole sequence, write one row per position"
            raise FileError(
                path,
                f"column {columns[number]!r} is of type {types[number]}; expected numbers, bools "
                f"or text: {advice}",
            )
    return tuple(kind_of(dtype) or "text" for dtype in types)


def kind_of(dtype: Any) -> Kind | None:
    """Kind of a column of an Arrow type; None for a type that models do not support."""
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    if pa.types.is_boolean(dtype):
        return "bool"
    if pa.types.is_integer(dtype):
        return "integer"
    if pa.types.is_floating(dtype) or pa.types.is_decimal(dtype) or pa.types.is_null(dtype):
        return "number"
    return "text" if pa.types.is_string(dtype) or pa.types.is_large_string(dtype) else None


def _whole_groups(
    parts: Iterable[pa.Table], group: str, path: Path, remember_all: bool
) -> Iterator[tuple[pa.Table, list[int]]]:
    """Rows of whole groups, joined from the parts, and the bounds of the groups."""
    seen: dict[Any, None] = {}
    held: list[pa.Table] = []  # rows of one group that may continue
    n_held, n_rows, last = 0, 0, object()  # which no group equals
    for part in parts:
        ids = part.column(group).to_pylist()
        starts = [
            place
            for place, (before, now) in enumerate(zip([last, *ids], ids, strict=False))
            if before != now
        ]
        for start in starts:
            _check_group(ids[start], seen, group, path, n_rows + start + 1)
            if not remember_all and len(seen) > MOST_REMEMBERED:
                del seen[next(iter(seen))]
        n_rows += len(ids)
        last = ids[-1] if ids else last
        if not starts or (n_held + starts[-1] == 0):
            held.append(part)
            n_held += len(ids)
            continue
        whole = pa.concat_tables([*held, part.slice(0, starts[-1])])
        yield whole, [0, *(n_held + start for start in starts if n_held + start)]
        held, n_held = [part.slice(starts[-1])], len(ids) - starts[-1]
    if n_held:
        yield pa.concat_tables(held), [0, n_held]


def _check_group(name: Any, seen: dict[Any, None], group: str, path: Path, row: int) -> None:
    if name is None or name == "" or name != name:
        raise FileError(path, f"row {row} has no group in column {group!r}; every row needs one")
    if name in seen:
        raise FileError(
            path,
            f"group {name!r} of column {group!r} occurs again in row {row}; the rows of a group "
            "must be consecutive: sort the table by group first",
        )
    seen[name] = None


def _to_text(column: Any) -> Any:
    """A column as text; empty text is missing."""
    column = column.cast(pa.string())
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
