"""Examples: gradients and curvatures from marginals, and which of them take part."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow import _core


@dataclass
class Marginals:
    """Arguments of `_core.Examples`, in order."""

    expected: np.ndarray
    probabilities: np.ndarray
    expected_is_weighted: bool
    codes: np.ndarray
    weights: np.ndarray | None = None
    scales: np.ndarray | None = None
    partial_positions: np.ndarray | None = None
    partial_observed: np.ndarray | None = None
    gammas: np.ndarray | None = None
    label_gammas: np.ndarray | None = None
    gradients: np.ndarray | None = None
    trim: float = -1.0
    selected: np.ndarray | None = None
    negative_ratio: float = 0.0
    key: int = 0

    @property
    def n_labels(self):
        return self.expected.shape[1]

    def examples(self, n_threads=1):
        """For each label positions, gradients, curvatures."""
        examples = _core.Examples(*vars(self).values(), n_threads)
        return [examples.of_label(k) for k in range(self.n_labels)]

    def derivatives(self):
        """Gradients, curvatures, (N, K), and how much positions count, (N, 1)."""
        n_positions, n_labels = self.expected.shape
        weights, scales = (
            np.ones((n_positions, 1)) if each is None else each[:, None]
            for each in (self.weights, self.scales)
        )
        observed = (self.codes[:, None] == np.arange(n_labels)).astype(float)
        if self.partial_positions is not None:
            observed[self.partial_positions] = self.partial_observed
        expected = self.expected * (1 if self.expected_is_weighted else weights)
        gradients = expected - weights * observed if self.gradients is None else self.gradients
        if self.gammas is None and self.label_gammas is None:
            return gradients, np.broadcast_to(scales, gradients.shape), scales
        gammas = self.label_gammas if self.gammas is None else self.gammas[:, None]
        p = self.probabilities
        return gradients, scales * np.maximum(gammas * p * (1 - p), 1e-16), scales


def make_marginals(rng, n_positions=None, n_labels=None, weighted=True, **changes):
    """Numbers of few digits, so that every product is exact."""
    n_positions = rng.integers(1, 30) if n_positions is None else n_positions
    n_labels = rng.integers(1, 5) if n_labels is None else n_labels
    p = rng.integers(0, 9, (n_positions, n_labels)) / 8
    codes = rng.integers(0, n_labels, n_positions).astype(np.int32)
    weights, scales = 2.0 ** rng.integers(-2, 3, (2, n_positions))
    weights, scales = (weights, scales) if weighted else (None, None)
    return Marginals(p, p, False, codes, weights, scales, **changes)


def with_weighted_expectations(marginals):
    scaled = marginals.probabilities * marginals.weights[:, None]
    return replace(marginals, expected=scaled, expected_is_weighted=True)


def with_partial_labels(marginals, rng):
    where = np.flatnonzero(rng.random(len(marginals.codes)) < 0.4)
    observed = rng.integers(0, 9, (len(where), marginals.n_labels)) / 8
    codes = marginals.codes.copy()
    codes[where] = -1
    return replace(marginals, codes=codes, partial_positions=where, partial_observed=observed)


@st.composite
def marginals(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    made = make_marginals(rng, weighted=draw(st.booleans()))
    shape = made.expected.shape
    if made.weights is not None and draw(st.booleans()):
        made = with_weighted_expectations(made)
    if draw(st.booleans()):
        made = with_partial_labels(made, rng)
    if draw(st.booleans()):
        made = replace(made, gradients=rng.integers(-16, 17, shape) / 8)
    order = draw(st.sampled_from(["first", "by position", "by label"]))
    if order == "by position":
        made = replace(made, gammas=(rng.integers(1, 9, shape[0]) / 4).astype(np.float32))
    if order == "by label":
        made = replace(made, label_gammas=(rng.integers(1, 9, shape) / 4).astype(np.float32))
    if draw(st.booleans()):
        made = replace(made, selected=rng.integers(0, 2, shape[0]).astype(np.uint8))
    return replace(made, trim=draw(st.sampled_from([-1.0, 0.0, 0.125, 0.5, 1.0])))


@given(marginals(), st.integers(1, 3))
def test_derivatives_are_those_of_numpy(marginals, n_threads):
    gradients, curvatures, scales = marginals.derivatives()
    chosen = np.abs(gradients) > marginals.trim * scales  # those on the edge are left out
    if marginals.selected is not None:
        chosen &= marginals.selected[:, None] != 0
    for k, (positions, g, h) in enumerate(marginals.examples(n_threads)):
        assert (positions.dtype, g.dtype, h.dtype) == (np.int32, np.float32, np.float32)
        np.testing.assert_array_equal(positions, np.flatnonzero(chosen[:, k]))
        np.testing.assert_array_equal(g, gradients.astype(np.float32)[positions, k])
        np.testing.assert_array_equal(h, curvatures.astype(np.float32)[positions, k])


def test_a_worked_example():
    p = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    (first, second) = Marginals(
        p,
        p,
        False,
        np.array([1, 0, 0], np.int32),
        weights=np.array([1.0, 2.0, 1.0]),
        scales=np.array([1.0, 2.0, 1.0]),
        gammas=np.array([1.0, 2.0, 1.0], np.float32),
        trim=0.0,
    ).examples()
    assert [array.tolist() for array in first] == [[0, 1], [0.25, -1.0], [0.1875, 1.0]]
    assert [array.tolist() for array in second] == [[0, 1], [-0.25, 1.0], [0.1875, 1.0]]


def test_positions_that_do_not_count_are_left_out():
    made = make_marginals(np.random.default_rng(0), 10, 3)
    made.scales[[2, 5]] = made.weights[[2, 5]] = 0.0
    for weighted in (made, with_weighted_expectations(made)):
        for positions, g, h in weighted.examples():
            assert positions.tolist() == [0, 1, 3, 4, 6, 7, 8, 9]
            assert np.isfinite(g).all()
            assert (h > 0).all()


def test_certain_labels_have_some_curvature():
    p = np.array([[0.0, 1.0]])
    codes, ones = np.array([0], np.int32), np.ones(1, np.float32)
    for _, g, h in Marginals(p, p, False, codes, gammas=ones).examples():
        assert abs(g[0]) == 1
        assert h[0] == np.float32(1e-16)


def random_marginals(n_positions=9000, n_labels=4, seed=0, **changes):
    """Labels of 60, 30, 9 and 1 per cent."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.6, 0.3, 0.09, 0.01])[:n_labels]
    codes = rng.choice(n_labels, n_positions, p=shares / shares.sum()).astype(np.int32)
    p = rng.dirichlet(np.full(n_labels, 0.7), n_positions)
    gammas = rng.uniform(1, 3, n_positions).astype(np.float32)
    weights = rng.uniform(0.5, 2, n_positions)
    return Marginals(p, p, False, codes, weights, weights, gammas=gammas, **changes)


