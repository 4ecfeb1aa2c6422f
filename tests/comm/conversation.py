"""Messages between workers in the tests, in a file that other processes can import."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hedgerow.comm import Comm, XGBoostComm


def talk(comm: Comm) -> tuple[Any, ...]:
    """Call every method once."""
    own = np.array([[comm.rank, 2**62], [-1, 5]])
    return (
        comm.sum(own).tolist(),
        comm.max(own).tolist(),
        comm.max(np.array([0.5 * comm.rank])).tolist(),
        comm.sum(np.zeros(0, np.int64)).tolist(),
        comm.sum(np.array(comm.rank + 1)).tolist(),  # a single number, without an axis
        comm.gather("abc"[comm.rank]),
        comm.broadcast(None if comm.rank == 0 else 1),
        comm.broadcast({"rank": comm.rank}, root=comm.size - 1),
    )


def expected(size: int) -> tuple[Any, ...]:
    """What `talk` returns on each of this many workers."""
    big = np.array([2**62]) * size
    return (
        [[sum(range(size)), int(big[0])], [-size, 5 * size]],
        [[size - 1, 2**62], [-1, 5]],
        [0.5 * (size - 1)],
        [],
        sum(range(size + 1)),
        list("abc"[:size]),
        None,
        {"rank": size - 1},
    )


def in_collective(arguments: dict[str, Any], work: Callable[[Comm], Any]) -> Any:
    with XGBoostComm.connect(arguments) as comm:
        return work(comm)
