"""Tables: dicts of columns, which are returned as frames if the user works with frames.

Only this module decides which type a returned table has.
"""

from __future__ import annotations

from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from hedgerow import notebook

__all__ = ["Output", "Table", "check_output", "choose_output"]

# The type of a returned table: a `Table`, or a DataFrame of one of these libraries.
Output = Literal["default", "pandas", "polars"]
OUTPUTS = ("default", "pandas", "polars")
# Maximum number of rows that are printed.
MAX_SHOWN = 20


class Table(dict[str, NDArray[Any]]):
    """A dict of columns, arrays of the same length, that prints as a table.

    ``pandas.DataFrame(table)`` and ``polars.DataFrame(table)`` turn it into a frame; `set_output`
    of the estimator sets the type of all its tables.

    Examples
    --------
    >>> import numpy as np
    >>> Table({"from": np.array(["a", "b"]), "weight": np.array([0.5, -1.25])})
    from  weight
    a        0.5
    b      -1.25
    """

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.values()), ()))

    def to(self, output: Output) -> Any:
        """The same table as another type."""
        if output == "default":
            return self
        columns = {name: _column(values) for name, values in self.items()}
        series = [nw.new_series(name, values, backend=output) for name, values in columns.items()]
        return nw.from_dict({each.name: each for each in series}).to_native()

    def __repr__(self) -> str:
        rows = [list(self), *([*map(notebook.format_value, row)] for row in self._shown())]
        if not self:
            return "an empty table"
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        are_numbers = [column.dtype.kind in "iuf" for column in self.values()]
        lines = [
            "  ".join(
                cell.rjust(width) if is_number else cell.ljust(width)
                for cell, width, is_number in zip(row, widths, are_numbers, strict=True)
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *filter(None, [self._note()])])

    def _repr_html_(self) -> str:
        shown = notebook.table(list(self), self._shown(), note=self._note())
        return f'{notebook.STYLE}<div class="hedgerow">{shown}</div>'

    def _shown(self) -> list[list[Any]]:
        """The first rows, as Python objects."""
        columns = [column[:MAX_SHOWN].tolist() for column in self.values()]
        return [list(row) for row in zip(*columns, strict=True)]

    def _note(self) -> str:
        return f"... {self.n_rows:,} rows in all" if self.n_rows > MAX_SHOWN else ""


def check_output(transform: Any) -> None:
    """Raise ValueError unless tables can be returned as this type."""
    if transform is not None and transform not in OUTPUTS:
        raise ValueError(
            f"transform is {transform!r}; expected 'default', 'pandas' or 'polars', or None to "
            "leave it as it is"
        )


def choose_output(asked: Output | None, library: str | None) -> Output:
    """Choose the type of the tables that are returned.

    Parameters
    ----------
    asked
        The argument of `set_output` of the estimator; it has precedence over everything else.
    library
        The library of the frames that the model was fitted on. It applies unless scikit-learn's
        configuration, ``sklearn.set_config(transform_output=...)``, names another one.
    """
    if asked is not None:
        return asked
    in_general: Output = get_config()["transform_output"]
    if in_general != "default":
        return in_general
    return "pandas" if library == "pandas" else "polars" if library == "polars" else "default"


def _column(values: NDArray[Any]) -> Any:
    """A column as the libraries need it: objects of one type as a list, mixed ones unchanged."""
    if values.dtype != np.object_:
        return values
    objects = values.tolist()
    kinds = {type(value) for value in objects if value is not None}
    return objects if len(kinds) == 1 else values
