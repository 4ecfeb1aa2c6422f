"""Chunks in strict mode: every part of a labelling is matched with the pattern of its scheme."""

import re

PATTERNS = {"IOB2": "BI*", "IOE2": "I*E", "IOBES": "BI*E|S", "BILOU": "BI*L|U"}


def find_chunks(labels, scheme):
    """All (type, first, last) whose prefixes match the pattern and that cannot be extended."""
    prefixes = [label[0] for label in labels]
    kinds = [label[2:] for label in labels]
    found = set()
    for first in range(len(labels)):
        for last in range(first, len(labels)):
            one_kind = len(set(kinds[first : last + 1])) == 1
            text = "".join(prefixes[first : last + 1])
            if one_kind and re.fullmatch(PATTERNS[scheme], text):
                found.add((kinds[first], first, last))
    return {chunk for chunk in found if not any(is_part(chunk, other) for other in found)}


def is_part(chunk, other):
    return chunk != other and other[1] <= chunk[1] and chunk[2] <= other[2]


def count_strictly(y_true, y_pred, scheme):
    """(true, predicted, correct) by type."""
    counts = {}
    for true, predicted in zip(y_true, y_pred, strict=True):
        one, other = find_chunks(true, scheme), find_chunks(predicted, scheme)
        for place, chunks in enumerate((one, other, one & other)):
            for kind, _, _ in chunks:
                counts.setdefault(kind, [0, 0, 0])[place] += 1
    return counts
