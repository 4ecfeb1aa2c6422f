"""Data of models that are saved and loaded."""

import numpy as np
import pandas as pd

from reference.linear import make_data

X, Y = make_data()
FRAMES = [
    pd.DataFrame(x, columns=["p", "q", "r"]).assign(sign=np.where(x[:, 0] > 0, "plus", "minus"))
    for x in X
]
ITEMS = [
    [{"mot": "été", "n": value, "nested": {"🙂": ["a", "b"]}} for value in x[:, 0].tolist()]
    for x in X
]
