"""Preprocessing: scikit-learn's transformers for sequences in any format."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, TransformerTags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hedgerow.counting import count_of
from hedgerow.encode.flat_labels import are_missing, flatten_labels
from hedgerow.encode.forms import is_sparse
from hedgerow.encode.rows import Rows
from hedgerow.encode.set_apart import GROUPS, PARENTS, Role, check_column, split_off

__all__ = ["SequenceTransformer"]

# What lists of sequences use instead of these columns.
LISTS_NEED = {
    GROUPS: ": a list of sequences needs no groups",
    PARENTS: ", and pass the parents to the CRF",
}

# What to do if X does not have one of these columns.
WITHOUT_COLUMN = "pass X with this column to fit and to transform, or set the parameter to None"


def _has_inverse(self: SequenceTransformer) -> bool:
    return hasattr(self.transformer, "inverse_transform")


class SequenceTransformer(BaseEstimator):  # type: ignore[misc]
    """Apply a transformer of scikit-learn to every position of sequences.

    The transformer is fitted on the positions of all sequences together, with one row per position.
    So ``make_pipeline(SequenceTransformer(StandardScaler()), LinearCRF())`` works on lists of
    sequences as well as on a flat table.

    Parameters
    ----------
    transformer
        Any transformer of rows, such as `sklearn.preprocessing.StandardScaler` or a
        `sklearn.compose.ColumnTransformer`. It is cloned; ``transformer__with_mean=False`` sets one
        of its parameters.
    group_column : str, int or None, default None
        Name or number of the column of X with the sequence ids, as in the CRF. The transformer does
        not use it. It is returned unchanged: in the same place if it is given by number, otherwise
        before the other columns.
    parents_column : str, int or None, default None
        Name or number of the column of X with the parents of positions, as in the CRF. It is
        returned unchanged too.

    Attributes
    ----------
    transformer_
        The fitted transformer.
    n_features_in_ : int
        Number of columns of X, if it has any.
    feature_names_in_ : array of str
        Their names, if they have any.

    Notes
    -----
    Sequences may be arrays, frames, sparse matrices, or lists of rows that the
    transformer accepts, such as dicts for `sklearn.feature_extraction.DictVectorizer`. The output
    has the same structure as the input, lists for lists; whether sequences are arrays, frames or
    sparse matrices depends on the transformer and on ``set_output``.

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow import LinearCRF
    >>> from hedgerow.preprocessing import SequenceTransformer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = [np.array([[1000.0], [2000.0], [1000.0]]), np.array([[2000.0], [1000.0]])]
    >>> y = [["low", "high", "low"], ["high", "low"]]
    >>> SequenceTransformer(StandardScaler()).fit_transform(X)[1].round(2).tolist()
    [[1.22], [-0.82]]
    >>> model = make_pipeline(SequenceTransformer(StandardScaler()), LinearCRF()).fit(X, y)
    >>> model.predict(X)[1].tolist()
    ['high', 'low']
    """

    transformer_: Any
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def __init__(
        self,
        transformer: Any,
        *,
        group_column: str | int | None = None,
        parents_column: str | int | None = None,
    ) -> None:
        self.transformer = transformer
        self.group_column = group_column
        self.parents_column = parents_column

    def __sklearn_tags__(self) -> Tags:
        """Tags for scikit-learn: those of the transformer, and that X need not be 2-D."""
        tags: Tags = super().__sklearn_tags__()
        own = get_tags(self.transformer)
        tags.estimator_type, tags.transformer_tags = "transformer", TransformerTags()
        tags.target_tags, tags.input_tags = own.target_tags, own.input_tags
        tags.input_tags.three_d_array = True
        return tags

    def set_output(self, *, transform: str | None = None) -> SequenceTransformer:
        """Set the type of output of the transformer: "pandas", "polars" or "default"."""
        if transform is not None:
            for each in (self.transformer, getattr(self, "transformer_", None)):
                if each is not None:
                    each.set_output(transform=transform)
        return self

    def fit(self, X: Any, y: Any = None) -> SequenceTransformer:
        """Fit the transformer on all positions of all sequences.

        Parameters
        ----------
        X
            Sequences, or one flat table.
        y
            Labels in the same format as for the CRF; only supervised transformers use
            them, and these are fitted on the positions that have a label.
        """
        self._fit(X, y, transform=False)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit the transformer, and transform X; the parameters are those of `fit`."""
        return self._fit(X, y, transform=True)

    def transform(self, X: Any) -> Any:
        """Transform every position; the result has the same structure as X."""
        return self._apply("transform", X)

    @available_if(_has_inverse)  # type: ignore[untyped-decorator]
    def inverse_transform(self, X: Any) -> Any:
        """Undo `transform`, if the transformer can."""
        return self._apply("inverse_transform", X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns, including those of groups and parents."""
        check_is_fitted(self, "transformer_")
        apart = self._apart
        if apart and input_features is not None:
            input_features = [name for name in input_features if name not in apart.values()]
        names = list(self.transformer_.get_feature_names_out(input_features))
        columns = getattr(self, "feature_names_in_", None)
        for role, place in self._places(len(names)).items():
            column = apart[role]
            if columns is not None and not isinstance(column, str):
                column = columns[column]
            names.insert(place, str(column))
        return np.array(names, dtype=np.object_)

    def _fit(self, X: Any, y: Any, *, transform: bool) -> Any:
        if not (hasattr(self.transformer, "fit") and hasattr(self.transformer, "transform")):
            raise TypeError(
                f"transformer is {self.transformer!r}; expected a transformer of rows, with the "
                "methods fit and transform, such as sklearn.preprocessing.StandardScaler()"
            )
        for role, column in self._apart.items():
            check_column(role, column)
        rows = Rows.of(X)
        kept, block = self._split(rows)
        transformer, whole = clone(self.transformer), _native(block)
        labels, known = _read_labels(y, rows.n_rows)
        in_part = not known.all() and _needs_labels(transformer)
        if transform and not in_part and hasattr(transformer, "fit_transform"):
            found = transformer.fit_transform(whole, labels)
        else:
            if in_part:
                transformer.fit(_take(block, known), np.array(labels[known].tolist()))
            else:
                transformer.fit(whole, labels)
            found = transformer.transform(whole) if transform else None
        self.transformer_ = transformer
        self._note_columns(rows.block)
        return rows.cut(self._join(kept, found, rows, "transform")) if transform else None

    def _note_columns(self, block: Any) -> None:
        """Set the attributes that describe the columns of X, as scikit-learn's estimators do."""
        self.__dict__.pop("n_features_in_", None)
        self.__dict__.pop("feature_names_in_", None)
        if not isinstance(block, list):
            self.n_features_in_ = int(block.shape[1])
        names = block.columns if isinstance(block, nw.DataFrame) else [None]
        if all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=np.object_)

    def _apply(self, method: str, X: Any) -> Any:
        check_is_fitted(self, "transformer_")
        rows = Rows.of(X)
        kept, block = self._split(rows)
        found = getattr(self.transformer_, method)(_native(block))
        return rows.cut(self._join(kept, found, rows, method))

    @property
    def _apart(self) -> dict[Role, Any]:
        """The columns that the transformer does not use."""
        columns = {GROUPS: self.group_column, PARENTS: self.parents_column}
        return {role: column for role, column in columns.items() if column is not None}

    def _split(self, rows: Rows) -> tuple[dict[Role, Any], Any]:
        """Split off the columns that are kept unchanged."""
        apart = self._apart
        if not apart:
            return {}, rows.block
        if isinstance(rows.block, list):
            role, column = next(iter(apart.items()))
            raise ValueError(
                f"{role.parameter} is {column!r}, but the sequences of X are lists, which "
                f"have no columns; leave it out{LISTS_NEED[role]}"
            )
        return split_off(rows.block, apart, "X", WITHOUT_COLUMN)

    def _places(self, n_columns: int) -> dict[Role, int]:
        """Positions of the kept columns, in ascending order, among this many others."""
        apart = self._apart
        n_all = n_columns + len(apart)
        places: dict[Role, int] = {}
        for role, column in apart.items():
            if isinstance(column, int):
                place = column % n_all
                if not -n_all <= column < n_all or place in places.values():
                    raise ValueError(
                        f"{role.parameter} is {column}, but the transformer returns "
                        f"{count_of(n_columns, 'column')}, so the column cannot keep its place; "
                        "make it the first or the last column, 0 or -1, or pass a DataFrame and "
                        "the column name"
                    )
                places[role] = place
        free = (place for place in range(n_all) if place not in set(places.values()))
        places |= {role: next(free) for role in apart if role not in places}
        return dict(sorted(places.items(), key=lambda item: item[1]))

    def _join(self, kept: dict[Role, Any], found: Any, rows: Rows, method: str) -> Any:
        """Insert the kept columns among the transformed ones."""
        if not kept:
            return found
        frame = nw.from_native(found, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            if not isinstance(rows.block, nw.DataFrame):
                for role, place in self._places(found.shape[1]).items():
                    found = _insert(np.asarray(kept[role]), found, place)
                return found
            frame = self._to_frame(found, rows.block, method)
        names = list(frame.columns)
        for role, place in self._places(len(names)).items():
            values = kept[role]
            name = values.name if isinstance(values, nw.Series) else str(self._apart[role])
            names.insert(place, name)
            frame = frame.with_columns(_column_of(name, values, frame.implementation))
        return frame.select(names)

    def _to_frame(self, found: Any, like: Any, method: str) -> Any:
        """The output as a frame of the same library as the input."""
        if is_sparse(found):
            role, column = next(iter(self._apart.items()))
            kind = role.parameter.removesuffix("_column")
            raise ValueError(
                f"{type(self.transformer_).__name__} returns a sparse matrix, which cannot "
                f"contain the {kind} column {column!r} of a DataFrame; make it return dense "
                "columns, for example with sparse_output=False"
            )
        names = [name for name in like.columns if name not in self._apart.values()]
        if method == "transform" and hasattr(self.transformer_, "get_feature_names_out"):
            names = list(self.transformer_.get_feature_names_out())
        elif len(names) != found.shape[1]:
            names = [f"x{number}" for number in range(found.shape[1])]
        return nw.from_dict(
            {str(name): found[:, number] for number, name in enumerate(names)},
            backend=like.implementation,
        )


def _column_of(name: str, values: Any, implementation: Any) -> Any:
    """A column for a frame of some library."""
    if isinstance(values, nw.Series):
        if values.implementation is implementation:
            return values
        values = values.to_list()
    return nw.new_series(name, list(values), backend=implementation)


def _needs_labels(transformer: Any) -> bool:
    """Whether a transformer, or a part of it, learns from labels."""
    parts = [transformer, *transformer.get_params(deep=True).values()]
    return any(
        hasattr(part, "score_func")  # univariate selection, whose tags are not always set
        or (hasattr(part, "__sklearn_tags__") and get_tags(part).target_tags.required)
        for part in parts
        if not isinstance(part, type)
    )


def _read_labels(y: Any, n_rows: int) -> tuple[Any, NDArray[np.bool_]]:
    """Labels of all rows, None without labels, and which of them are known."""
    if y is None:
        return None, np.ones(n_rows, np.bool_)
    labels, _ = flatten_labels(y)
    if len(labels) != n_rows:
        raise ValueError(
            f"y has {count_of(len(labels), 'label')} but X has {count_of(n_rows, 'position')}; "
            "pass one label for every position"
        )
    known = ~are_missing(labels)
    return (np.array(labels.tolist()) if known.all() else labels), known


def _native(block: Any) -> Any:
    return block.to_native() if isinstance(block, nw.DataFrame) else block


def _take(block: Any, chosen: NDArray[np.bool_]) -> Any:
    """Some of the rows."""
    places = np.flatnonzero(chosen).tolist()
    if isinstance(block, list):
        return [block[place] for place in places]
    return _native(block[places])


def _insert(ids: NDArray[Any], found: Any, place: int) -> Any:
    """Insert a column of ids among columns of numbers."""
    left, right = found[:, :place], found[:, place:]
    if is_sparse(found):
        from scipy import sparse

        return sparse.hstack([left, sparse.csr_array(ids[:, None]), right], format="csr")
    return np.column_stack([left, ids, right])
