"""Training by several processes: bytes, waiting and sending, and what a cluster would take.

``rounds`` trains with 1, 2 and 4 processes on this machine, each with as many positions (weak
scaling), and reports per round how many bytes each process sends, how long it waits for the
others, and how long sending takes. ``links`` measures sums over arrays of several sizes.
``model`` puts both together to a cost model, up to 256 workers and 10^10 positions. ``memory``
trains from a Parquet file and says how much memory a position takes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common

# Bytes of the arrays whose sums are measured.
SIZES = (8, 1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24)
LENGTH = 50
# Networks and clusters of the cost model.
NETWORKS = {"1 Gb/s": (125e6, 100e-6), "10 Gb/s": (1.25e9, 50e-6)}
WORKERS = (1, 4, 16, 64, 256)
CORES, EFFICIENCY = 16, 0.8


class MeasuredComm:
    """Another communicator, with a count of what is sent and of how long it takes.

    A barrier before every message tells waiting for others from sending.
    """

    def __init__(self, comm: Any) -> None:
        import numpy as np

        self.rank, self.size = comm.rank, comm.size
        self._comm, self._nothing = comm, np.zeros(1, np.int64)
        self.n_messages = self.n_bytes = 0
        self.waiting = self.sending = 0.0

    def _measure(self, call: Callable[[], Any], n_bytes: int) -> Any:
        begin = time.perf_counter()
        if self.size > 1:
            self._comm.sum(self._nothing)
        met = time.perf_counter()
        found = call()
        self.waiting += met - begin
        self.sending += time.perf_counter() - met
        self.n_messages += 1
        self.n_bytes += n_bytes
        return found

    def sum(self, values: Any) -> Any:
        return self._measure(lambda: self._comm.sum(values), values.nbytes)

    def max(self, values: Any) -> Any:
        return self._measure(lambda: self._comm.max(values), values.nbytes)

    def gather(self, value: Any) -> Any:
        import pickle

        return self._measure(lambda: self._comm.gather(value), len(pickle.dumps(value)))

    def broadcast(self, value: Any, root: int = 0) -> Any:
        import pickle

        n_bytes = len(pickle.dumps(value)) if self.rank == root else 0
        return self._measure(lambda: self._comm.broadcast(value, root), n_bytes)

    def figures(self) -> list[float]:
        """What was counted so far."""
        return [self.n_messages, self.n_bytes, self.waiting, self.sending, time.perf_counter()]


def make_table(n_positions: int, n_columns: int, n_labels: int, seed: int) -> tuple[Any, Any, Any]:
    """Numbers, labels that depend on some of them and on each other, and groups."""
    import numpy as np

    random = np.random.default_rng(seed)
    X = random.normal(size=(n_positions, n_columns)).astype(np.float32)
    pull = X[:, :n_labels] + 0.5 * np.roll(X[:, n_labels : 2 * n_labels], 1, axis=0)
    y = (pull + random.normal(size=pull.shape)).argmax(axis=1)
    groups = np.arange(n_positions) // LENGTH
    return X, y, [f"{seed}-{group}" for group in groups.tolist()]


def with_workers(n_workers: int, work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What each of some processes, which are connected, returns."""
    from xgboost.tracker import RabitTracker

    tracker = RabitTracker(n_workers=n_workers, host_ip="127.0.0.1", sortby="task")
    tracker.start()
    connection = tracker.worker_args()
    jobs = [(connection, rank, work, arguments) for rank in range(n_workers)]
    with multiprocessing.get_context("spawn").Pool(n_workers) as pool:
        return pool.starmap(run_connected, jobs, chunksize=1)


def run_connected(
    connection: dict[str, Any], rank: int, work: Callable[..., Any], arguments: Sequence[Any]
) -> Any:
    import xgboost
    from xgboost.collective import CommunicatorContext

    from hedgerow.comm import XGBoostComm

    connection = {**connection, "dmlc_task_id": f"{rank:06d}", "dmlc_timeout": 600}
    with xgboost.config_context(verbosity=0), CommunicatorContext(**connection):
        return work(XGBoostComm(), *arguments)


def train_one(comm: Any, options: argparse.Namespace) -> common.Record:
    """Train on the data of one worker; figures per round, after the first."""
    from hedgerow import TreeCRF

    X, y, groups = make_table(options.positions, options.columns, options.labels, comm.rank)
    measured = MeasuredComm(comm)
    noted = []
    TreeCRF(
        n_rounds=options.rounds,
        max_depth=options.depth,
        decode="marginal",
        n_jobs=options.jobs,
        callbacks=[lambda step: noted.append(measured.figures()) and None],
    ).fit(X, y, groups=groups, comm=measured)
    first, last = noted[0], noted[-1]
    per_round = [(b - a) / (len(noted) - 1) for a, b in zip(first, last, strict=True)]
    names = ("messages", "bytes", "seconds_waiting", "seconds_sending", "seconds")
    return dict(zip(names, per_round, strict=True))


