"""Columns and their bins: slow and simple."""

import numpy as np

from hedgerow.encode import encode
from hedgerow.trees.columns import Columns


def learn(X, max_bins=255, index=None, n_threads=1):
    sequences = encode(X, index=index)
    return Columns.learn(sequences, index, max_bins, n_threads), sequences


def column_cuts(columns, number):
    return columns.cuts[columns.cut_offsets[number] : columns.cut_offsets[number + 1]]


def search(values, cuts_of_column):
    """Bins: 1 + the number of cuts that are <= the value, 0 for NaN."""
    bins = 1 + np.searchsorted(cuts_of_column, values, side="right")
    return np.where(np.isnan(values), 0, bins)


def to_dense_bins(columns, binned):
    """Bins of the attributes as (N, A)."""
    n_rows = len(binned.indptr) - 1
    table = np.tile(columns.default_bins, (n_rows, 1))
    rows = np.repeat(np.arange(n_rows), np.diff(binned.indptr))
    table[rows, binned.attributes] = binned.attribute_bins
    return table


def midpoints(known):
    """Halfway between neighbours, or the upper one where there is no float in between."""
    halves = known[:-1] / 2 + known[1:] / 2
    return np.where((halves > known[:-1]) & (halves <= known[1:]), halves, known[1:])
