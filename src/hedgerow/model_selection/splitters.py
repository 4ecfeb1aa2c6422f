"""Splitters that keep sequences whole, for ``cv=`` of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator, ShuffleSplit

from hedgerow.counting import count_of
from hedgerow.encode import check_group_column
from hedgerow.encode.codes import code_values, is_missing
from hedgerow.encode.forms import EXPECTED, check_two_dimensional, is_sparse, is_table, settle
from hedgerow.encode.group_column import split_off_groups
from hedgerow.encode.groups import number_groups, read_groups
from hedgerow.parameters import check_choice, check_number, read_random_state

__all__ = ["SequenceKFold", "StratifiedSequenceKFold", "train_test_split"]

# What to do if X does not have the column of group ids.
WITHOUT_COLUMN = (
    "pass X with the column of group ids, or set group_column=None and pass the argument groups"
)
# What has the parameter group_column in cross-validation.
OF_BOTH = ", for the estimator and also for SequenceKFold if you pass that as cv"


class SequenceKFold(BaseCrossValidator):  # type: ignore[misc]
    """K folds of whole sequences.

    A list of sequences is split by its entries. A flat table is split by groups of rows: by the
    column `group_column`, or by the argument ``groups`` of ``cross_val_score(..., groups=...)``.
    For a list of sequences, or together with `group_column`, ``groups`` keeps several sequences
    in the same fold, for example those of one speaker.

    Parameters
    ----------
    n_splits : int, default 5
        Number of folds.
    shuffle : bool, default False
        Whether to shuffle the sequences. False: consecutive sequences are in the same fold.
    random_state : int, RandomState or None, default None
        Seed of the random order.
    group_column : str, int or None, default None
        Name or number of the column of a flat X with the sequence id of each row, as in the
        estimator.

    Examples
    --------
    >>> import pandas as pd
    >>> from hedgerow import TreeCRF
    >>> from hedgerow.model_selection import SequenceKFold
    >>> from sklearn.model_selection import cross_val_score
    >>> table = pd.DataFrame({"walk": [1, 1, 2, 2, 3, 3], "speed": [0, 1, 0, 1, 0, 1]})
    >>> folds = SequenceKFold(3, group_column="walk")
    >>> [test.tolist() for train, test in folds.split(table)]
    [[0, 1], [2, 3], [4, 5]]
    >>> crf = TreeCRF(n_rounds=5, min_child_weight=0, group_column="walk")
    >>> cross_val_score(crf, table, ["slow", "fast"] * 3, cv=folds).tolist()
    [1.0, 1.0, 1.0]
    """

    # With metadata routing it always receives the groups, if there are any.
    __metadata_request__split = {"groups": True}  # noqa: RUF012

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: Any = None,
        group_column: str | int | None = None,
    ) -> None:
        check_number("n_splits", n_splits, minimum=2, integer=True)
        check_choice("shuffle", shuffle, (True, False))
        check_group_column(group_column)
        if random_state is not None and not shuffle:
            raise ValueError(
                f"random_state is {random_state!r}, but nothing is drawn at random; pass "
                "shuffle=True too, or leave random_state out"
            )
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self.group_column = group_column

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds, for any data."""
        return int(self.n_splits)

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Indices of the training and of the test part of each fold, in the order of X.

        Parameters
        ----------
        X
            A list of sequences, or a flat table.
        y
            The labels.
        groups : (N,) for a flat X, (S,) for a list, optional
            Rows or sequences with the same id are in the same fold.

        Yields
        ------
        train, test : arrays of int
            Indices of rows if X is flat, otherwise of sequences.
        """
        units = Units.read(X, groups, self.group_column, OF_BOTH)
        if units.number < self.n_splits:
            raise ValueError(
                f"n_splits is {self.n_splits}, but X has {count_of(units.number, units.noun)}; "
                "every fold needs at least one: lower n_splits"
            )
        folds = self._deal(units, y)
        for fold in range(int(self.n_splits)):
            yield units.where(folds != fold), units.where(folds == fold)

    def _deal(self, units: Units, y: Any) -> NDArray[np.int64]:
        """Fold of each unit."""
        folds = np.empty(units.number, np.int64)
        dealt = np.repeat(np.arange(self.n_splits), self._sizes(units.number))
        folds[self._order(units.number)] = dealt
        return folds

    def _sizes(self, n_units: int) -> NDArray[np.int64]:
        """Number of units in each fold."""
        return n_units // self.n_splits + (np.arange(self.n_splits) < n_units % self.n_splits)

    def _order(self, n_units: int) -> NDArray[np.int64]:
        return _order(n_units, self.shuffle, self.random_state)


class StratifiedSequenceKFold(SequenceKFold):
    """K folds of whole sequences with about the same label frequencies in each fold.

    It has the parameters and methods of `SequenceKFold`. Sequences are assigned to folds one by
    one, the longest first, each to the fold that needs its labels most.

    Examples
    --------
    >>> from hedgerow.model_selection import StratifiedSequenceKFold
    >>> X = [[["u"]] * 2 for _ in range(4)]
    >>> y = [["a", "b"], ["a", "b"], ["a", "a"], ["a", "a"]]
    >>> [test.tolist() for train, test in StratifiedSequenceKFold(2).split(X, y)]
    [[0, 2], [1, 3]]
    """

    def _deal(self, units: Units, y: Any) -> NDArray[np.int64]:
        if y is None:
            raise ValueError("y is None, but StratifiedSequenceKFold needs the labels; pass y")
        counts = units.count_labels(y, "y")
        sizes = self._sizes(units.number)
        return _deal_alike(counts, sizes, self._order(units.number))


def train_test_split(
    X: Any,
    *arrays: Any,
    groups: Any = None,
    group_column: str | int | None = None,
    test_size: float | int | None = None,
    train_size: float | int | None = None,
    shuffle: bool = True,
    random_state: Any = None,
    stratify: Any = None,
) -> list[Any]:
    """Split data into a training and a test part, of whole sequences.

    Parameters
    ----------
    X
        A list of sequences, or a flat table.
    *arrays
        Further data to split in the same way, such as y: one entry per sequence, or per row of a
        flat X.
    groups : (N,) for a flat X, (S,) for a list, optional
        Ids of what is kept together; for a flat X without `group_column`, the sequence of each row.
        Like `arrays`, this argument is divided between the two parts and returned.
    group_column : str, int or None, default None
        Name or number of the column of a flat X with the sequence id of each row.
    test_size, train_size : float, int or None, default None
        Share or number of the sequences in each part; of the groups, if `groups` joins several
        sequences. None: the rest; if both are None, a quarter is for testing.
    shuffle : bool, default True
        Whether to choose sequences at random. False: the first ones are the training set and the
        next ones the test set, unless `stratify` is given.
    random_state : int, RandomState or None, default None
        Seed of the choice.
    stratify : labels or None, default None
        Labels, in the format of y, whose frequencies should be about the same in both parts.

    Returns
    -------
    list
        X_train, X_test, then the two parts of each of `arrays`, and finally the two parts of
        `groups` if they were given. Sequences keep their order.

    Examples
    --------
    >>> from hedgerow.model_selection import train_test_split
    >>> X, y = [[["u"], ["v"]], [["v"]], [["u"]]], [["a", "b"], ["b"], ["a"]]
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, shuffle=False)
    >>> y_train, y_test
    ([['a', 'b'], ['b']], [['a']])
    """
    check_choice("shuffle", shuffle, (True, False))
    check_group_column(group_column)
    units = Units.read(X, groups, group_column)
    if test_size is None and train_size is None:
        test_size = 0.25
    sizes = ShuffleSplit(1, test_size=test_size, train_size=train_size, random_state=0)
    n_train, n_test = map(len, next(sizes.split(np.empty(units.number))))
    order = _order(units.number, shuffle, random_state)
    capacities = np.array([n_train, n_test, units.number - n_train - n_test])
    if stratify is None:
        parts = np.empty(units.number, np.int64)
        parts[order] = np.repeat(np.arange(3), capacities)
    else:
        parts = _deal_alike(units.count_labels(stratify, "stratify"), capacities, order)
    train, test = units.where(parts == 0), units.where(parts == 1)
    split: list[Any] = []
    for number, array in enumerate((X, *arrays, *(() if groups is None else (groups,))), 1):
        n_items = count_items(array)
        if n_items != len(units.of_items):
            raise ValueError(
                f"argument {number} of train_test_split has {count_of(n_items, 'entry')}, but X "
                f"has {count_of(len(units.of_items), units.item)}; pass one entry for each"
            )
        split += [take_items(array, train), take_items(array, test)]
    return split


@dataclass(frozen=True, eq=False)
class Units:
    """Units that are never split: sequences, or groups of sequences.

    Attributes
    ----------
    of_items : (n_items,) int64
        Number of the unit of each item, a row of a flat X or an entry of a list.
    flat : bool
        Whether X is flat.
    noun : str
        Name of a unit.
    """

    of_items: NDArray[np.int64]
    flat: bool
    noun: str

    @classmethod
    def read(cls, X: Any, groups: Any, group_column: str | int | None, whose: str = "") -> Units:
        """Find the units of X.

        ``whose`` says what has the parameter `group_column`, for messages.
        """
        block = settle(X, "X")
        if not (isinstance(block, list | tuple | np.ndarray | nw.DataFrame) or is_sparse(block)):
            raise TypeError(f"X is of type {type(X).__name__}; {EXPECTED}")
        flat = _is_flat(block)
        n_items = count_items(block)
        by_column = None
        if flat and group_column is not None:
            if not isinstance(block, list | tuple):
                check_two_dimensional(block, "X")
            ids, _ = split_off_groups(block, group_column, "X", WITHOUT_COLUMN)
            offsets = read_groups(ids, n_items, group_column)
            by_column = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        if groups is None:
            if flat and by_column is None:
                raise ValueError(
                    "X is one flat table without ids of sequences; pass groups=..., or name the "
                    f"column of X that holds the ids: group_column=...{whose}"
                )
            return cls(np.arange(n_items) if by_column is None else by_column, flat, "sequence")
        of_items = number_groups(groups, n_items, "rows" if flat else "sequences")
        if by_column is not None:
            _check_whole(of_items, by_column, group_column)
        return cls(of_items, flat, "group")

    @property
    def number(self) -> int:
        """Number of units."""
        return int(self.of_items.max(initial=-1)) + 1

    @property
    def item(self) -> str:
        """Name of an item."""
        return "row" if self.flat else "sequence"

    def where(self, flags: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Items of the units that are flagged."""
        return np.flatnonzero(flags[self.of_items])

    def count_labels(self, y: Any, name: str) -> NDArray[np.float64]:
        """Count of each label in each unit, (units, labels); missing labels have a column too.

        ``name`` is the name of the argument in messages.
        """
        parts = list(y)
        if len(parts) != len(self.of_items):
            raise ValueError(
                f"{name} has {count_of(len(parts), 'entry')} but X has "
                f"{count_of(len(self.of_items), self.item)}; pass one entry for each"
            )
        lists = [[part] for part in parts] if self.flat else [list(part) for part in parts]
        plain = ([None if is_missing(label) else label for label in part] for part in lists)
        distinct, codes = code_values(plain)
        units = np.repeat(self.of_items, list(map(len, lists)))
        shape = (self.number, len(distinct))
        counts = np.bincount(units * shape[1] + codes, minlength=shape[0] * shape[1])
        return counts.reshape(shape).astype(np.float64)


