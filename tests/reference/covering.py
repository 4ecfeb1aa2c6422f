"""Covering arrays: few rows that contain every pair of choices."""

import itertools


def cover(factors, allowed=lambda row: True):
    """Rows, dicts from names to values, that contain all pairs of values that are allowed.

    ``factors`` has the values of each name. ``allowed`` tells whether some choices can be combined;
    whatever it allows must be possible with a value of every other name. Greedy: a row starts with
    a pair that is not covered yet, and continues with the values that cover the most new pairs.
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
    """All pairs of choices that are allowed."""
    return [
        pair_of((one, v), (two, w))
        for one, two in itertools.combinations(factors, 2)
        for v, w in itertools.product(factors[one], factors[two])
        if allowed({one: v, two: w})
    ]


def pair_of(one, two):
    """Two choices, (name, value) each, in a canonical order."""
    return (one, two) if one[0] < two[0] else (two, one)
