"""Random tables of bins, with all kinds of columns."""

import numpy as np
from hypothesis import strategies as st

from reference.trees import Table

# n_bins, share of the most frequent bin, that bin, share of missing values, categorical
COLUMNS = {
    "few": (3, 0.0, 1, 0.0, False),
    "few, some missing": (3, 0.0, 1, 0.3, False),
    "many": (255, 0.0, 1, 0.1, False),
    "binary": (2, 0.0, 1, 0.0, False),
    "constant": (1, 1.0, 1, 0.0, False),
    "all missing": (4, 1.0, 0, 0.0, False),
    "one bin": (1, 0.0, 1, 0.5, False),
    "mostly low": (4, 0.8, 1, 0.0, False),
    "mostly middle": (5, 0.7, 3, 0.0, False),
    "mostly middle, some missing": (5, 0.7, 3, 0.15, False),
    "mostly missing": (3, 0.8, 0, 0.0, False),
    "categories": (5, 0.0, 1, 0.0, True),
    "categories, some missing": (9, 0.0, 1, 0.3, True),
    "categories, mostly one": (6, 0.7, 4, 0.1, True),
}
ATTRIBUTES = {
    "there or not": (2, 0.7, 1, 0.0, False),
    "there nearly always": (2, 0.2, 1, 0.0, False),
    "negative and positive": (6, 0.6, 3, 0.0, False),
    "negative": (4, 0.6, 4, 0.0, False),
    "with missing": (4, 0.5, 2, 0.2, False),
    "missing if absent": (3, 0.7, 0, 0.0, False),
    "never there": (2, 1.0, 1, 0.0, False),
    "categories": (5, 0.6, 2, 0.1, True),
}


def make_column(kind, n_positions, rng):
    n_bins, share, usual, missing, _ = kind
    bins = rng.integers(1, n_bins + 1, n_positions)
    bins[rng.random(n_positions) < missing] = 0
    bins[rng.random(n_positions) < share] = usual
    return bins


def make_table(columns, attributes, lengths, rng):
    """A table of columns of these kinds, in sequences of these lengths."""
    kinds = [COLUMNS[name] for name in columns] + [ATTRIBUTES[name] for name in attributes]
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    bins = [make_column(kind, int(offsets[-1]), rng) for kind in kinds]
    return Table(
        np.array(bins, np.int64).reshape(len(kinds), int(offsets[-1])).T,
        np.array([kind[0] for kind in kinds], np.int64),
        np.array([kind[4] for kind in kinds], np.bool_),
        np.array([kind[2] for kind in kinds[len(columns) :]], np.int64),
        offsets,
    )


@st.composite
def tables(draw, columns=tuple(COLUMNS), attributes=tuple(ATTRIBUTES), max_length=14):
    """Up to four sequences and at least one column."""
    dense = draw(st.lists(st.sampled_from(columns), max_size=3))
    sparse = draw(st.lists(st.sampled_from(attributes), min_size=not dense, max_size=3))
    lengths = draw(st.lists(st.integers(1, max_length), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return make_table(dense, sparse, lengths, rng)


windows = st.sampled_from([(0, 0), (1, 0), (0, 2), (1, 1), (2, 1)])
