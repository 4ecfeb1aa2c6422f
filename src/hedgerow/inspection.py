"""Inspection: permutation importance of features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from hedgerow.encode.forms import is_sparse
from hedgerow.encode.rows import Rows
from hedgerow.encode.set_apart import GROUPS, PARENTS, Role, find_column
from hedgerow.parameters import check_number, read_random_state
from hedgerow.scorers import last_step, make_position_scorer

__all__ = ["permutation_importance"]

Scorer = Callable[..., float]


def permutation_importance(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    scoring: Any = None,
    n_repeats: int = 5,
    random_state: Any = None,
    sample_weight: ArrayLike | None = None,
    groups: Any = None,
    parents: Any = None,
    base_scores: Any = None,
    X_base: Any = None,
) -> Any:
    """Permutation importance: how much a score drops when the values of a feature are shuffled.

    scikit-learn's function of this name supports flat arrays and frames only, and would also
    shuffle the group column, which destroys the sequences. This one accepts sequences in any
    format. It shuffles a feature over all positions of all sequences, and does not shuffle the
    columns of groups and parents.

    Parameters
    ----------
    estimator
        A fitted CRF, or a pipeline that ends in one.
    X, y
        Sequences and their labels, preferably a test set.
    scoring : str, callable, list, dict or None, default None
        The score: the name of one of scikit-learn's scorers, computed over positions (see
        `hedgerow.scorers.make_position_scorer`), a callable ``scorer(estimator, X, y)``, or None
        for ``estimator.score``. A list of names or a dict of scorers gives a dict of results.
    n_repeats : int, default 5
        How often each feature is shuffled.
    random_state : int, RandomState or None, default None
        Random seed.
    sample_weight : (S,), or (N,) for a flat X, optional
        Weights for the scorer.
    groups : (N,), optional
        For a flat X, the sequence of each row; not needed by a model with a `group_column`.
    parents : list of arrays, or (N,) for a flat X, optional
        Parents of the positions; not needed by a model with a `parents_column`.
    base_scores : list of (T, K) arrays, or (N, K), optional
        Base scores, if the model was fitted with `base_scores`; they are not shuffled.
    X_base : optional
        Features of the base model, if it does not use X; they are not shuffled.

    Returns
    -------
    sklearn.utils.Bunch, or a dict of them
        ``importances``, (number of features, `n_repeats`), how much the score dropped;
        ``importances_mean`` and ``importances_std`` over the repetitions, and ``feature_names``,
        the features in this order: all columns but those of groups and parents (``x0``, ``x1``,
        ... where X has no names), or the keys of dicts, sorted.

    Examples
    --------
    >>> import pandas as pd
    >>> from hedgerow import TreeCRF
    >>> from hedgerow.inspection import permutation_importance
    >>> X = pd.DataFrame({
    ...     "walk": [0] * 6 + [1] * 6,
    ...     "speed": [1, 1, 5, 5, 1, 5, 5, 5, 1, 1, 5, 1],
    ...     "noise": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8],
    ... })
    >>> y = ["run" if speed > 2 else "walk" for speed in X["speed"]]
    >>> crf = TreeCRF(group_column="walk", n_rounds=10, min_child_weight=0).fit(X, y)
    >>> found = permutation_importance(crf, X, y, n_repeats=3, random_state=0)
    >>> found.feature_names, (found.importances_mean > 0).tolist()
    (['speed', 'noise'], [True, False])
    """
    check_number("n_repeats", n_repeats, minimum=1, integer=True)
    rows, random = Rows.of(X), read_random_state(random_state)
    apart = _columns_apart(last_step(estimator), {GROUPS: groups, PARENTS: parents})
    columns = _find_columns(rows, apart)
    scorers = _read_scoring(scoring)
    given = {
        "sample_weight": sample_weight,
        "groups": groups,
        "parents": parents,
        "base_scores": base_scores,
        "X_base": X_base,
    }
    options = {name: value for name, value in given.items() if value is not None}

    def measure(block: Any) -> list[float]:
        shaped = rows.cut(block)
        return [float(scorer(estimator, shaped, y, **options)) for scorer in scorers.values()]

    before = np.array(measure(rows.native))
    drops = np.empty((len(scorers), len(columns), int(n_repeats)))
    for place, column in enumerate(columns.values()):
        for repeat in range(int(n_repeats)):
            order = random.permutation(rows.n_rows)
            drops[:, place, repeat] = before - measure(_shuffle(rows.block, column, order))
    bunches = {
        name: Bunch(
            importances_mean=part.mean(axis=1),
            importances_std=part.std(axis=1),
            importances=part,
            feature_names=list(columns),
        )
        for name, part in zip(scorers, drops, strict=True)
    }
    return bunches if _is_several(scoring) else bunches["score"]


def _is_several(scoring: Any) -> bool:
    return isinstance(scoring, Mapping | list | tuple | set)


def _read_scoring(scoring: Any) -> dict[str, Scorer]:
    """Scorers by name."""
    if isinstance(scoring, Mapping):
        return {str(name): _read_scorer(each) for name, each in scoring.items()}
    if _is_several(scoring):
        return {str(name): _read_scorer(name) for name in scoring}
    return {"score": _read_scorer(scoring)}


def _read_scorer(scoring: Any) -> Scorer:
    if scoring is None:
        return lambda estimator, X, y, **options: estimator.score(X, y, **options)
    if isinstance(scoring, str):
        return make_position_scorer(scoring)
    if not callable(scoring):
        raise TypeError(
            f"scoring is {scoring!r}; expected the name of a scorer such as 'f1_macro', a callable "
            "scorer(estimator, X, y), a list or a dict of them, or None"
        )
    scorer: Scorer = scoring
    return scorer


def _columns_apart(crf: Any, given: Mapping[Role, Any]) -> dict[Role, str | int]:
    """Columns of groups and parents in X, unless these are passed as arguments."""
    found = {role: getattr(crf, role.parameter, None) for role in given if given[role] is None}
    return {role: column for role, column in found.items() if column is not None}


def _find_columns(rows: Rows, apart: Mapping[Role, str | int]) -> dict[str, Any]:
    """The features by name: numbers of columns, or keys of dicts."""
    block, where = rows.block, "X" if rows.offsets is None else "X[0]"
    if isinstance(block, list):
        if not all(isinstance(position, Mapping) for position in block):
            raise TypeError(
                "X holds lists of attribute names, which have no columns to shuffle; pass arrays, "
                "DataFrames, sparse matrices or lists of dicts"
            )
        keys = sorted({key for p in block for key in p} - {apart.get(PARENTS)}, key=str)
        return {str(key): key for key in keys}
    names = block.columns if isinstance(block, nw.DataFrame) else None
    numbers = list(range(block.shape[1]))
    for role, column in apart.items():
        numbers.remove(find_column(role, column, block.shape[1], names, where))
    if names is None or not all(isinstance(names[number], str) for number in numbers):
        return {f"x{place}": number for place, number in enumerate(numbers)}  # as in the model
    return {names[number]: number for number in numbers}


def _shuffle(block: Any, column: Any, order: NDArray[np.int64]) -> Any:
    """The same rows, with the values of one column shuffled."""
    if isinstance(block, list):
        return _shuffle_key(block, column, order.tolist())
    if isinstance(block, nw.DataFrame):
        return block.with_columns(block[:, column][order.tolist()])
    if is_sparse(block):
        return _shuffle_sparse(block, column, order)
    shuffled = block.copy()
    shuffled[:, column] = block[order, column]
    return shuffled


def _shuffle_key(
    positions: Sequence[Mapping[Any, Any]], key: Any, order: list[int]
) -> list[dict[Any, Any]]:
    shuffled = []
    for position, other in zip(positions, order, strict=True):
        rest = {name: value for name, value in position.items() if name != key}
        shuffled.append(rest | {key: positions[other][key]} if key in positions[other] else rest)
    return shuffled


def _shuffle_sparse(block: Any, column: int, order: NDArray[np.int64]) -> Any:
    columns = block.tocsc(copy=True)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    start, stop = columns.indptr[column : column + 2]
    columns.indices[start:stop] = places[columns.indices[start:stop]]
    columns.has_sorted_indices = False
    columns.sort_indices()
    return columns.tocsr()
