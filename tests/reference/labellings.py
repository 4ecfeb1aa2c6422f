"""Labellings of short sequences, and which of them constraints allow, by enumeration."""

import itertools

import numpy as np

from hedgerow.labels import Constraints


def keeps(constraints, codes):
    """Whether a labelling satisfies constraints, checked one by one."""
    return bool(
        constraints.start[codes[0]]
        and constraints.end[codes[-1]]
        and all(constraints.allowed[j, k] for j, k in itertools.pairwise(codes))
    )


def labellings(n_labels, length):
    return itertools.product(range(n_labels), repeat=length)


def first_dead_end(constraints, lengths, codes):
    """The first position that no labelling reaches, by enumeration."""
    offsets = np.cumsum([0, *lengths])
    for sequence, length in enumerate(lengths):
        known = codes[offsets[sequence] : offsets[sequence + 1]]
        for position in range(length):
            anywhere = np.ones_like(constraints.end)
            end = constraints.end if position == length - 1 else anywhere
            rules = Constraints(constraints.allowed, constraints.start, end)
            if not any(
                keeps(rules, labels)
                and all(code in (-1, label) for code, label in zip(known, labels, strict=False))
                for labels in labellings(len(constraints.end), position + 1)
            ):
                return sequence, position
    return None
