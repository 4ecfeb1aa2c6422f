"""Group check: every group must be in a single partition, over all workers."""

from __future__ import annotations

from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import Comm
from hedgerow.dask.local_data import LocalData

__all__ = ["check_groups_apart"]

# Number of digests that a worker sends at a time, to limit memory.
BLOCK = 1 << 20


def check_groups_apart(data: LocalData, comm: Comm) -> None:
    """Raise ValueError, on all workers, if the rows of a group are in two partitions.

    Workers send digests of eight bytes; the names of groups with equal digests are compared, so
    that different groups with the same digest are not confused.
    """
    names = [group for portion in data.portions for group in portion.groups]
    digests = _digests(names)
    n_blocks = -(-int(comm.max(np.array([len(names)]))[0]) // BLOCK)
    suspects: set[int] = set()
    for block in range(n_blocks):
        mine = digests[digests % np.uint64(n_blocks) == block]
        found, counts = np.unique(np.concatenate(comm.gather(mine)), return_counts=True)
        suspects.update(found[counts > 1].tolist())
    if not suspects:
        return
    parts = [portion.name for portion in data.portions for _ in portion.groups]
    places = [place for place, digest in enumerate(digests.tolist()) if digest in suspects]
    first: dict[Any, str] = {}
    found_in = comm.gather([(names[place], parts[place]) for place in places])
    for name, part in chain.from_iterable(found_in):
        if name in first:
            raise ValueError(
                f"group {name!r} of column {data.group_column!r} is in two partitions, "
                f"{first[name]} and {part}; the rows of a group must be in one: write the data "
                "that way, or in Python call fit with shuffle=True and the position_column that "
                "rows are sorted by"
            )
        first[name] = part


def _digests(names: list[Any]) -> NDArray[np.uint64]:
    """Digests of the names of groups; 1 and 1.0 are equal, and have the same digest."""
    texts = (str(int(n) if isinstance(n, float) and n.is_integer() else n) for n in names)
    found = (blake2b(t.encode(errors="surrogatepass"), digest_size=8).digest() for t in texts)
    return np.frombuffer(b"".join(found), np.uint64)
