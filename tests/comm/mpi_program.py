"""The MPI program of the tests: each process writes its results to a file."""

import json
import sys
from pathlib import Path

from comm.conversation import talk
from hedgerow import LinearCRF, TreeCRF
from hedgerow.comm import Comm, MPIComm
from reference.shuffled import make_sequences, to_items


def train(comm: Comm, folder: Path) -> list[str]:
    """Model files, in hexadecimal, trained on the sequences of this process."""
    X, y = make_sequences()
    items, own = to_items(X, values=True), slice(comm.rank, None, comm.size)
    found = []
    for crf, form in [
        (TreeCRF(n_rounds=3, order=2, subsample=0.5, random_state=0), X),
        (TreeCRF(n_rounds=2, objective="f1"), items),
        (LinearCRF(max_iter=5, tol=0.0, reg_alpha=0.1), items),
    ]:
        path = folder / f"model-{comm.rank}"
        crf.fit(form[own], y[own], comm=comm).save(path)
        found.append(path.read_bytes().hex())
    return found


if __name__ == "__main__":
    comm, folder = MPIComm(), Path(sys.argv[1])
    heard = {"talk": talk(comm), "models": train(comm, folder)}
    (folder / str(comm.rank)).write_text(json.dumps(heard))