@pytest.mark.parametrize("changes", [{}, {"negative_ratio": 2.0, "key": 5}, {"trim": 0.05}])
def test_threads_change_nothing(changes):
    made = random_marginals(**changes)  # three tasks
    one = made.examples(1)
    for n_threads in (2, 3):
        for first, again in zip(one, made.examples(n_threads), strict=True):
            for a, b in zip(first, again, strict=True):
                np.testing.assert_array_equal(a, b)


def test_tasks_join_in_order_with_partial_labels():
    made = with_partial_labels(random_marginals(), np.random.default_rng(1))
    gradients, curvatures, _ = made.derivatives()
    for k, (positions, g, h) in enumerate(made.examples(2)):
        assert positions.tolist() == list(range(9000))
        np.testing.assert_allclose(g, gradients[:, k], rtol=1e-6)
        np.testing.assert_allclose(h, curvatures[:, k], rtol=1e-6)


def test_all_examples_of_observed_labels_are_kept_and_a_share_of_the_others():
    full, made = random_marginals(), random_marginals(negative_ratio=2.0, key=3)
    for k, (everything, kept) in enumerate(zip(full.examples(), made.examples(), strict=True)):
        positions, g, h = kept
        positive = made.codes[positions] == k
        n_positive, n_negative = (made.codes == k).sum(), (made.codes != k).sum()
        assert positive.sum() == n_positive
        share = min(1.0, 2 * n_positive / n_negative)
        sd = np.sqrt(n_negative * share * (1 - share))
        assert abs((~positive).sum() - n_negative * share) <= 4 * sd
        scale = np.where(positive, 1.0, 1.0 / share)
        np.testing.assert_allclose(g, everything[1][positions] * scale, rtol=1e-6)
        np.testing.assert_allclose(h, everything[2][positions] * scale, rtol=1e-6)
        assert (np.diff(positions) > 0).all()


