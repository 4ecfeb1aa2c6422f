"""Covering arrays: few rows in which any two choices meet."""

import itertools


def cover(factors, allowed=lambda row: True):
    """Rows, dicts from names to values, such that all pairs of values that may meet do so.

    ``factors`` has the values of each name. ``allowed`` says of some choices whether they go
    together; whatever it allows, a value of every other name must go with. Greedy: a row begins
    with a pair that has not met yet, and goes on with the values that meet most others anew.
    """
    todo = dict.fromkeys(pairs_of(factors, allowed))
    rows = []
    while todo:
        row = dict(next(iter(todo)))
        others = [name for name in factors if name not in row]
        for name in sorted(others, key=lambda name: -len(factors[name])):
            options = [v for v in factors[name] if allowed(row | {name: v})]
            row[name] = max(
                options,
                key=lambda v: sum(pair_of((name, v), other) in todo for other in row.items()),
            )
        for pair in itertools.combinations(row.items(), 2):
            todo.pop(pair_of(*pair), None)
        rows.append({name: row[name] for name in factors})
    return rows


def pairs_of(factors, allowed=lambda row: True):
    """All pairs of choices that may meet."""
    return [
        pair_of((one, v), (two, w))
        for one, two in itertools.combinations(factors, 2)
        for v, w in itertools.product(factors[one], factors[two])
        if allowed({one: v, two: w})
    ]


def pair_of(one, two):
    """Two choices, (name, value) each, in an order that does not depend on theirs."""
    return (one, two) if one[0] < two[0] else (two, one)
