"""Data of models that are saved and loaded."""

import numpy as np
import pandas as pd

from reference.linear import make_data

X, Y = make_data()


def to_chunks(labels):
    """Labels of the scheme BIO: c is outside, a run of the others is a chunk."""
    chunks = []
    for label in labels:
        inside = chunks and chunks[-1] != "O"
        chunks.append("O" if label == "c" else "I-X" if inside else "B-X")
    return chunks


CHUNKS = list(map(to_chunks, Y))
FRAMES = [
    pd.DataFrame(x, columns=["p", "q", "r"]).assign(sign=np.where(x[:, 0] > 0, "plus", "minus"))
    for x in X
]
ITEMS = [
    [{"mot": "été", "n": value, "nested": {"🙂": ["a", "b"]}} for value in x[:, 0].tolist()]
    for x in X
]
