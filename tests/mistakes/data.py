"""Small data for all mistakes."""

import numpy as np
import pandas as pd

from hedgerow import LinearCRF, TreeCRF

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(length, 2)) for length in (3, 4, 5, 4)]
Y = [np.where(x[:, 0] > 0, "run", "walk").tolist() for x in X]
ROWS, LABELS = np.concatenate(X), np.concatenate(Y)
IDS = np.repeat([f"w{number}" for number in range(4)], [3, 4, 5, 4])
TABLE = pd.DataFrame({"walk": IDS, "speed": ROWS[:, 0], "noise": ROWS[:, 1]})
FEATURES = TABLE[["speed", "noise"]]


def trees(**parameters):
    """A TreeCRF that trains fast."""
    return TreeCRF(**{"n_rounds": 2, "max_depth": 2, "n_jobs": 1} | parameters)


def weights(**parameters):
    """A LinearCRF that trains fast."""
    return LinearCRF(**{"max_iter": 3, "tol": 0, "n_jobs": 1} | parameters)


FITTED = trees().fit(FEATURES, LABELS, groups=IDS)
BY_COLUMN = trees(group_column="walk").fit(TABLE, LABELS)
LISTED = weights().fit(X, Y)
