"""Identities of sequences: by name or by content, whatever their order."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from hedgerow import _core
from hedgerow.comm import ALONE, ThreadComm
from hedgerow.encode import encode
from hedgerow.identity import (
    draw_uniforms,
    find_uniform,
    identify_positions,
    identify_sequences,
)

X = [[[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0]], [[5.0, 6.0]]]


def test_by_content():
    there = identify_sequences(encode(X, None, None))
    back = identify_sequences(encode(X[::-1], None, None))
    assert len(set(there.tolist())) == 4  # equal sequences have different numbers
    assert sorted(there.tolist()) == sorted(back.tolist())
    assert there[1] == back[2]
    assert there[3] == back[0]


def test_digests_of_bytes():
    """Sequences of all lengths, which are digested side by side, against one word at a time."""

    def mix(number):
        number = (number + 0x9E3779B97F4A7C15) % 2**64
        number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        number = (number ^ (number >> 27)) * 0x94D049BB133111EB % 2**64
        return number ^ (number >> 31)

    def digest(*parts):
        found = 0
        for part in parts:
            found = mix(found ^ len(part))
            for first in range(0, len(part), 8):
                found = mix(found ^ int.from_bytes(part[first : first + 8], "little"))
        return found

    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 9, (2, 70))
    rows = [rng.integers(0, 256, (lengths[i].sum(), 3 - i)).astype(np.uint8) for i in range(2)]
    bounds = [np.concatenate([[0], np.cumsum(lengths[i])]) for i in range(2)]
    expected = [
        digest(*(rows[i][bounds[i][s] : bounds[i][s + 1]].tobytes() for i in range(2)))
        for s in range(70)
    ]
    for n_threads in (1, 2):
        found = _core.digest_sequences(list(zip(rows, bounds, strict=True)), 70, n_threads)
        assert found.tolist() == expected


def test_categories_may_have_other_numbers():
    frame = pd.DataFrame({"text": ["b", "a", None, "c", "b"]})
    sequences = encode(frame, np.array([0, 0, 1, 2, 2]), None)
    sequences = replace(sequences, ids=None)
    some = sequences.select(np.array([2, 3, 4]), np.array([0, 1, 3]))
    assert some.categorical[0].categories != sequences.categorical[0].categories
    assert identify_sequences(some).tolist() == identify_sequences(sequences)[1:].tolist()


def test_sequences_that_hold_the_same_are_told_apart_by_what_belongs_to_them():
    labels, weights = np.array([0, 1, 1, 2, 3]), np.array([1.0, 1.0, 1.0, 2.0])
    there = identify_sequences(encode(X, None, None), labels, weights)
    swapped = [2, 1, 0, 3]
    back = identify_sequences(
        encode([X[i] for i in swapped], None, None), labels[[3, 1, 2, 0, 4]], weights[swapped]
    )
    assert there[swapped].tolist() == back.tolist()
    # No other sequence depends on them.
    plain = identify_sequences(encode(X, None, None))
    assert there[[1, 3]].tolist() == plain[[1, 3]].tolist()
    assert set(there.tolist()) == set(plain.tolist())


def test_by_name():
    flat = np.array([[1.0], [2.0], [3.0]])
    first = identify_sequences(encode(flat, ["a", "a", "b"], None))
    second = identify_sequences(encode(flat[::-1] * 2, ["b", "b", "a"], None))
    assert first.tolist() == second[::-1].tolist()
    assert first.tolist() == identify_sequences(encode(flat, np.array(list("aab")))).tolist()


def test_of_attributes():
    def numbers(items):
        return identify_sequences(encode(items, None, _core.StringIndex()))

    plain, valued = numbers([[["a", "b"]], [["c"]]]), numbers([[{"a": 1, "b": 1}], [{"c": 2.0}]])
    assert plain[0] != plain[1]
    assert plain[1] != valued[1]


def test_positions_and_draws():
    identities = np.array([5, 9], np.uint64)
    positions = identify_positions(identities, np.array([0, 2, 3]))
    assert positions[2] == identify_positions(identities[1:], np.array([0, 1]))[0]
    assert len(set(positions.tolist())) == 3
    draws = draw_uniforms(np.arange(10_000, dtype=np.uint64), 3)
    assert 0 <= draws.min() <= draws.max() < 1
    np.testing.assert_allclose(np.quantile(draws, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.02)
    assert (draws != draw_uniforms(np.arange(10_000, dtype=np.uint64), 4)).any()


def mix(numbers):
    """The finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_draws_by_another_implementation(n_threads):
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 3, 200_000)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    identities = rng.integers(0, 1 << 63, len(lengths), np.uint64)
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    positions = identify_positions(identities, offsets, n_threads=n_threads)
    expected = mix(mix(np.repeat(identities, lengths)) ^ places.astype(np.uint64))
    np.testing.assert_array_equal(positions, expected)
    uniforms = draw_uniforms(positions, 5, n_threads=n_threads)
    bits = mix(mix(np.array(5, np.uint64)) ^ positions) >> np.uint64(11)
    np.testing.assert_array_equal(uniforms, bits.astype(np.float64) * 2.0**-53)
    ordered = np.sort(uniforms)
    for place in (0, 7, 100_000, len(ordered) - 1):
        assert find_uniform(uniforms, place, ALONE, n_threads=n_threads) == ordered[place]


