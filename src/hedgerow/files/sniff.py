"""Sniffing: find out how to read a file, mostly from its name and first lines."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import cast

from hedgerow.files.chunks import MARK, Chunk, decode_text
from hedgerow.files.columns import check_named_once, find_column, list_columns, number_columns
from hedgerow.files.conll import (
    NAMES_OF_CONLLU,
    NAMING_LINE,
    LineReader,
    is_conllu,
    split_lines,
)
from hedgerow.files.endings import ending_of, format_of_name
from hedgerow.files.errors import FileError, Path
from hedgerow.files.facts import is_schema
from hedgerow.files.foreign import N_BYTES, refuse_foreign
from hedgerow.files.recipe import FORMATS, TABLES, Format, Recipe
from hedgerow.files.source import HEAD, Source, open_source
from hedgerow.files.template import Template

MAGIC: dict[bytes, Format] = {b"PAR1": "parquet", b"ARROW1": "arrow"}


def make_recipe(
    path: Path,
    *,
    format: str | None = None,
    label: int | str | None = None,
    group: int | str | None = None,
    features: Sequence[int | str] | None = None,
    template: Path | None = None,
    heads: int | str | None = None,
) -> Recipe:
    """Make a recipe for a file; what is not given is inferred from its name and its contents.

    The first lines are usually enough; types of CSV columns, and columns of JSON lines, are
    inferred from the whole file.

    Columns are given by name, if they have names, or by number: from 0, or from the end if
    negative.

    Parameters
    ----------
    path
        The file; ``-`` is standard input, which is not consumed.
    format : {"conll", "csv", "parquet", "arrow", "jsonl", "crfsuite", "facts"}, optional
        Format of the file.
    label
        The label column; by default the last one, or ``UPOS`` in CoNLL-U files.
    group
        The column with the sequence ids, which is required for tables.
    features
        The feature columns; by default all others, or ``FORM`` in CoNLL-U files.
    template
        A CRF++ template file, for CoNLL columns.
    heads
        For tree-shaped graphs: the column with the parent of each position, counted from 1 in its
        sequence, with 0 for a root, such as ``HEAD`` in CoNLL-U files.

    Raises
    ------
    FileError
        The file or the template is not valid.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format is {format!r}; expected one of {', '.join(FORMATS)}")
    said = Said(path, label, group, features, template, heads)
    with open_source(path) as source:
        head = source.peek(HEAD)
        found = cast(Format, format) or (
            "facts" if is_schema(path, head) else _find_format(said, head)
        )
        said.check(found)
        if found == "conll":
            return _conll_recipe(said, _head_lines(head))
        if found == "csv":
            return _csv_recipe(said, source)
        if found == "crfsuite":
            return Recipe("crfsuite", delimiter="\t")
        if found == "facts":
            return Recipe("facts")
        if found == "jsonl":
            return _json_recipe(said, source)
        return _typed_recipe(said, source, found)


def adapt_recipe(recipe: Recipe, path: Path) -> Recipe:
    """Adapt a recipe to the format of this file; everything else stays the same.

    Parameters
    ----------
    recipe
        How the training file of a model was read.
    path
        Another file; ``-`` is standard input, which is not consumed.
    """
    if recipe.format == "facts":
        return recipe
    with open_source(path) as source:  # do not wait for more of a stream than is needed
        head = source.peek(HEAD if source.is_plain_file else N_BYTES)
    refuse_foreign(path, head)
    found = _find_magic(head) or format_of_name(path)
    if not recipe.is_table:
        if found in TABLES:
            raise FileError(
                path,
                f"this is a table ({found}), but the model was trained on {recipe.format} files",
            )
        return recipe
    if found not in TABLES:
        found = "jsonl" if head.removeprefix(MARK).lstrip().startswith(b"{") else "csv"
    return recipe if found == recipe.format else replace(recipe, format=found, delimiter=None)


