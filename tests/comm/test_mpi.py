"""Processes of an MPI program; skipped where there is no MPI."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from comm.conversation import talk
from comm.mpi_program import train
from hedgerow.comm import ALONE, ThreadComm

MPIEXEC = shutil.which("mpiexec")


@pytest.mark.skipif(not (MPIEXEC and find_spec("mpi4py")), reason="needs mpi4py and mpiexec")
def test_two_processes(tmp_path):
    tests = Path(__file__).resolve().parents[1]
    paths = [str(tests), *filter(None, [os.environ.get("PYTHONPATH")])]
    program = [sys.executable, "-m", "mpi4py", str(tests / "comm" / "mpi_program.py")]
    subprocess.run(
        [MPIEXEC, "-n", "2", *program, str(tmp_path)],
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    expected = json.loads(json.dumps(ThreadComm.run(2, talk)))
    models = train(ALONE, tmp_path)
    for rank in range(2):
        heard = json.loads((tmp_path / str(rank)).read_text())
        assert heard == {"talk": expected[rank], "models": models}
