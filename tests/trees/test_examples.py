"""Examples: which gradients and curvatures take part in a round."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow import _core
from reference.drawing import draw_by_gradient, draw_negatives

WEIGHTS = _core.NegativeWeight


@dataclass
class Derivatives:
    """Arguments of `_core.Examples`."""

    gradients: np.ndarray
    curvatures: np.ndarray
    trim: float = -1.0
    scales: np.ndarray | None = None
    selected: np.ndarray | None = None
    share: float = 1.0
    negative_ratio: float = 0.0
    negative_weight: _core.NegativeWeight = WEIGHTS.UNBIASED
    codes: np.ndarray | None = None
    key: int = 0

    def examples(self, n_threads=1):
        """For each output positions, gradients, curvatures."""
        examples = _core.Examples(**vars(self), n_threads=n_threads)
        return [examples.of_output(k) for k in range(self.gradients.shape[1])]


@st.composite
def derivatives(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = rng.integers(1, 30), rng.integers(1, 5)
    made = Derivatives(
        rng.integers(-16, 17, shape) / 8,
        rng.random((shape[0], draw(st.sampled_from([1, shape[1]])))).astype(np.float32),
        draw(st.sampled_from([-1.0, 0.0, 0.125, 0.5, 1.0])),
    )
    if draw(st.booleans()):
        made.scales = rng.choice([0.0, 0.25, 1.0, 4.0], shape[0])
    if draw(st.booleans()):
        made.selected = rng.integers(0, 2, shape[0]).astype(np.uint8)
    return made


@given(derivatives(), st.integers(1, 3), st.booleans())
def test_those_of_probabilities_and_observed_labels(made, n_threads, by_label):
    rng = np.random.default_rng(len(made.gradients))
    n_positions, n_labels = made.gradients.shape
    p = rng.dirichlet(np.full(n_labels, 0.3), n_positions)
    codes = rng.integers(-1, n_labels, n_positions).astype(np.int32)
    shape = (n_positions, n_labels if by_label else 1)
    gammas = rng.uniform(1, 20, shape).astype(np.float32)
    gradients, curvatures = p.copy(), np.empty(p.shape, np.float32)
    _core.subtract_observed(gradients, codes, None, 1)
    _core.fill_curvatures(p, gammas if by_label else gammas[:, 0], None, 0.3, 4.0, curvatures, 1)
    expected = replace(made, gradients=gradients, curvatures=curvatures).examples()
    counts = vars(made) | {"gradients": p, "curvatures": gammas}
    examples = _core.Examples(**counts, observed=codes, rule=(0.3, 4.0), n_threads=n_threads)
    for k in range(n_labels):
        for found, wanted in zip(examples.of_output(k), expected[k], strict=True):
            np.testing.assert_array_equal(found, wanted)


@given(derivatives(), st.integers(1, 3))
def test_those_of_small_gradients_and_of_positions_that_do_not_count_are_left_out(made, n_threads):
    scales = np.ones(len(made.gradients)) if made.scales is None else made.scales
    chosen = np.abs(made.gradients) > made.trim * scales[:, None]  # those on the edge are left out
    chosen &= scales[:, None] > 0
    if made.selected is not None:
        chosen &= made.selected[:, None] != 0
    curvatures = np.broadcast_to(made.curvatures, made.gradients.shape)
    for k, (positions, g, h) in enumerate(made.examples(n_threads)):
        assert (positions.dtype, g.dtype, h.dtype) == (np.int32, np.float32, np.float32)
        np.testing.assert_array_equal(positions, np.flatnonzero(chosen[:, k]))
        np.testing.assert_array_equal(g, made.gradients[positions, k].astype(np.float32))
        np.testing.assert_array_equal(h, curvatures[positions, k])


def test_a_worked_example():
    gradients = np.array([[0.25, -0.25], [-1.0, 1.0], [0.5, 2.0], [4.0, 4.0]])
    curvatures = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]], np.float32)
    scales = np.array([0.5, 1.0, 1.0, 0.0])  # the last position does not count
    first, second = Derivatives(gradients, curvatures, trim=0.5, scales=scales).examples()
    assert [array.tolist() for array in first[:2]] == [[1], [-1.0]]
    assert [array.tolist() for array in second[:2]] == [[1, 2], [1.0, 2.0]]
    np.testing.assert_array_equal(second[2], curvatures[[1, 2], 1])


def random_derivatives(n_positions=9000, n_outputs=4, seed=0, **changes):
    """Those of the likelihood of labels of 60, 30, 9 and 1 per cent."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.6, 0.3, 0.09, 0.01])[:n_outputs]
    codes = rng.choice(n_outputs, n_positions, p=shares / shares.sum()).astype(np.int32)
    p = rng.dirichlet(np.full(n_outputs, 0.7), n_positions)
    gradients = p - (codes[:, None] == np.arange(n_outputs))
    curvatures = (p * (1 - p)).astype(np.float32)
    return Derivatives(gradients, curvatures, codes=codes, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"negative_ratio": 2.0, "key": 5},
        {"trim": 0.05},
        {"share": 0.2, "negative_ratio": 2.0},
    ],
)
def test_threads_change_nothing(changes):
    made = random_derivatives(**changes)  # three tasks
    one = made.examples(1)
    for n_threads in (2, 3):
        for first, again in zip(one, made.examples(n_threads), strict=True):
            for a, b in zip(first, again, strict=True):
                np.testing.assert_array_equal(a, b)


def test_tasks_join_in_order():
    made = random_derivatives()
    for k, (positions, g, h) in enumerate(made.examples(2)):
        assert positions.tolist() == list(range(9000))
        np.testing.assert_array_equal(g, made.gradients[:, k].astype(np.float32))
        np.testing.assert_array_equal(h, made.curvatures[:, k])


