"""Odd facts: for any value, the result is queries or one of our error messages."""

from collections.abc import Callable
from typing import Any

import pandas as pd
from hypothesis import strategies as st

from abuse.kind import Case, Kind
from abuse.odd_values import VALUES, check_worded
from hedgerow import TreeCRF
from hedgerow.relational import At, Atoms, RelationalFeatures

__all__ = ["KINDS"]

FACTS = [("a", "x")]
EVENTS = {"s": [1, 1], "w": ["a", "b"]}


def table_of(column: str, value: Any) -> pd.DataFrame:
    """Events with an odd value in one column."""
    return pd.DataFrame(EVENTS | {column: pd.Series([value, "a"], dtype=object)})


# Facts with the value at different places.
PLACES: dict[str, Callable[[Any], Any]] = {
    "argument": lambda value: [[[("a", value)]]],
    "predicate": lambda value: [[[(value, "x")]]],
    "position number": lambda value: [[[("a", At(value))]]],
    "atom": lambda value: [[[value]]],
    "position": lambda value: [[value]],
    "sequence": lambda value: [value],
    "X": lambda value: value,
    "background": lambda value: Atoms([[FACTS]], background=value),
    "per_sequence": lambda value: Atoms([[FACTS]], per_sequence=value),
    "cell": lambda value: Atoms.from_tables(table_of("w", value), sequence="s"),
    "key": lambda value: Atoms.from_tables(table_of("k", value), sequence="s", key="k"),
    "sequence column": lambda value: Atoms.from_tables(pd.DataFrame(EVENTS), sequence=value),
    "references": lambda value: Atoms.from_tables(pd.DataFrame(EVENTS), references=value),
    "tables": lambda value: Atoms.from_tables(pd.DataFrame(EVENTS), value),
}
PARAMETERS = sorted(RelationalFeatures().get_params())


def check_training(features: RelationalFeatures, X: Any, names: list[Any]) -> None:
    """Trees accept the same facts, and find the same queries."""
    y = [[t % 2 for t in range(len(sequence))] for sequence in names]
    if any(len(labels) > 1 for labels in y):
        crf = TreeCRF(queries=features, n_rounds=1, min_child_weight=0.0).fit(X, y)
        assert [len(labels) for labels in crf.predict(X)] == list(map(len, y))
        assert crf.queries_.n_queries_ >= features.n_queries_


def check_facts(case: Case) -> None:
    """Find queries; any error must be one of ours."""
    place, value = case["place"], VALUES[case["value"]]
    try:
        if place in PARAMETERS:
            RelationalFeatures(**{place: value}).fit([[FACTS]])
        else:
            features, X = RelationalFeatures(), PLACES[place](value)
            names = list(features.fit_transform(X))
            assert names == list(features.transform(X))
            check_training(features, X, names)
    except (ValueError, TypeError) as error:
        check_worded(error)


KINDS = [
    Kind(
        "inputs-facts",
        st.fixed_dictionaries(
            {
                "place": st.sampled_from([*PLACES, *PARAMETERS]),
                "value": st.sampled_from(list(VALUES)),
            }
        ),
        check_facts,
        in_suite=30,
        share=0.3,
    )
]
