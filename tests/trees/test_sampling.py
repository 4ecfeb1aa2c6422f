"""Which sequences and examples a round learns from."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow import TreeCRF, _core
from hedgerow.trees.sampling import Purpose, draw_key, select_positions
from reference.boosting import make_booster
from reference.linear import make_data

X, Y = make_data(n_sequences=40, longest=6)


def test_a_key_depends_on_seed_round_and_purpose():
    keys = {
        draw_key(seed, round_number, purpose)
        for seed in range(10)
        for round_number in range(20)
        for purpose in Purpose
    }
    assert len(keys) == 10 * 20 * len(Purpose)
    assert all(0 <= key < 1 << 64 for key in keys)
    assert draw_key(3, 4, Purpose.COLUMNS) == draw_key(3, 4, Purpose.COLUMNS)


def test_keys_stay_what_they_are():
    # A resumed training run draws the same numbers, in later versions too.
    assert draw_key(0, 0, Purpose.SEQUENCES) == 15793235383387715774
    assert draw_key(7, 12, Purpose.EXAMPLES) == 14215526237112571632


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=30),
    st.floats(0.001, 0.999),
    st.integers(0, 2**64 - 1),
)
def test_whole_sequences_are_chosen(lengths, share, key):
    offsets = np.cumsum([0, *lengths])
    selected = select_positions(offsets, share, key)
    assert selected.dtype == np.uint8
    assert selected.shape == (offsets[-1],)
    by_sequence = [set(selected[a:b].tolist()) for a, b in pairwise(offsets)]
    assert all(len(flags) == 1 for flags in by_sequence)
    assert by_sequence.count({1}) == max(1, round(share * len(lengths)))
    np.testing.assert_array_equal(selected, select_positions(offsets, share, key))


def test_a_share_of_one_is_everything():
    assert select_positions(np.array([0, 3, 5]), 1.0, 0) is None


def test_every_sequence_has_its_turn():
    offsets = np.arange(11)
    counts = sum(select_positions(offsets, 0.3, key).astype(int) for key in range(2000))
    np.testing.assert_allclose(counts / 2000, 0.3, atol=0.05)


def examples_of(crf, monkeypatch, round_number=0):
    """Positions, gradients and curvatures that a round learns from, by label; and all labels."""
    booster, seen = make_booster(crf, X, Y), []
    grow = _core.grow_trees

    def spy(data, examples, *rest):
        seen.append([examples.of_output(label) for label in range(3)])
        return grow(data, examples, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(_core, "grow_trees", spy)
        for _ in range(round_number + 1):
            booster.advance()
    return seen[round_number], booster.targets.codes


def test_a_subsample_is_of_whole_sequences_and_new_in_every_round(monkeypatch):
    crf = TreeCRF(subsample=0.25, trim=0, random_state=3, learning_rate=0.1)
    offsets = np.cumsum([0, *map(len, X)])
    chosen = []
    for number in (0, 1):
        examples, _ = examples_of(crf, monkeypatch, number)
        positions = examples[0][0]
        sequences = np.unique(np.searchsorted(offsets, positions, side="right") - 1)
        assert len(sequences) == 10
        assert len(positions) == sum(len(X[s]) for s in sequences)
        for others, _, _ in examples[1:]:
            np.testing.assert_array_equal(others, positions)
        chosen.append(sequences.tolist())
    assert chosen[0] != chosen[1]


@pytest.mark.parametrize("ratio", [0.3, 0.8, 1e6])
def test_stratified_keeps_what_was_observed_and_some_of_the_rest(monkeypatch, ratio):
    everything, codes = examples_of(TreeCRF(trim=0, order=0), monkeypatch)
    crf = TreeCRF(trim=0, order=0, stratified=True, negative_ratio=ratio, random_state=0)
    sampled, _ = examples_of(crf, monkeypatch)
    for label, (whole, kept) in enumerate(zip(everything, sampled, strict=True)):
        seen, is_seen = codes[whole[0]] == label, codes[kept[0]] == label
        for every, some in zip(whole[:2], kept[:2], strict=True):
            np.testing.assert_array_equal(some[is_seen], every[seen])
        n_others = (~seen).sum()
        share = min(1.0, ratio * seen.sum() / n_others)
        sd = np.sqrt(n_others * share * (1 - share))
        assert abs((~is_seen).sum() - share * n_others) <= 3 * sd
        # All labels are as probable in the first round: g = 1 / 3 and h = 2 / 3 * 2 / 3.
        np.testing.assert_allclose(kept[1][~is_seen], 1 / share / 3, rtol=1e-6)
        np.testing.assert_allclose(kept[2][~is_seen], 1 / share * 4 / 9, rtol=1e-6)