def test_sampling_is_right_in_the_mean():
    full = random_marginals(300, seed=2)
    rounds = [replace(full, negative_ratio=1.0, key=key).examples() for key in range(400)]
    for k, everything in enumerate(full.examples()):
        for which in (1, 2):
            sums = np.array([kept[k][which].sum(dtype=np.float64) for kept in rounds])
            error = sums.std(ddof=1) / np.sqrt(len(sums))
            expected = everything[which].sum(dtype=np.float64)
            assert abs(sums.mean() - expected) <= 4 * error + 1e-4 * abs(expected)
        # Each example by itself: kept as often as any other of its kind.
        times = np.bincount(np.concatenate([kept[k][0] for kept in rounds]), minlength=300)
        n_positive = (full.codes == k).sum()
        share = min(1.0, max(1, n_positive) / (300 - n_positive))
        assert (times[full.codes == k] == len(rounds)).all()
        sd = np.sqrt(len(rounds) * share * (1 - share))
        assert (np.abs(times[full.codes != k] - len(rounds) * share) <= 5 * sd + 2).all()


def test_samples_differ_between_keys_and_labels():
    full = random_marginals(500, seed=2)
    full.codes[:] = np.arange(500) % 50 == 0  # labels 2 and 3 are never seen, 1 seldom
    first, again, other = (
        [kept[0].tolist() for kept in replace(full, negative_ratio=30.0, key=key).examples()]
        for key in (1, 1, 2**64 - 1)
    )
    assert first == again
    assert first[0] == other[0] == list(range(500))  # few others to choose from: all are kept
    for k in (1, 2, 3):
        assert first[k] != other[k]
    assert first[2] != first[3]
    assert 10 < len(first[2]) < 60  # as if it had been seen once


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_count_right(seed, n_threads):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 4, (rng.integers(0, 50), rng.integers(1, 5))) / 4
    codes = rng.integers(-1, p.shape[1], len(p)).astype(np.int32)
    known = codes >= 0
    expected = (p[known].argmax(axis=1) == codes[known]).sum()  # the first of equals
    assert _core.count_right(p, codes, n_threads) == expected


def test_count_right_over_many_tasks():
    made = random_marginals(20_000)
    expected = (made.probabilities.argmax(axis=1) == made.codes).sum()
    for n_threads in (1, 2, 3):
        assert _core.count_right(made.probabilities, made.codes, n_threads) == expected


@given(st.integers(0, 2**32))
def test_lists_come_back(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, rng.integers(1, 5))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    positions = rng.integers(0, 99, sizes.sum()).astype(np.int32)
    g, h = rng.normal(size=(2, sizes.sum())).astype(np.float32)
    h = np.abs(h)
    examples = _core.Examples.of_lists(offsets, positions, g, h)
    for k, size in enumerate(sizes):
        part = slice(offsets[k], offsets[k] + size)
        for got, given_array in zip(examples.of_label(k), (positions, g, h), strict=True):
            np.testing.assert_array_equal(got, given_array[part])
