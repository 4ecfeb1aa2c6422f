"""Handwritten words, letter by letter."""

from __future__ import annotations

from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class OCR(NamedTuple):
    """The handwritten words that `load_ocr` returns."""

    X: list[NDArray[np.uint8]]
    """For each word a (T, 128) array, one row per letter: its 16 by 8 pixels, 0 or 1."""
    y: list[NDArray[Any]]
    """For each word its T letters, "a" to "z"."""
    fold: NDArray[np.uint8]
    """(6877,) fold of each word, 0 to 9."""


def load_ocr() -> OCR:
    """Load 6,877 handwritten words: 52,152 letters as images of 16 by 8 pixels.

    They were collected by Rob Kassel at the MIT Spoken Language Systems Group, and cleaned and
    split into ten folds by Ben Taskar, Carlos Guestrin and Daphne Koller for "Max-margin Markov
    networks" (2003), who removed the first letter of each word, which is often a capital.

    Two protocols are in use: ten-fold cross-validation, and its reverse, training on one fold and
    testing on nine.

    Returns
    -------
    OCR
        A named tuple: ``X``, a list with an array (T, 128) of pixels, 0 or 1, for each word of T
        letters; ``y``, a list with an array of the letters of each word; and ``fold``, an array
        with the fold of each word, 0 to 9.

    Examples
    --------
    >>> from hedgerow.datasets import load_ocr
    >>> X, y, fold = load_ocr()
    >>> len(X), X[0].shape, "".join(y[0])
    (6877, (9, 128), 'ommanding')
    """
    with resources.files(__package__).joinpath("ocr_letters.npz").open("rb") as file:
        arrays = np.load(file, allow_pickle=False)
        pixels = np.unpackbits(arrays["X_packed"], axis=1)
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))[arrays["y"]]
        bounds, fold = arrays["offsets"][1:-1], arrays["fold"]
    return OCR(np.split(pixels, bounds), np.split(letters, bounds), fold)