@dataclass(frozen=True)
class Said:
    """What the user specifies about a file."""

    path: Path
    label: int | str | None
    group: int | str | None
    features: Sequence[int | str] | None
    template: Path | None
    heads: int | str | None = None

    def check(self, format: Format) -> None:
        """Raise an error for options that do not apply to a format."""
        complaint = None
        if self.template is not None and format != "conll":
            complaint = f"a template is for CoNLL columns, but this is read as {format}"
        elif self.template is not None and self.features is not None:
            complaint = "a template defines which columns are used; leave features out"
        elif format == "facts" and any(
            each is not None for each in (self.label, self.group, self.features, self.heads)
        ):
            complaint = (
                "a schema defines the columns of its tables; leave label, group, features and "
                "heads out"
            )
        elif self.group is not None and format in ("conll", "crfsuite"):
            complaint = f"a group column is for tables, but this is read as {format}; leave it out"
        elif format == "crfsuite" and (self.label is not None or self.features is not None):
            complaint = (
                "CRFsuite files have no columns to choose from; leave label and features out"
            )
        elif format == "crfsuite" and self.heads is not None:
            complaint = "CRFsuite files have no column of heads; leave heads out"
        if complaint:
            raise FileError(self.path, complaint)

    def find_heads(self, columns: Sequence[str], others: set[int]) -> int | None:
        """Number of the column of heads, which must not be one of the others."""
        if self.heads is None:
            return None
        number = find_column(columns, self.heads, self.path)
        if number in others:
            raise FileError(
                self.path,
                f"column {columns[number]!r} cannot hold the heads: it is the label or the group",
            )
        return number

    def choose_features(
        self, columns: Sequence[str], leave_out: set[int], heads: int | None
    ) -> tuple[int, ...]:
        """Numbers of the feature columns; by default FORM in CoNLL-U files, otherwise all others.

        ``leave_out`` are the numbers of the label and group columns.
        """
        features = self.features
        leave_out = leave_out | ({heads} if heads is not None else set())
        if features is None and is_conllu(columns) and "FORM" in columns:
            features = ["FORM"]
        if features is None:
            chosen = [number for number in range(len(columns)) if number not in leave_out]
        else:
            is_set = isinstance(features, AbstractSet)  # a set, which has no reproducible order
            named = sorted(features, key=str) if is_set else features
            chosen = [find_column(columns, which, self.path) for which in named]
            chosen = sorted(chosen) if is_set else chosen
        if not chosen:
            raise FileError(self.path, f"no column is left to learn from; {list_columns(columns)}")
        taken = leave_out & set(chosen)
        if taken:
            raise FileError(
                self.path,
                f"column {columns[min(taken)]!r} cannot be a feature: it is the label or the group"
                + ("" if heads is None else ", or holds the heads"),
            )
        return tuple(dict.fromkeys(chosen))


def _conll_recipe(said: Said, lines: list[bytes]) -> Recipe:
    path, label, template = said.path, said.label, said.template
    delimiter = _find_delimiter(lines)
    names = _find_names(path, lines)
    numbers_tokens = names is not None and is_conllu(names)
    reader = LineReader(path, delimiter, numbers_tokens=numbers_tokens)
    chunk = Chunk(1, lines, b"\n")
    reader.finds_width(chunk, is_last=True)
    found = reader.read(chunk)
    if not found.cells:
        raise FileError(path, "the file is empty: it has no line that is a position")
    width = len(found.cells[0])
    if names is not None and len(names) != width:
        raise FileError(
            path,
            f"the columns are named {' '.join(names)}, but the number of columns is {width}",
            found.number(0),
        )
    columns = names or tuple(number_columns(width))
    if label is None:
        label = "UPOS" if numbers_tokens and "UPOS" in columns else -1
    number = find_column(columns, label, path)
    heads = said.find_heads(columns, {number})
    features = said.choose_features(columns, {number}, heads)
    check_named_once(columns, [columns[n] for n in (number, *features)], path)
    recipe = Recipe(
        "conll",
        columns,
        number,
        features=features,
        template=None if template is None else read_template_lines(template),
        delimiter=delimiter,
        named=names is not None,
        heads=heads,
    )
    if template is not None:
        _check_template(template, recipe)
    return recipe


def _csv_recipe(said: Said, source: Source) -> Recipe:
    from hedgerow.files.csv_tables import Header, infer_types
    from hedgerow.files.tables import check_table, find_kinds

    size = HEAD
    while len(head := source.peek(size)) == size and b"\n" not in head:
        size *= 2
    header = Header(said.path, _head_lines(head)[0])
    columns = tuple(header.names)
    group, label = check_table(said.path, columns, said.group, said.label)
    heads = said.find_heads(columns, {group, label})
    features = said.choose_features(columns, {group, label}, heads)
    types = infer_types(said.path, source, header, features)
    kinds = find_kinds(said.path, columns, types, features)
    return Recipe(
        "csv",
        columns,
        label,
        group,
        features,
        kinds,
        delimiter=header.delimiter,
        named=True,
        heads=heads,
    )


def _json_recipe(said: Said, source: Source) -> Recipe:
    from hedgerow.files.json_tables import peek_rows
    from hedgerow.files.tables import check_table, find_kinds

    rows = peek_rows(source)
    columns = tuple(rows.names)
    group, label = check_table(said.path, columns, said.group, said.label)
    heads = said.find_heads(columns, {group, label})
    features = said.choose_features(columns, {group, label}, heads)
    used = (*features, label)
    kinds = find_kinds(said.path, columns, rows.infer_types(used), used)
    return Recipe("jsonl", columns, label, group, features, kinds, named=True, heads=heads)