def measure_rounds(options: argparse.Namespace) -> common.Record:
    """Figures per round of all processes, by how many there are."""
    found = {}
    for n_workers in options.processes:
        common.log(f"{n_workers} processes, {options.positions:,} positions each")
        workers = with_workers(n_workers, train_one, options)
        share = max(each["seconds_sending"] / each["seconds"] for each in workers)
        found[str(n_workers)] = {"workers": workers, "largest_share_of_sending": share}
    return found


def sum_arrays(comm: Any) -> dict[int, float]:
    """Seconds that the sum of arrays takes, by their bytes; the median of several."""
    import statistics

    import numpy as np

    found = {}
    for n_bytes in SIZES:
        values, seconds = np.ones(n_bytes // 8, np.int64), []
        for _ in range(15):
            comm.sum(values[:1])
            with common.Stopwatch() as watch:
                comm.sum(values)
            seconds.append(watch.seconds)
        found[n_bytes] = statistics.median(seconds)
    return found


def measure_links(options: argparse.Namespace) -> common.Record:
    """Seconds of sums, by the number of processes and of bytes."""
    many = [n_workers for n_workers in options.processes if n_workers > 1]
    return {str(n_workers): with_workers(n_workers, sum_arrays)[0] for n_workers in many}


def predict_costs(rounds: common.Record, options: argparse.Namespace) -> list[common.Record]:
    """Seconds per round and efficiency on clusters, from what was measured on this machine.

    A round is computing, in proportion to the positions of a worker, and messages around a ring of
    W workers: 2 (W - 1) steps each, every byte going out twice but for 1 / W. Networks are given by
    bytes per second and seconds per step. Stragglers and reading are not in it.
    """
    alone = rounds["1"]["workers"][0]
    both = rounds[max(rounds, key=int)]["workers"][0]
    threads = options.jobs or 1
    per_position = alone["seconds"] * threads / options.positions / (CORES * EFFICIENCY)
    found = []
    for total in (10**8, 10**9, 10**10):
        for n_workers in WORKERS:
            computing = per_position * total / n_workers
            for network, (bandwidth, latency) in NETWORKS.items():
                steps, around = 2 * (n_workers - 1), 2 * (n_workers - 1) / n_workers
                sending = both["messages"] * steps * latency + both["bytes"] * around / bandwidth
                found.append(
                    {
                        "positions": total,
                        "workers": n_workers,
                        "network": network,
                        "seconds_per_round": computing + sending,
                        "efficiency": computing / (computing + sending),
                    }
                )
    return found


def train_from_file(path: str, stored: bool, n_rounds: int) -> common.Record:
    """Train from a Parquet file, read part by part or at once; how much memory it takes."""
    from hedgerow import TreeCRF
    from hedgerow.files import make_recipe, read_file, read_parquet_files

    recipe = make_recipe(path, label="label", group="group")
    crf = TreeCRF(n_rounds=n_rounds, max_depth=4, decode="marginal", n_jobs=1)
    with AnonymousMemory() as memory:
        data = read_parquet_files([path], recipe) if stored else read_file(path, recipe)
        reading = memory.largest
        crf.fit(data.X, data.y)
    return {
        "bytes_per_position_to_read": reading / data.n_positions,
        "bytes_per_position": memory.largest / data.n_positions,
    }


class AnonymousMemory:
    """Bytes that this process takes at most within a ``with``, beyond those it had (Linux).

    Contents of files do not count: the system drops them when it needs memory.
    """

    def __enter__(self) -> AnonymousMemory:
        self._before, self._is_over, self.largest = anonymous_bytes(), threading.Event(), 0
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.002):
            self.largest = max(self.largest, anonymous_bytes() - self._before)


def anonymous_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def measure_memory(options: argparse.Namespace) -> common.Record:
    """Memory of trainings from a Parquet file, each in a process of its own."""
    import pyarrow as pa
    from pyarrow import parquet

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "table.parquet")
        X, y, groups = make_table(options.positions, options.columns, options.labels, 0)
        columns = {"group": groups, **{f"x{n}": column for n, column in enumerate(X.T)}}
        table = pa.table({**columns, "label": y})
        parquet.write_table(table, path, row_group_size=1 << 14)
        del X, y, groups, table
        found = {"table_mib": options.positions * options.columns * 4 / 2**20}
        for name, stored in (("part by part", True), ("at once", False)):
            common.log(f"{options.positions:,} positions, {name}")
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                found[name] = pool.apply(train_from_file, (path, stored, options.rounds))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help="rounds, links, model, memory; all")
    parser.add_argument("--positions", type=int, default=1_000_000, help="of each process")
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--labels", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=1, help="threads of each process")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--quick", action="store_true", help="only show that it runs")
    options = parser.parse_args()
    if options.quick:
        options.positions, options.rounds, options.processes = 5_000, 3, [1, 2]
    asked = options.parts or ["rounds", "links", "model", "memory"]
    record: common.Record = {"machine": common.machine_facts(), "options": vars(options)}
    if "links" in asked:
        record["seconds_of_sums"] = measure_links(options)
    if "rounds" in asked or "model" in asked:
        record["rounds"] = measure_rounds(options)
    if "model" in asked:
        record["model"] = predict_costs(record["rounds"], options)
    if "memory" in asked:
        record["memory"] = measure_memory(options)
    common.print_json(record)


if __name__ == "__main__":
    main()
