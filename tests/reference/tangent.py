"""Derivatives of marginals along a direction: by enumeration, and as in the paper."""

import numpy as np


def covariances(probs, gains):
    """Covariance of an event and V, as a sum over its labellings, and the magnitude of the terms.

    Of all labellings ``probs`` (M,) and ``gains`` (M, T), what each of them gains along the
    direction at each position; (M,) both.
    """
    totals, sizes = gains.sum(axis=1), np.abs(gains).sum(axis=1)
    return probs * (totals - probs @ totals), probs * (sizes + probs @ sizes)


def node_gains(labellings, nodes):
    """(M, T)"""
    return nodes[np.arange(len(nodes)), labellings]