def _deal_alike(
    counts: NDArray[np.float64], sizes: NDArray[np.int64], order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Assign units to parts so that each part has its share of every label.

    Parameters
    ----------
    counts : (units, labels)
        Count of each label in each unit.
    sizes : (parts,)
        Number of units in each part.
    order : (units,)
        The order of units of the same length.

    Returns
    -------
    (units,) int64
        Number of the part of each unit.
    """
    shares, totals = sizes / sizes.sum(), counts.sum(axis=0)
    left, part_of = sizes.copy(), np.empty(len(counts), np.int64)
    dealt, seen = np.zeros((len(sizes), len(totals))), np.zeros(len(totals))
    for unit in order[np.argsort(-counts[order].sum(axis=1), kind="stable")]:
        seen += counts[unit]
        # Of all parts, this one increases the sum of squared excesses (as shares of the total) the
        # least.
        surplus = (dealt - shares[:, None] * seen) / totals
        excess = np.einsum("pk,k->p", surplus, counts[unit] / totals)
        part = int(np.where(left > 0, excess, np.inf).argmin())
        dealt[part] += counts[unit]
        left[part] -= 1
        part_of[unit] = part
    return part_of


def _order(n_units: int, shuffle: bool, random_state: Any) -> NDArray[np.int64]:
    order = np.arange(n_units)
    if shuffle:
        read_random_state(random_state).shuffle(order)
    return order


def _check_whole(
    of_items: NDArray[np.int64], sequences: NDArray[np.int64], group_column: str | int | None
) -> None:
    """Raise ValueError if groups split a sequence."""
    torn = np.flatnonzero((sequences[1:] == sequences[:-1]) & (of_items[1:] != of_items[:-1]))
    if len(torn):
        raise ValueError(
            f"groups has two ids within one sequence of group_column={group_column!r}, at rows "
            f"{torn[0]} and {torn[0] + 1}; all rows of a sequence need the same group"
        )


def _is_flat(block: Any) -> bool:
    """Whether X is one table of rows, not a list of sequences."""
    if isinstance(block, np.ndarray):
        return block.ndim != 3
    return isinstance(block, nw.DataFrame) or is_sparse(block) or is_table(block)


def count_items(block: Any) -> int:
    return int(block.shape[0]) if hasattr(block, "shape") else len(block)


def take_items(array: Any, items: NDArray[np.int64]) -> Any:
    """Select some items of anything that can be split."""
    if isinstance(array, np.ndarray):
        return array[items]
    if is_sparse(array):
        return array.tocsr()[items]
    wrapped = nw.from_native(array, allow_series=True, eager_only=True, pass_through=True)
    if isinstance(wrapped, nw.DataFrame | nw.Series):
        return wrapped[items.tolist()].to_native()
    return [array[item] for item in items.tolist()]
