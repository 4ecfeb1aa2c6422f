"""Properties of every estimator."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from abuse.children import fork, join
from hedgerow import LinearCRF, TreeCRF
from reference import hash_seeds
from reference.estimators import assert_same, assert_same_training, tables
from reference.linear import make_data

X, Y = make_data()
OWN_TABLES = {LinearCRF: "weights", TreeCRF: "importances"}
OWN_ATTRIBUTES = {
    LinearCRF: ["attributes_", "n_weights_"],
    TreeCRF: ["feature_importances_", "n_rounds_"],
}


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("predict", (X,)),
        ("predict_marginals", (X,)),
        ("predict_proba", (X,)),
        ("predict_pattern_marginals", (X,)),
        ("predict_k_best", (X, 2)),
        ("sample", (X,)),
        ("log_likelihood", (X, Y)),
        ("score", (X, Y)),
        ("save", ("nowhere",)),
        ("transition_weights", ()),
        ("patterns", ()),
        ("own table", ()),
    ],
)
def test_methods_need_a_fitted_model(estimator, method, args):
    message = f"this {estimator.__name__} is not fitted yet; call fit before using it"
    name = OWN_TABLES[estimator] if method == "own table" else method
    with pytest.raises(NotFittedError, match=message):
        getattr(estimator(), name)(*args)


def test_attributes_need_a_fitted_model(estimator):
    for name in ("label_patterns_", *OWN_ATTRIBUTES[estimator]):
        with pytest.raises(NotFittedError, match=f"this {estimator.__name__} is not fitted yet"):
            getattr(estimator(), name)
        assert not hasattr(estimator(), name)


def test_the_tables_are_copies(make, estimator):
    more = {"transition_attributes": True} if estimator is LinearCRF else {}
    crf = make(order=2, **more).fit(X, Y)
    before = [crf.predict_proba(X), *(column.copy() for column in tables(crf).values())]
    for column in tables(crf).values():
        if column.dtype.kind == "f":
            column[:] = 100
    if estimator is TreeCRF:
        crf.feature_importances_[:] = 5
    assert_same(before, [crf.predict_proba(X), *tables(crf).values()])


@pytest.mark.parametrize("order", [1, 2])
def test_pattern_marginals_take_memory_for_the_patterns_not_for_all_label_pairs(make, order):
    n_labels, n_positions = 60, 400
    y = np.arange(n_positions) % n_labels
    x = np.stack([y, y % 7], axis=1).astype(np.float64)
    allowed = [(j, k % n_labels) for j in range(n_labels) for k in (j, j + 1)]
    crf = make(allowed=allowed, order=order).fit([x], [y])
    tracemalloc.start()
    (found,) = crf.predict_pattern_marginals([x])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.shape == (n_positions, len(crf.label_patterns_))
    assert peak < 3 * found.nbytes + 2_000_000 < 8 * n_positions * n_labels**2 / 3


def test_the_model_to_start_from_stays_as_it_is(make):
    init, twin = make().fit(X, Y), make().fit(X, Y)
    make(reg_lambda=10, order=2).fit(X[:5], Y[:5], init=init)
    assert_same_training(init, twin)


def test_parameters_have_names(estimator):
    with pytest.raises(TypeError, match="takes keyword arguments only"):
        estimator(100)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fit_in_a_forked_child(make):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(300, 10, 4)), rng.integers(0, 3, (300, 10))

    def fit():
        crf = make(n_jobs=4).fit(rows, labels)
        return crf.loss_, crf.predict_proba(rows).tolist()

    before = fit()

    def compare():
        assert fit() == before

    join(fork(compare))


def test_nothing_depends_on_how_strings_are_hashed(tmp_path):
    for name in ("one", "two", "kept"):
        (tmp_path / name).mkdir()
    hash_seeds.main(tmp_path / "one", tmp_path / "kept")
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    subprocess.run(
        [sys.executable, hash_seeds.__file__, tmp_path / "two", tmp_path / "kept"],
        env=os.environ | {"PYTHONHASHSEED": other, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=120,
        check=True,
    )
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    resumed = {name for name in two if name.endswith(".resumed")}
    assert len(one) == 18
    assert len(resumed) == 6
    assert {name: two[name] for name in two.keys() - resumed} == one
    for name in resumed:
        assert two[name] == one[name.removesuffix(".resumed")]
