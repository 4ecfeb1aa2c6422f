"""Scores and gradients of attribute weights are those of a matrix product, whatever the layout."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from hedgerow import LinearCRF, _core
from hedgerow.linear.weights import WeightLayout
from hedgerow.sequences import SparseRows
from reference.linear import make_data


@st.composite
def problems(draw):
    """Rows of attributes, and a layout in which attributes have none, some or all outputs."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_outputs = draw(st.integers(1, 40))
    n_attributes = draw(st.integers(1, 12))
    n_positions = draw(st.integers(0, 30))
    counts = random.integers(0, 5, n_positions)
    values = random.normal(size=counts.sum()) if draw(st.booleans()) else None
    rows = SparseRows(
        np.append(0, np.cumsum(counts)),
        random.integers(0, n_attributes, counts.sum()).astype(np.int32),
        values,
        n_attributes,
    )
    full = WeightLayout.full(n_attributes, n_outputs)
    if draw(st.booleans()):
        return rows, full, random
    share = random.choice([0.0, 0.1, 0.5, 1.0], n_attributes)
    kept = random.random(full.n_weights) < share[full.attribute_of_weight()]
    sizes = np.bincount(full.attribute_of_weight()[kept], minlength=n_attributes)
    offsets = np.append(0, np.cumsum(sizes))
    return rows, WeightLayout(offsets, full.outputs[kept], n_outputs), random


def dense(rows):
    values = np.ones(len(rows.indices)) if rows.values is None else rows.values
    shape = len(rows.indptr) - 1, rows.n_columns
    return csr_array((values, rows.indices, rows.indptr), shape=shape).toarray()


@given(problems(), st.integers(0, 5), st.integers(1, 3))
def test_scores_and_gradients_are_matrix_products(problem, n_leading, n_threads):
    rows, layout, random = problem
    attributes = rows.indptr, rows.indices, rows.values
    weights, biases = random.normal(size=layout.n_weights), random.normal(size=layout.n_outputs)
    table = np.zeros((rows.n_columns, layout.n_outputs))
    table[layout.attribute_of_weight(), layout.outputs] = weights
    expected = dense(rows) @ table + biases

    arrays = layout.arrays
    scorer = _core.Scorer(*arrays, weights, biases)
    scores = np.zeros_like(expected)
    scorer.add_scores(*attributes, scores, n_threads)
    np.testing.assert_allclose(scores, expected, atol=1e-12)

    blocks = _core.AttributeBlocks(*attributes, *arrays, n_leading)
    scores = np.full_like(expected, np.nan)
    leading = _core.LeadingWeights(*arrays, weights, n_leading, n_threads)
    blocks.fill_scores(leading, biases, scores, n_threads)
    np.testing.assert_allclose(scores, expected, atol=1e-12)

    residuals = random.normal(size=expected.shape)
    gradient, bias_gradient = weights.copy(), biases.copy()
    leading_sums = _core.LeadingSums(*arrays, gradient, n_leading, n_threads)
    blocks.add_gradient(residuals, leading_sums, gradient, bias_gradient, n_threads)
    leading_sums.write(gradient, n_threads)
    sums = (dense(rows).T @ residuals)[layout.attribute_of_weight(), layout.outputs]
    np.testing.assert_allclose(gradient, weights + sums, atol=1e-12)
    np.testing.assert_allclose(bias_gradient, biases + residuals.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "n_leading", "message"),
    [
        (2, 2, 1, "must have the same number of leading attributes"),
        (3, 2, 2, "scores and residuals must have a row for each position"),
        (2, 3, 2, "scores and residuals must have a column for each output"),
    ],
)
def test_arrays_for_training_must_fit(n_rows, n_columns, n_leading, message):
    arrays = WeightLayout.full(2, 2).arrays
    blocks = _core.AttributeBlocks(np.arange(3), np.arange(2, dtype=np.int32), None, *arrays, 2)
    weights, table = np.zeros(4), np.zeros((n_rows, n_columns))
    with pytest.raises(ValueError, match=message):
        blocks.fill_scores(_core.LeadingWeights(*arrays, weights, n_leading, 1), None, table, 1)
    sums = _core.LeadingSums(*arrays, weights, n_leading, 1)
    with pytest.raises(ValueError, match=message):
        blocks.add_gradient(table, sums, weights, None, 1)


def test_vectors_for_training_must_fit():
    arrays = WeightLayout.full(2, 2).arrays
    blocks = _core.AttributeBlocks(np.arange(3), np.arange(2, dtype=np.int32), None, *arrays, 2)
    weights, table, three = np.zeros(4), np.zeros((2, 2)), np.zeros(3)
    sums = _core.LeadingSums(*arrays, weights, 2, 1)
    with pytest.raises(ValueError, match="weights do not fit their outputs"):
        _core.LeadingWeights(*arrays, three, 2, 1)
    with pytest.raises(ValueError, match="biases do not fit scores"):
        blocks.fill_scores(_core.LeadingWeights(*arrays, weights, 2, 1), three, table, 1)
    with pytest.raises(ValueError, match="gradient must have an entry for each weight"):
        _core.LeadingSums(*arrays, three, 2, 1)
    with pytest.raises(ValueError, match="gradient must have an entry for each weight"):
        blocks.add_gradient(table, sums, three, None, 1)
    with pytest.raises(ValueError, match="bias_gradient must have an entry for each output"):
        blocks.add_gradient(table, sums, weights, three, 1)
    with pytest.raises(ValueError, match="gradient must have an entry for each weight"):
        sums.write(three, 1)


def test_all_pairs_are_what_there_is_anyway_where_every_pair_occurs():
    X, _ = make_data(n_sequences=4)
    y = [["ab"[t % 2] for t in range(len(x))] for x in X]
    crf, all_pairs = LinearCRF(max_iter=5, tol=0), LinearCRF(max_iter=5, tol=0, all_pairs=True)
    crf.fit(X, y)
    all_pairs.fit(X, y)
    assert crf.n_weights_ == all_pairs.n_weights_
    assert crf.loss_ == all_pairs.loss_
    assert crf.weights()["weight"].tolist() == all_pairs.weights()["weight"].tolist()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_multiples_of_vectors(n_threads):
    x, plus, out = np.arange(200_000.0), np.full(200_000, 0.5), np.empty(200_000)
    _core.fill_multiple(-2.0, x, None, out, n_threads)
    assert (out == -2.0 * x).all()
    _core.fill_multiple(3.0, x, plus, out, n_threads)
    assert (out == 3.0 * x + 0.5).all()


def test_multiples_of_vectors_that_do_not_fit():
    with pytest.raises(ValueError, match="both vectors must have the same length"):
        _core.fill_multiple(1.0, np.ones(2), np.ones(3), np.ones(2), 1)
    with pytest.raises(ValueError, match="the result must have the length of the vectors"):
        _core.fill_multiple(1.0, np.ones(2), None, np.ones(3), 1)
