"""Fingerprints: equal if and only if the data are."""

import tracemalloc
from dataclasses import dataclass

import numpy as np

from hedgerow import _core
from hedgerow.comm import ALONE, ThreadComm
from hedgerow.fingerprint import fingerprint, fingerprint_sequences


@dataclass
class Pair:
    first: object
    second: object


def index_of(*names):
    index = _core.StringIndex()
    for name in names:
        index.add(name)
    return index


def test_what_differs_has_another_fingerprint():
    rows = np.arange(6.0)
    different = [
        (rows,),
        (rows + 1,),
        (rows.astype(np.float32),),
        (rows.reshape(2, 3),),
        (rows[:5],),
        (rows[:3], rows[3:]),
        (rows[::-1],),
        (np.array(["ab", "c"]),),
        (np.array(["a", "bc"]),),
        (np.empty(0),),
        ([rows],),
        ({"name": rows},),
        (Pair(rows, None),),
        (Pair(None, rows),),
        (index_of("ab", "c"),),
        (index_of("a", "bc"),),
        ("ab", "c"),
        ("a", "bc"),
        (1, 23),
        (None,),
        (),
    ]
    assert len({fingerprint(*parts) for parts in different}) == len(different)


def test_the_same_data_have_the_same_fingerprint():
    rows = np.arange(12.0).reshape(3, 4)
    assert fingerprint(rows[:, ::2]) == fingerprint(rows[:, ::2].copy())
    assert fingerprint(Pair([1.5], "ü")) == fingerprint(Pair([1.5], "ü"))
    assert fingerprint(index_of("a", "b")) == fingerprint(index_of("a", "b"))


def test_arrays_are_read_in_parts_and_never_copied_as_a_whole(monkeypatch):
    rows = np.arange(60_000.0).reshape(600, 100)
    columns = np.asfortranarray(rows)
    whole = fingerprint(rows)
    monkeypatch.setattr("hedgerow.fingerprint.BLOCK", 450)
    tracemalloc.start()
    try:
        assert fingerprint(columns) == fingerprint(rows) == whole
        assert tracemalloc.get_traced_memory()[1] < rows.nbytes / 4
    finally:
        tracemalloc.stop()
    assert fingerprint(np.array(1.5)) != fingerprint(np.array(2.5))


def digest_of(order, comm=ALONE, *, change=None):
    """That of some of five sequences, one of whose numbers may be another."""
    numbers = np.arange(24.0).reshape(12, 2)
    numbers[7, 1] = np.nan
    if change is not None:
        numbers[change] += 1
    lengths, starts = np.array([2, 1, 4, 2, 3]), np.array([0, 2, 3, 7, 9])
    rows = np.concatenate([np.arange(starts[s], starts[s] + lengths[s]) for s in order])
    offsets = np.append(0, np.cumsum(lengths[order]))
    counts = rows % 3
    entries = np.concatenate([np.arange(t, t + t % 3) for t in rows])
    indptr = np.append(0, np.cumsum(counts))
    return fingerprint_sequences(offsets, [numbers[rows], rows], (indptr, [entries]), comm)


def test_the_order_of_sequences_does_not_count():
    whole = digest_of([0, 1, 2, 3, 4])
    assert digest_of([3, 1, 4, 0, 2]) == whole
    parts = [[4, 0], [2], [1, 3]]
    assert ThreadComm.run(3, lambda comm: digest_of(parts[comm.rank], comm)) == [whole] * 3
    assert len({whole, digest_of([0, 1, 2, 3]), digest_of([0, 1, 2, 3, 4, 4])}) == 3


def test_what_sequences_hold_does_count():
    digests = {digest_of([0, 1, 2, 3, 4], change=place) for place in (None, (0, 0), (6, 1))}
    assert len(digests) == 3
    single, double = (np.array([[0.5], [2.0]], dtype) for dtype in (np.float32, np.float64))
    offsets = np.array([0, 2])
    assert fingerprint_sequences(offsets, [single]) == fingerprint_sequences(offsets, [double])
