"""Helpers for tests of plots: words with many labels, and positions of texts."""

from itertools import combinations
from string import ascii_lowercase

import numpy as np


def make_words(random, n_words):
    """Words with 26 different letters, each with some informative numbers."""
    X, y = [], []
    for length in random.integers(3, 12, n_words):
        codes = random.integers(0, 26, length)
        bits = (codes[:, None] >> np.arange(5)) & 1
        X.append(bits + random.normal(0, 0.4, bits.shape))
        y.append([ascii_lowercase[code] for code in codes])
    y[0][0], y[0][1] = "a", "z"
    return X, y


def text_boxes(texts, figure):
    """Boxes of visible texts, in pixels."""
    figure.draw_without_rendering()
    return [text.get_window_extent() for text in texts if text.get_visible() and text.get_text()]


def overlaps(boxes):
    """Pairs of boxes that overlap by more than an edge."""
    return [
        (one, other)
        for one, other in combinations(boxes, 2)
        if min(one.x1, other.x1) - max(one.x0, other.x0) > 0.5
        and min(one.y1, other.y1) - max(one.y0, other.y0) > 0.5
    ]


def is_inside(box, frame):
    return frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
