"""Communication between the workers of a training that is spread over several processes.

Each worker holds whole sequences. All that depends on all of them is a sum, a maximum or a union,
and becomes the same on every worker by way of a `Comm`.
"""

from hedgerow.comm.mpi import MPIComm
from hedgerow.comm.protocol import (
    ALONE,
    Alone,
    Comm,
    LostContactError,
    WorkerError,
    check_comm,
)
from hedgerow.comm.thread_comm import ThreadComm
from hedgerow.comm.xgboost_comm import XGBoostComm

__all__ = [
    "ALONE",
    "Alone",
    "Comm",
    "LostContactError",
    "MPIComm",
    "ThreadComm",
    "WorkerError",
    "XGBoostComm",
    "check_comm",
]
