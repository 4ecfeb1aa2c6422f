"""Sampling of examples, slow and simple."""

import numpy as np

BITS = (1 << 64) - 1


def mix_bits(x):
    x = (x + 0x9E3779B97F4A7C15) & BITS
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & BITS
    return x ^ (x >> 31)


def derive_key(key, purpose):
    return mix_bits(mix_bits(key) ^ purpose)


def draw_uniform(key, i):
    """The i-th number under a key, in [0, 1)."""
    return (derive_key(key, i) >> 11) * 2.0**-53


def drawing_probabilities(sizes, share):
    """min(1, c size), with c such that they sum to a share of the examples: by bisection."""
    low, high = 0.0, len(sizes) / sizes.min()
    for _ in range(200):
        middle = (low + high) / 2
        if np.minimum(1, middle * sizes).sum() < share * len(sizes):
            low = middle
        else:
            high = middle
    return np.minimum(1, low * sizes)


def draw_by_gradient(positions, gradients, curvatures, output, share, key):
    """Weights of the examples of an output, (n,); 0: left out."""
    sizes = np.hypot(gradients, 0.1 * curvatures)
    probabilities = drawing_probabilities(sizes, share)
    own = derive_key(key, (1 << 32) + output)
    drawn = np.array([draw_uniform(own, int(t)) for t in positions]) < probabilities
    return np.where(drawn, 1 / probabilities, 0.0)


def draw_negatives(positions, is_positive, output, ratio, kind, key):
    """The same for sampling negative examples."""
    n_positive, n_negative = max(is_positive.sum(), 1), max((~is_positive).sum(), 1)
    share = min(1.0, ratio * n_positive / n_negative)
    own = derive_key(key, output)
    drawn = np.array([draw_uniform(own, int(t)) for t in positions]) < share
    weight = {"UNBIASED": 1 / share, "NONE": 1.0, "BALANCED": n_positive / (share * n_negative)}
    return np.where(is_positive, 1.0, np.where(drawn, weight[kind], 0.0))
