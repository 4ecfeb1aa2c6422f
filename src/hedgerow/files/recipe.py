"""Recipes: how the files of a model are read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from hedgerow.files.attributes import default_template
from hedgerow.files.template import PAIR_PREFIX, Template

Format = Literal["conll", "csv", "parquet", "arrow", "jsonl", "crfsuite", "facts"]
FORMATS: tuple[Format, ...] = get_args(Format)
TABLES: tuple[Format, ...] = ("csv", "parquet", "arrow", "jsonl")
# Formats without columns to choose from.
COLUMNLESS: tuple[Format, ...] = ("crfsuite", "facts")

# Possible separators of cells in a CSV file.
DELIMITERS = (",", ";", "\t")

Kind = Literal["number", "integer", "bool", "text"]


@dataclass(frozen=True)
class Recipe:
    """How the files of a model are read; plain data that are stored in the model file.

    Attributes
    ----------
    format : {"conll", "csv", "parquet", "arrow", "jsonl", "crfsuite", "facts"}
        Format of the file; Feather files are "arrow", JSON lines "jsonl", and a schema of tables of
        facts is "facts".
    columns : tuple of str
        Names of the columns: those in the file, or "0", "1", and so on. Empty for CRFsuite
        files and for facts, which have none.
    label : int
        Number of the label column.
    group : int or None
        Number of the column with the sequence ids, in tables.
    features : tuple of int
        Numbers of the feature columns.
    kinds : tuple of {"number", "integer", "bool", "text"}
        Types of the columns of a table; empty for other files.
    template : tuple of str or None
        Lines of a CRF++ template; None for the default attributes.
    delimiter : str or None
        Separator of cells. None: in CoNLL files any white space; in CSV files the separator of the
        first line.
    named : bool
        Whether the columns have names; columns of a CoNLL file may have none.
    heads : int or None
        Number of the column with the parent of each position, as in CoNLL-U.
    """

    format: Format
    columns: tuple[str, ...] = ()
    label: int = 0
    group: int | None = None
    features: tuple[int, ...] = ()
    kinds: tuple[Kind, ...] = ()
    template: tuple[str, ...] | None = None
    delimiter: str | None = None
    named: bool = False
    heads: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON values."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Recipe:
        """Read the output of `to_json`; raises ValueError if it is invalid."""
        known = {field.name for field in fields(cls)}
        needed = known - {"heads"}  # not in recipes of earlier versions
        if not isinstance(values, dict) or not needed <= set(values) <= known:
            raise ValueError(f"expected a recipe with the entries {', '.join(sorted(known))}")
        plain: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        recipe = cls(**plain)
        recipe._check()
        return recipe

    @property
    def n_template_lines(self) -> int:
        """Number of lines of the template, without comments and empty lines."""
        return sum(1 for line in self.template or () if line and not line.startswith("#"))

    @property
    def is_table(self) -> bool:
        """Whether files have rows and named columns, one of which contains groups."""
        return self.format in TABLES

    @property
    def label_is_last(self) -> bool:
        """Whether the labels are in the last column, which a file to tag need not have."""
        return self.label == len(self.columns) - 1

    def read_template(self) -> Template:
        """The attributes of CoNLL columns."""
        if self.template is None:
            return default_template(self._feature_names())
        return Template.parse(self.template)

    def parameters(self) -> dict[str, Any]:
        """The parameters of an estimator that a template implies: order, transition_attributes."""
        if self.format != "conll" or self.template is None:
            return {}
        template = self.read_template()
        parameters: dict[str, Any] = {"order": int(template.has_transitions)}
        if template.has_pair_attributes:
            parameters["transition_attributes"] = PAIR_PREFIX
        return parameters

    def _feature_names(self) -> dict[int, str]:
        prefix = "" if self.named else "c"
        return {number: f"{prefix}{self.columns[number]}" for number in self.features}

    def _check(self) -> None:
        lists = [self.columns, self.features, self.kinds]
        lists += [] if self.template is None else [self.template]
        if not (all(isinstance(part, tuple) for part in lists) and self._is_sound()):
            raise ValueError(f"an inconsistent recipe: {self}")
        if self.format == "conll":
            self.read_template()

    def _is_sound(self) -> bool:
        n_columns, is_table = len(self.columns), self.is_table
        numbers = [*self.features, *(n for n in (self.group, self.heads) if n is not None)]
        texts = [*self.columns, *(self.template or ())]
        return bool(
            self.format in FORMATS
            and all(isinstance(text, str) for text in texts)
            and all(type(n) is int and 0 <= n < n_columns for n in numbers)
            and type(self.label) is int
            and (self.features or self.template is not None or self.format in COLUMNLESS)
            and 0 <= self.label < max(n_columns, self.format in COLUMNLESS)
            and len(self.kinds) == (n_columns if is_table else 0)
            and (self.group is not None or not is_table)
            and all(kind in get_args(Kind) for kind in self.kinds)
            and (self.delimiter is None or self.delimiter in DELIMITERS)
            and isinstance(self.named, bool)
        )
