"""Communication between workers, such as processes on several machines, that train one model.

Each worker holds whole sequences. Everything that depends on all sequences is a sum, a maximum or a
union, which a `Comm` computes, with the same result on every worker.
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
