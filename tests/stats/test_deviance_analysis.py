"""Analysis of deviance, against closed forms and a likelihood that is maximised directly."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize

from hedgerow.stats import deviance
from hedgerow.tables import Table

METHODS = ["a", "a", "b", "b", "c", "c"]
BLOCKS = [1, 2] * 3
RIGHT = [81, 70, 85, 77, 90, 76]
TOTAL = [100, 90, 100, 90, 100, 91]


def maximise(design, right, total):
    """Coefficients and deviance, by a general optimiser."""

    def lack(coefficients):
        scores = design @ coefficients
        return np.sum(right * np.logaddexp(0, -scores) + (total - right) * np.logaddexp(0, scores))

    def slope(coefficients):
        return design.T @ (total / (1 + np.exp(-design @ coefficients)) - right)

    found = minimize(lack, np.zeros(design.shape[1]), jac=slope, method="BFGS", tol=1e-10)
    shares = right / total
    best = -np.sum(right * np.log(shares) + (total - right) * np.log(1 - shares))
    return found.x, 2 * (found.fun - best)


def indicators(values, names):
    return np.array([[float(value == name) for name in names] for value in values])


def test_two_methods_in_one_block():
    # The log odds ratio of a table of two rows, and its error.
    found = deviance([30, 45], [60, 60], ["a", "b"], ["all", "all"])
    (row,) = pd.DataFrame(found.methods).to_dict("records")
    assert row["method"] == "b"
    assert row["coefficient"] == pytest.approx(np.log(45 * 30 / (15 * 30)), rel=1e-10)
    error = np.sqrt(1 / 45 + 1 / 15 + 1 / 30 + 1 / 30)
    assert row["standard_error"] == pytest.approx(error, rel=1e-8)
    assert row["z"] == pytest.approx(row["coefficient"] / row["standard_error"])
    assert row["wald_p_value"] == pytest.approx(2 * stats.norm.sf(row["z"]))
    share = 75 / 120
    g = 2 * (
        30 * np.log(0.5 / share)
        + 30 * np.log(0.5 / (1 - share))
        + 45 * np.log(0.75 / share)
        + 15 * np.log(0.25 / (1 - share))
    )
    assert found.statistic == pytest.approx(g, rel=1e-10)
    assert row["statistic"] == pytest.approx(g, rel=1e-10)
    assert found.p_value == row["p_value"] == pytest.approx(stats.chi2.sf(g, 1), rel=1e-8)
    assert (found.df, found.residual_df, found.dispersion) == (1, 0, 1.0)


counts = st.tuples(st.integers(1, 40), st.integers(1, 40))


@settings(max_examples=12, deadline=None)
@given(st.lists(counts, min_size=8, max_size=8), st.integers(0, 2))
def test_a_likelihood_that_is_maximised_directly(cells, baseline):
    method, block = ["a", "b", "c", "a", "b", "c", "a", "c"], [1, 1, 1, 2, 2, 2, 3, 3]
    right = np.array([r for r, _ in cells], float)
    total = right + np.array([w for _, w in cells])
    found = deviance(right, total, method, block, baseline="abc"[baseline])
    others = [name for name in "abc" if name != "abc"[baseline]]
    of_methods, of_blocks = indicators(method, others), indicators(block, [1, 2, 3])
    coefficients, full = maximise(np.hstack([of_methods, of_blocks]), right, total)
    assert found.methods["method"].tolist() == others
    np.testing.assert_allclose(found.methods["coefficient"], coefficients[:2], atol=2e-5)
    _, without = maximise(of_blocks, right, total)
    assert found.statistic == pytest.approx(without - full, abs=1e-6)
    for place in range(2):
        _, less = maximise(np.hstack([np.delete(of_methods, place, 1), of_blocks]), right, total)
        assert found.methods["statistic"][place] == pytest.approx(less - full, abs=1e-6)
        expected = stats.chi2.sf(found.methods["statistic"][place], 1)
        assert found.methods["p_value"][place] == pytest.approx(expected)


def test_cells_may_be_added_up():
    whole = deviance(RIGHT, TOTAL, METHODS, BLOCKS)
    parts = deviance(
        [*RIGHT, 5, 0], [*TOTAL[:2], 90, *TOTAL[3:], 10, 0], [*METHODS, "b", "a"], [*BLOCKS, 1, 7]
    )
    again = deviance([81, 70, 90, 77, 90, 76], TOTAL, METHODS, BLOCKS)
    for name in ("coefficient", "standard_error", "statistic", "p_value"):
        np.testing.assert_allclose(parts.methods[name], again.methods[name], rtol=1e-7)
        assert not np.allclose(whole.methods[name], again.methods[name])
    assert parts.p_value == pytest.approx(again.p_value)


def test_a_baseline_changes_signs():
    one, other = (deviance(RIGHT, TOTAL, METHODS, BLOCKS, name) for name in "ac")
    assert one.statistic == pytest.approx(other.statistic)
    assert one.methods["coefficient"][1] == pytest.approx(-other.methods["coefficient"][0])
    assert one.methods["p_value"][1] == pytest.approx(other.methods["p_value"][0])


def test_quasi_binomial_counts():
    # Each cell four times, with counts that vary more than those of a binomial.
    right = np.concatenate([np.array(RIGHT) + change for change in (-9, 0, 3, 6)])
    args = right, TOTAL * 4, METHODS * 4, BLOCKS * 4
    plain, quasi = deviance(*args), deviance(*args, dispersion="quasi")
    assert quasi.residual_df == plain.residual_df == 24 - 4
    design = np.hstack([indicators(METHODS * 4, "bc"), indicators(BLOCKS * 4, [1, 2])])
    coefficients, _ = maximise(design, right.astype(float), np.array(TOTAL * 4, float))
    rates = 1 / (1 + np.exp(-design @ coefficients))
    expected = np.array(TOTAL * 4) * rates
    pearson = np.sum((right - expected) ** 2 / (expected * (1 - rates)))
    assert quasi.dispersion == pytest.approx(pearson / 20, rel=1e-5)
    np.testing.assert_allclose(quasi.methods["coefficient"], plain.methods["coefficient"])
    scale = np.sqrt(quasi.dispersion)
    np.testing.assert_allclose(
        quasi.methods["standard_error"], plain.methods["standard_error"] * scale
    )
    f = plain.statistic / 2 / quasi.dispersion
    assert quasi.statistic == pytest.approx(f)
    assert quasi.p_value == pytest.approx(stats.f.sf(f, 2, 20))
    z = quasi.methods["z"]
    np.testing.assert_allclose(quasi.methods["wald_p_value"], 2 * stats.t.sf(np.abs(z), 20))
    assert "F(2, 20) = " in repr(quasi)
    assert f"dispersion {quasi.dispersion:.4g}" in repr(quasi)


def test_a_method_that_is_never_wrong():
    found = deviance([10, 10, 5, 6, 7, 7], [10] * 6, list("aabbcc"), [1, 2] * 3, "b")
    assert found.methods["coefficient"][0] == np.inf
    assert np.isnan(found.methods["wald_p_value"][0])
    # Without it the others are compared as if it had never been there.
    rest = deviance([5, 6, 7, 7], [10] * 4, list("bbcc"), [1, 2] * 2)
    for name in ("coefficient", "standard_error", "wald_p_value"):
        assert found.methods[name][1] == pytest.approx(rest.methods[name][0])
    near = deviance([10, 9, 5, 6, 7, 7], [10] * 6, list("aabbcc"), [1, 2] * 3, "b")
    assert 0 < found.methods["p_value"][0] < near.methods["p_value"][0] < 1
    assert found.p_value < near.p_value
    opposite = deviance([0, 0, 5, 6, 7, 7], [10] * 6, list("aabbcc"), [1, 2] * 3, "b")
    assert opposite.methods["coefficient"][0] == -np.inf


def test_statistics_where_coefficients_are_infinite():
    # One block: chi2 of the counts alone.
    found = deviance([20, 12], [20, 20], ["a", "b"], [0, 0])
    share = 32 / 40
    g = 2 * (20 * np.log(1 / share) + 12 * np.log(0.6 / share) + 8 * np.log(0.4 / (1 - share)))
    assert found.statistic == pytest.approx(g)
    assert found.methods["coefficient"].tolist() == [-np.inf]


@pytest.mark.parametrize("right", [[10] * 4, [0] * 4])
def test_nothing_to_tell_methods_apart_by(right):
    found = deviance(right, [10] * 4, list("aabb"), [1, 2] * 2)
    assert (found.statistic, found.p_value) == (0.0, 1.0)
    assert np.isnan(found.methods["coefficient"]).all()
    assert found.methods["p_value"].tolist() == [1.0]


def test_a_block_that_is_always_right_says_nothing():
    with_block = deviance(
        [*RIGHT, 9, 9, 9], [*TOTAL, 9, 9, 9], [*METHODS, *"abc"], [*BLOCKS, 7, 7, 7]
    )
    without = deviance(RIGHT, TOTAL, METHODS, BLOCKS)
    np.testing.assert_allclose(with_block.methods["coefficient"], without.methods["coefficient"])
    assert with_block.statistic == pytest.approx(without.statistic)
    assert with_block.residual_df == without.residual_df


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=9, max_size=9))
def test_few_answers_have_finite_tests(right):
    found = deviance(right, [3] * 9, list("abc") * 3, [1, 1, 1, 2, 2, 2, 3, 3, 3])
    assert 0 <= found.p_value <= 1
    assert found.statistic >= 0
    assert ((found.methods["p_value"] >= 0) & (found.methods["p_value"] <= 1)).all()
    # With a tiny part of an answer on the other side, the problem is regular, and nearly the same.
    tiny = 1e-7
    design = np.hstack(
        [indicators(list("abc") * 3, "bc"), indicators([1, 1, 1, 2, 2, 2, 3, 3, 3], [1, 2, 3])]
    )
    near = np.clip(np.array(right, float), tiny, 3 - tiny)
    _, full = maximise(design, near, np.full(9, 3.0))
    _, without = maximise(design[:, 2:], near, np.full(9, 3.0))
    assert found.statistic == pytest.approx(without - full, abs=1e-3)


def test_how_it_looks():
    found = deviance(RIGHT, TOTAL, METHODS, BLOCKS)
    first, second, header, *rows = repr(found).splitlines()
    assert first == "Analysis of deviance, baseline 'a'"
    assert second == f"all methods: chi2(2) = {found.statistic:.4g}, p = {found.p_value:.3g}"
    assert header.split()[:2] == ["method", "coefficient"]
    assert [row.split()[0] for row in rows] == ["b", "c"]
    assert type(found.methods) is Table
    with sklearn.config_context(transform_output="pandas"):
        framed = deviance(pd.Series(RIGHT), pd.Series(TOTAL), pd.Series(METHODS), pd.Series(BLOCKS))
    assert isinstance(framed.methods, pd.DataFrame)
    assert framed.methods["method"].tolist() == ["b", "c"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"right": [1.5, 1]}, "cell 0 has 1.5 right of 3; expected whole numbers"),
        ({"right": [1, 4]}, "cell 1 has 4 right of 3; expected whole numbers of at least 0"),
        ({"right": [-1, 1]}, "cell 0 has -1 right of 3"),
        ({"right": [np.nan, 1]}, "cell 0 has nan right of 3"),
        ({"right": [[1, 2]]}, r"right must be a 1-D array of counts, .* got shape \(1, 2\)"),
        ({"total": ["3", "3"]}, r"total must be a 1-D array of counts, .* and dtype <U1"),
        ({"total": [3]}, "right has 2 counts but total has 1; pass both for each cell"),
        ({"method": ["a"]}, "method has 1 name but there are 2 cells; pass one for each cell"),
        ({"block": [1, None]}, "block has no name in cell 1; every cell needs one"),
        ({"method": ["a", "a"]}, "expected two methods or more to compare; got just one, 'a'"),
        ({"total": [3, 0], "right": [1, 0]}, "method 'b' has no answers: its totals are all 0"),
        ({"baseline": "x"}, "baseline is 'x'; expected one of 'a', 'b'"),
        ({"baseline": 7}, "baseline is 7; expected one of 'a', 'b'"),
        ({"block": [1, 2]}, "methods 'a' and 'b' cannot be compared: they have no block in common"),
        ({"dispersion": "poisson"}, "dispersion is 'poisson'; expected 'binomial' or 'quasi'"),
        ({"dispersion": "quasi"}, "too few cells to estimate it; there must be more cells"),
    ],
)
def test_what_cannot_be_analysed(changes, message):
    usual = {"right": [1, 2], "total": [3, 3], "method": ["a", "b"], "block": [1, 1]}
    deviance(**usual)
    with pytest.raises(ValueError, match=message):
        deviance(**usual | changes)


def test_more_that_cannot_be_analysed():
    with pytest.raises(ValueError, match="expected two methods or more to compare; got none"):
        deviance([], np.array([], int), [], [])
    with pytest.raises(ValueError, match="baseline is 'methd'; did you mean method"):
        deviance([1, 2], [3, 3], ["method", "b"], [1, 1], baseline="methd")
    with pytest.raises(ValueError, match="the counts fit the methods and blocks exactly"):
        deviance([5, 5, 5, 5], [10] * 4, list("aabb"), [1, 2] * 2, dispersion="quasi")