def test_a_place_among_numbers_that_are_close_together():
    numbers = np.array([0.5, 0.25, 0.5, 0.5 + 2.0**-40, 0.0])
    found = [find_uniform(numbers, place, ALONE) for place in range(len(numbers))]
    assert found == sorted(numbers.tolist())


def test_arguments_of_draws_are_checked():
    identities = np.arange(2, dtype=np.uint64)
    with pytest.raises(ValueError, match="one entry more than there are sequences"):
        _core.identify_positions(identities, np.array([0, 1]), 1)
    with pytest.raises(ValueError, match="the place is out of range"):
        _core.find_uniform(np.zeros(3), 3, 1)


def test_a_place_among_the_draws_of_all_workers():
    uniforms = draw_uniforms(np.arange(40, dtype=np.uint64), 3)
    uniforms[:3] = 0.0, uniforms[7], 1 - 2.0**-53
    parts = uniforms[:0], uniforms[:25], uniforms[25:]
    expected = np.sort(uniforms).tolist()

    def find_all(comm):
        own = parts[comm.rank] if comm.size > 1 else uniforms
        return [find_uniform(own, place, comm) for place in range(40)]

    assert ThreadComm.run(3, find_all) == [expected] * 3
    assert find_all(ALONE) == expected


def test_digests_depend_on_all_contents_and_on_nothing_else():
    rng = np.random.default_rng(0)
    lengths = np.array([0, 1, 2, 3, 0, 90, 1])
    offsets = np.append(0, np.cumsum(lengths))
    numbers = np.arange(len(lengths) + 1)
    rows = rng.integers(0, 256, (offsets[-1], 5)).astype(np.uint8)
    tags = rng.integers(0, 256, (len(lengths), 8)).astype(np.uint8)

    def digest(n_threads=1):
        parts = [(rows, offsets), (tags, numbers)]
        return _core.digest_sequences(parts, len(lengths), n_threads)

    found = digest()
    assert len(set(found.tolist())) == len(lengths)
    for n_threads in (2, 7):
        assert digest(n_threads).tolist() == found.tolist()
    for sequence, (begin, end) in enumerate(pairwise(offsets.tolist())):
        for array, row in [(tags, sequence), *((rows, row) for row in range(begin, end))]:
            place = row, rng.integers(array.shape[1])
            array[place] ^= 1
            assert np.flatnonzero(digest() != found).tolist() == [sequence]
            array[place] ^= 1
    assert digest().tolist() == found.tolist()


def test_bounds_of_digested_rows_are_checked():
    rows = np.zeros((3, 2), np.uint8)
    for bounds, message in [([0, 3], "one entry more than"), ([0, 1, 4], "must run from 0 to")]:
        with pytest.raises(ValueError, match=message):
            _core.digest_sequences([(rows, np.array(bounds))], 2, 1)
