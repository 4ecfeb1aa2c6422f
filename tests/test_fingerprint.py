"""Fingerprints: the same for the same data, others for others."""

import tracemalloc
from dataclasses import dataclass

import numpy as np

from hedgerow import _core
from hedgerow.fingerprint import fingerprint


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