def _typed_recipe(said: Said, source: Source, format: Format) -> Recipe:
    from hedgerow.files.tables import check_table, find_kinds

    if format == "arrow":
        from hedgerow.files.arrow_tables import read_schema
    else:
        from hedgerow.files.parquet_tables import read_schema
    schema = read_schema(source)
    columns = tuple(schema.names)
    group, label = check_table(said.path, columns, said.group, said.label)
    heads = said.find_heads(columns, {group, label})
    features = said.choose_features(columns, {group, label}, heads)
    kinds = find_kinds(said.path, columns, schema.types, (*features, label))
    return Recipe(format, columns, label, group, features, kinds, named=True, heads=heads)


def read_template_lines(path: Path) -> tuple[str, ...]:
    """The lines of a template file."""
    with open_source(path) as source:
        lines = source.read().removeprefix(MARK).split(b"\n")
    return tuple(decode_text(line, path, n).strip() for n, line in enumerate(lines, start=1))


def _check_template(path: Path, recipe: Recipe) -> None:
    """Raise an error for a template that uses columns that do not exist, or the labels."""
    assert recipe.template is not None
    Template.parse(recipe.template, path)
    for number, line in enumerate(recipe.template, start=1):
        if not line or line.startswith("#"):
            continue
        for column in Template.parse([line], path).columns if "%" in line else ():
            if column >= len(recipe.columns):
                raise FileError(
                    path,
                    f"{line!r} uses column {column}, which does not exist; "
                    f"{list_columns(recipe.columns)}",
                    number,
                )
            if column == recipe.label:
                raise FileError(
                    path,
                    f"{line!r} uses column {column}, the labels, which cannot be features",
                    number,
                )


def _head_lines(head: bytes) -> list[bytes]:
    """Complete lines at the beginning of a file."""
    lines = head.removeprefix(MARK).split(b"\n")
    if len(head) >= HEAD and len(lines) > 1:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def _find_delimiter(lines: list[bytes]) -> str | None:
    """A tab if lines have tabs, otherwise None, which is any white space.

    It is also None if lines have equally many columns only when split at white space.
    """
    rows = [line for line in lines if line.strip() and not line.startswith((b"#", b"-DOCSTART-"))]
    if not any(b"\t" in line for line in rows):
        return None
    by_tab = {len(row) for row in split_lines(rows, "\t")}
    by_space = {len(row) for row in split_lines(rows, None)}
    return None if len(by_tab) > 1 and len(by_space) == 1 else "\t"


def _find_names(path: Path, lines: list[bytes]) -> tuple[str, ...] | None:
    for number, line in enumerate(lines, start=1):
        named = NAMING_LINE.fullmatch(line)
        if named:
            return tuple(decode_text(named[1], path, number).split())
        if line.strip() and not line.startswith(b"#"):
            break
    return tuple(NAMES_OF_CONLLU) if ending_of(path) == ".conllu" else None


def _find_format(said: Said, head: bytes) -> Format:
    """The format of a file by its first bytes or its name, or by the options and first lines."""
    refuse_foreign(said.path, head)
    found = _find_magic(head) or format_of_name(said.path)
    if found is not None:
        return found
    if said.template is not None:
        return "conll"
    if _looks_like_objects(head):
        return "jsonl"
    if said.group is not None:
        return "csv"
    lines = _head_lines(head)
    rows = [line for line in lines if line.strip()]
    if _looks_like_attributes(rows):
        return "crfsuite"
    return "csv" if _looks_like_table(lines) else "conll"


def _find_magic(head: bytes) -> Format | None:
    """The format of a file by its first bytes."""
    return next((format for magic, format in MAGIC.items() if head.startswith(magic)), None)


def _looks_like_objects(head: bytes) -> bool:
    """Whether the first line is a JSON object."""
    line = head.removeprefix(MARK).lstrip().partition(b"\n")[0].strip()
    try:
        return line.startswith(b"{") and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _looks_like_attributes(rows: list[bytes]) -> bool:
    """Whether everything after a tab looks like ``name=value`` or ``name:value``."""
    fields = [field for row in rows for field in row.split(b"\t")[1:] if field]
    named = sum(1 for field in fields if re.match(rb".[^=:]*[=:]", field))
    return bool(fields) and all(b"\t" in row for row in rows) and named == len(fields)


def _looks_like_table(lines: list[bytes]) -> bool:
    """Whether no line is blank and all have the same number of commas or semicolons, not 0."""
    rows = lines[:-1] if not lines[-1] else lines
    return bool(rows) and any(
        rows[0].count(mark) > 0 and len({row.count(mark) for row in rows}) == 1
        for mark in (b",", b";")
    )
