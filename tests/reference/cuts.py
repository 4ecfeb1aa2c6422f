"""Cuts of a column, with NumPy."""

import numpy as np

from reference.columns import midpoints


def cut_values(values, max_bins):
    """Cuts of a column's values."""
    distinct, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    return midpoints(distinct)[choose_gaps(counts, max_bins)]


def cut_entries(values, n_positions, max_bins):
    """Cuts of an attribute by its entries, none if they are all 0 or 1; elsewhere it is 0."""
    values = values[values != 0]
    finite = values[np.isfinite(values)]
    if not (finite != 1).any():
        return np.empty(0)
    distinct, counts = np.unique([*finite, 0.0], return_counts=True)
    counts[distinct == 0] = n_positions - len(values)
    return midpoints(distinct)[choose_gaps(counts, max_bins)]


def choose_gaps(counts, max_bins):
    """Choose cuts between m ascending values that occur `counts` times: (m - 1,), True for a cut.

    At most one count is 0: that of absent attributes. There are min(m, `max_bins`) bins. A value
    that fills more than a bin gets its own bin, if there are enough bins, and does not affect the
    cuts between the others.
    """
    if len(counts) <= max_bins:
        return np.ones(max(0, len(counts) - 1), np.bool_)
    heavy, size = find_heavy(counts, max_bins)
    light = np.where(heavy, 0, counts)
    bins = np.floor((np.cumsum(light) - light / 2) / size)
    gaps = (bins[1:] != bins[:-1]) | heavy[1:] | heavy[:-1]
    # Heavy values may split a bin: merge neighbours, small ones first.
    starts = np.concatenate([[0], np.flatnonzero(gaps) + 1])
    sizes = np.add.reduceat(counts, starts)
    while len(starts) > max_bins:
        left = int(np.argmin(sizes[:-1] + sizes[1:]))
        gaps[starts[left + 1] - 1] = False
        sizes[left] += sizes[left + 1]
        starts, sizes = np.delete(starts, left + 1), np.delete(sizes, left + 1)
    return gaps


def find_heavy(counts, max_bins):
    """Which values fill more than a bin, (m,), and how large a bin of the others is.

    With H heavy values, size = (sum of the light counts) / (max_bins - H), and a value is heavy if
    it occurs more often than that: the more are heavy, the smaller is the size.
    """
    heavy = np.zeros(len(counts), np.bool_)
    while True:
        size = float(counts[~heavy].sum() / max(1, max_bins - int(heavy.sum())))
        heavier = counts > size
        if (heavier == heavy).all():
            return heavy, size
        heavy = heavier
