"""Schema: the columns in prediction must match the columns in training."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.counting import count_of
from hedgerow.sequences import Schema


def check_schema(fitted: Schema, new: Schema, model: str = "CRF") -> None:
    """Raise ValueError unless a model that was fitted on one schema can read the other.

    Names are compared if both have them. If only one has names (a DataFrame and an array), numeric
    columns are matched by position.

    Parameters
    ----------
    fitted, new : Schema
        The schemas of the training data and of the new data.
    model : str
        The model's name in messages, one word.
    """
    if fitted.kind != new.kind:
        raise ValueError(
            f"X holds {_describe(new)}, but {model} was fitted on {_describe(fitted)}; "
            "pass X in the form used in training"
        )
    _check_parents(fitted, new, model)
    if fitted.names is not None and new.names is not None:
        _check_names(fitted.names, new.names, model)
    if fitted.n_features != new.n_features:
        raise ValueError(
            f"X has {new.n_features} features, but {model} is expecting {fitted.n_features} "
            "features as input"
        )
    _check_kinds(fitted, new, model)
    if (fitted.names is None) != (new.names is None) and not all(fitted.numeric):
        has, like_that = ("has", "without") if fitted.names is None else ("lacks", "with the same")
        raise ValueError(
            f"X {has} column names, unlike the X that {model} was fitted on, and "
            f"{fitted.column(fitted.numeric.index(False))} is text, so columns cannot be "
            f"matched: pass X {like_that} column names, as in fit"
        )


def first_difference(
    expected: Sequence[object], got: Sequence[object], there: str, here: str
) -> str:
    """Describe where two lists of column names first differ, and how."""
    missing = [name for name in expected if name not in got]
    if missing:
        return f"column {missing[0]!r} of {there} is missing in {here}"
    extra = [name for name in got if name not in expected]
    if extra:
        return f"column {extra[0]!r} of {here} is not in {there}"
    place, names = next(
        (place, names)
        for place, names in enumerate(zip(expected, got, strict=True))
        if names[0] != names[1]
    )
    return f"the order differs, column {place} is {names[1]!r} but {names[0]!r} in {there}"


def _check_names(fitted: tuple[str, ...], new: tuple[str, ...], model: str) -> None:
    if fitted != new:
        difference = first_difference(fitted, new, "the training X", "this X")
        raise ValueError(
            f"X has different columns from those that {model} was fitted on: {difference}; "
            "pass the columns used in training, and no others"
        )


def _check_parents(fitted: Schema, new: Schema, model: str) -> None:
    """Check that both are chains, or both have parents."""
    if fitted.has_parents and not new.has_parents:
        raise ValueError(
            f"{model} was fitted with parents, but X comes without parents; pass parents=..., or X "
            "with the column that parents_column names. For a chain the parents are -1, 0, 1, ..., "
            "or 0, 1, 2, ... with parents_format='conllu'"
        )
    if new.has_parents and not fitted.has_parents:
        raise ValueError(
            f"X comes with parents, but {model} was fitted without, on chains; leave them out, or "
            "fit with parents"
        )


def _check_kinds(fitted: Schema, new: Schema, model: str) -> None:
    """Check that the same columns are numeric."""
    if fitted.numeric == new.numeric:
        return
    number = next(n for n, flag in enumerate(fitted.numeric) if flag != new.numeric[n])
    was, now = ("numeric", "text") if fitted.numeric[number] else ("text", "numeric")
    named = fitted if fitted.names is not None else new
    raise ValueError(
        f"{named.column(number)} was {was} when {model} was fitted and is {now} now; convert it"
        + ("" if new.names is not None or now == "text" else ", or pass a DataFrame")
    )


def _describe(schema: Schema) -> str:
    if schema.kind == "items":
        return "dicts or attribute strings"
    return f"{count_of(schema.n_features, 'column')} (arrays, DataFrames or sparse matrices)"
