"""Small models to plot, and a matplotlib that needs no screen."""

import matplotlib
import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from reference.pictures import make_words


@pytest.fixture(autouse=True)
def without_screen():
    from matplotlib import pyplot

    with matplotlib.rc_context():
        pyplot.switch_backend("Agg")
        pyplot.close("all")  # figures that tests of other folders have left in this process
        yield
        pyplot.close("all")


@pytest.fixture(scope="package")
def words():
    return make_words(np.random.default_rng(0), 60)


@pytest.fixture(scope="package")
def tree_crf(words):
    X, y = words
    crf = TreeCRF(n_rounds=4, max_depth=6, window=1, min_child_weight=0, n_jobs=1)
    return crf.fit(X, y, eval_set=(X[:9], y[:9]))


@pytest.fixture(scope="package")
def linear_crf(words):
    X, y = words
    return LinearCRF(tol=0.01, n_jobs=1).fit(X, y, eval_set=(X[:9], y[:9]))