def test_all_examples_of_observed_labels_are_kept_and_a_share_of_the_others():
    full, made = random_derivatives(), random_derivatives(negative_ratio=2.0, key=3)
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


@given(
    st.integers(0, 2**64 - 1),
    st.sampled_from([1.0, 0.7, 0.2]),
    st.sampled_from([0.0, 0.5, 3.0, 1e9]),
    st.sampled_from(["UNBIASED", "NONE", "BALANCED"]),
)
def test_a_slow_twin_draws_the_same(key, share, ratio, kind):
    made = random_derivatives(80, seed=key % 5, trim=0.02)
    drawn = replace(
        made, share=share, negative_ratio=ratio, negative_weight=WEIGHTS[kind], key=key
    ).examples()
    for k, (everything, kept) in enumerate(zip(made.examples(), drawn, strict=True)):
        positions, g, h = everything
        weights = np.ones(len(positions))
        if share < 1:
            weights = draw_by_gradient(positions, g, h, k, share, key)
        if ratio > 0:
            left = weights > 0
            is_positive = made.codes[positions[left]] == k
            weights[left] *= draw_negatives(positions[left], is_positive, k, ratio, kind, key)
        there = weights > 0
        np.testing.assert_array_equal(kept[0], positions[there])
        np.testing.assert_allclose(kept[1], (g * weights)[there], rtol=1e-5)
        np.testing.assert_allclose(kept[2], (h * weights)[there], rtol=1e-5)


def test_without_weights_and_with_a_large_ratio_nothing_is_sampled():
    full = random_derivatives(500, negative_weight=WEIGHTS.NONE)
    for everything, kept in zip(
        full.examples(), replace(full, negative_ratio=1e6).examples(), strict=True
    ):
        for a, b in zip(everything, kept, strict=True):
            np.testing.assert_array_equal(a, b)


def test_balanced_examples_weigh_the_same_on_both_sides():
    made = random_derivatives(negative_ratio=0.5, negative_weight=WEIGHTS.BALANCED)
    made.curvatures[:] = 1
    for ratio in (0.5, 1e6):  # a part of the others, all of them
        for k, (positions, _, h) in enumerate(replace(made, negative_ratio=ratio).examples()):
            positive = made.codes[positions] == k
            assert (h[positive] == 1).all()
            n = positive.sum()
            assert h[~positive].sum() == pytest.approx(n, rel=1e-3 if ratio > 1 else 5 / n**0.5)


@pytest.mark.parametrize("share", [0.9, 0.3, 0.05])
def test_a_share_of_the_examples_is_drawn_and_mostly_those_of_large_gradients(share):
    made = random_derivatives(share=share, key=1)
    n = len(made.gradients)
    for k, (positions, g, _) in enumerate(made.examples()):
        assert abs(len(positions) - share * n) <= 4 * np.sqrt(share * n)
        sizes = np.abs(made.gradients[:, k])
        largest = np.argsort(-sizes)[: int(0.2 * share * n)]
        assert np.isin(largest, positions).mean() > 0.95 * np.isin(np.arange(n), positions).mean()
        assert sizes[positions].mean() > sizes.mean()
        assert np.abs(g).sum() == pytest.approx(sizes.sum(), rel=0.1)


def test_gradients_that_are_not_numbers_are_not_lost():
    made = random_derivatives(50, share=0.2)
    made.gradients[7] = np.nan
    assert all(np.isnan(g).any() for _, g, _ in made.examples())


@pytest.mark.parametrize(
    "changes", [{"negative_ratio": 1.0}, {"share": 0.2}, {"share": 0.5, "negative_ratio": 1.0}]
)
def test_sampling_is_right_in_the_mean(changes):
    full = random_derivatives(300, seed=2)
    rounds = [replace(full, key=key, **changes).examples() for key in range(400)]
    for k, everything in enumerate(full.examples()):
        for which in (1, 2):
            sums = np.array([kept[k][which].sum(dtype=np.float64) for kept in rounds])
            error = sums.std(ddof=1) / np.sqrt(len(sums))
            expected = everything[which].sum(dtype=np.float64)
            assert abs(sums.mean() - expected) <= 4 * error + 1e-4 * abs(expected)


def test_examples_of_a_kind_are_drawn_equally_often():
    full = random_derivatives(300, seed=2)
    rounds = [replace(full, negative_ratio=1.0, key=key).examples() for key in range(400)]
    for k in range(4):
        times = np.bincount(np.concatenate([kept[k][0] for kept in rounds]), minlength=300)
        n_positive = (full.codes == k).sum()
        share = min(1.0, max(1, n_positive) / (300 - n_positive))
        assert (times[full.codes == k] == len(rounds)).all()
        sd = np.sqrt(len(rounds) * share * (1 - share))
        assert (np.abs(times[full.codes != k] - len(rounds) * share) <= 5 * sd + 2).all()


def test_samples_differ_between_keys_and_labels():
    full = random_derivatives(500, seed=2)
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


@given(st.integers(0, 2**32))
def test_lists_come_back(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, rng.integers(1, 5))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    positions = np.concatenate([np.sort(rng.permutation(99)[:size]) for size in sizes]).astype(
        np.int32
    )
    g, h = rng.normal(size=(2, sizes.sum())).astype(np.float32)
    h = np.abs(h)
    examples = _core.Examples.of_lists(offsets, positions, g, h)
    for k, size in enumerate(sizes):
        part = slice(offsets[k], offsets[k] + size)
        for got, given_array in zip(examples.of_output(k), (positions, g, h), strict=True):
            np.testing.assert_array_equal(got, given_array[part])
