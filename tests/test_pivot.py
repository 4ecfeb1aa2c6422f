"""Cross tables."""

import numpy as np

from hedgerow.pivot import pivot


def test_sums_by_two_columns():
    table = {
        "feature": np.array(["b", "a", "b", "b"], dtype=np.object_),
        "offset": np.array([1, 0, -1, 1]),
        "gain": np.array([1.0, 2.0, 3.0, 4.0]),
    }
    rows, columns, sums = pivot(table, "feature", "offset", "gain")
    assert (rows.tolist(), columns.tolist()) == (["a", "b"], [-1, 0, 1])
    assert np.array_equal(sums, [[np.nan, 2, np.nan], [3, np.nan, 5]], equal_nan=True)
