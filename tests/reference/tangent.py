"""Derivatives of marginals along a direction: by listing all labellings, and as a paper does it."""

import numpy as np


def covariances(probs, gains):
    """Of an event and V, as a sum over the labellings of the event; and the size of what is summed.

    Of all labellings ``probs`` (M,) and ``gains`` (M, T), what each of them gains along the
    direction at each position; (M,) both.
    """
    totals, sizes = gains.sum(axis=1), np.abs(gains).sum(axis=1)
    return probs * (totals - probs @ totals), probs * (sizes + probs @ sizes)


def node_gains(labellings, nodes):
    """(M, T)"""
    return nodes[np.arange(len(nodes)), labellings]
