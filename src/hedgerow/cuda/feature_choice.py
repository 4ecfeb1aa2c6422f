"""Which features trees and their nodes may use: the same draws as the core's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.trees.learner import GrowthRules

__all__ = ["choose_features", "count_features_of_node", "derive_keys"]

TREE_COLUMNS = 1  # purpose of random numbers, as in feature_choice.cpp


def count_share(share: float, n_features: int) -> int:
    """Number of features that are chosen, at least one."""
    return max(1, int(np.floor(share * n_features + 0.5)))


def count_features_of_node(rules: GrowthRules, n_features: int) -> int:
    """Number of features of a tree that each of its nodes may use; 0: all of them."""
    if rules.colsample_bynode >= 1:
        return 0
    of_tree = n_features
    if rules.colsample_bytree < 1:
        of_tree = count_share(rules.colsample_bytree, n_features)
    return count_share(rules.colsample_bynode, of_tree)


def choose_features(key: int, n_outputs: int, n_features: int, share: float) -> NDArray[np.uint8]:
    """Which features the tree of each output may use, (n_outputs, n_features), as the core does."""
    n_chosen = count_share(share, n_features)
    chosen = np.zeros((n_outputs, n_features), np.uint8)
    numbers = np.arange(n_features, dtype=np.uint64)
    for output in range(n_outputs):
        of_tree = derive_keys(np.uint64(key), np.array([output], np.uint64))
        draws = derive_keys(derive_keys(of_tree, np.array([TREE_COLUMNS], np.uint64)), numbers)
        chosen[output, np.argsort(draws, kind="stable")[:n_chosen]] = 1
    return chosen


def derive_keys(
    key: np.uint64 | NDArray[np.uint64], purposes: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Keys for some purposes, derived from a key as random.hpp does."""
    found: NDArray[np.uint64] = mix_bits(mix_bits(np.atleast_1d(np.asarray(key))) ^ purposes)
    return found


def mix_bits(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
