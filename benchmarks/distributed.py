"""Training with several processes: bytes, waiting and sending, and estimates for a cluster.

``rounds`` trains with 1, 2 and 4 processes on this machine, each with the same number of positions
(weak scaling), and reports per round how many bytes each process sends, how long it waits for the
others, and how long sending takes. ``links`` measures sums over arrays of several sizes. ``model``
combines both into a cost model, up to 256 workers and 10^10 positions. ``memory`` trains from a
Parquet file and reports the memory per position.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import pickle
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common

# Sizes in bytes of the arrays whose sums are measured.
SIZES = (8, 1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24)
LENGTH = 50
# Networks (bytes per second, seconds per step) and clusters of the cost model.
NETWORKS = {"1 Gb/s": (125e6, 100e-6), "10 Gb/s": (1.25e9, 50e-6)}
# Steps of a sum over W workers: around a ring, as XGBoost does it, or doubling, as MPI does.
STEPS: dict[str, Callable[[int], float]] = {
    "ring": lambda n_workers: 2 * (n_workers - 1),
    "doubling": lambda n_workers: 2 * math.log2(n_workers),
}
WORKERS = (1, 4, 16, 64, 256)
CORES, EFFICIENCY = 16, 0.8
# With more than `MANY_POSITIONS` positions, each sum takes two numbers instead of one. A round then
# sends twice as many bytes, and takes about 1.2 times the processor time: measured on 1,000,000
# positions, with two numbers and with one.
WIDE_BYTES, WIDE_WORK = 2.0, 1.2


class MeasuredComm:
    """Wraps a communicator, and measures the bytes that are sent and the time it takes.

    A barrier before every message separates waiting for others from sending. Counts are recorded
    whenever the first worker broadcasts something, which it does at the end of every round. On a
    machine that is busy with other things, processes are often interrupted while they send; so the
    minimum time that each message took in any round is recorded too.
    """

    def __init__(self, comm: Any) -> None:
        import numpy as np

        self.rank, self.size = comm.rank, comm.size
        self._comm, self._nothing = comm, np.zeros(1, np.int64)
        self._n_messages = self._n_bytes = 0
        self._waiting = self._sending = 0.0
        self._seconds: list[list[float]] = [[]]
        self._noted: list[list[float]] = []

    def _measure(self, call: Callable[[], Any], n_bytes: int) -> Any:
        begin = time.perf_counter()
        if self.size > 1:
            self._comm.sum(self._nothing)
        met = time.perf_counter()
        found = call()
        self._waiting += met - begin
        self._seconds[-1].append(time.perf_counter() - met)
        self._sending += self._seconds[-1][-1]
        self._n_messages += 1
        self._n_bytes += n_bytes
        return found

    def sum(self, values: Any) -> Any:
        return self._measure(lambda: self._comm.sum(values), values.nbytes)

    def max(self, values: Any) -> Any:
        return self._measure(lambda: self._comm.max(values), values.nbytes)

    def gather(self, value: Any) -> Any:
        return self._measure(lambda: self._comm.gather(value), len(pickle.dumps(value)))

    def broadcast(self, value: Any, root: int = 0) -> Any:
        found = self._measure(
            lambda: self._comm.broadcast(value, root),
            len(pickle.dumps(value)) * (self.rank == root),
        )
        counted = self._n_messages, self._n_bytes, self._waiting, self._sending
        self._noted.append([*counted, time.perf_counter(), time.process_time()])
        self._seconds.append([])
        return found

    def per_round(self) -> common.Record:
        """Figures per round, without the first."""
        first, last = self._noted[0], self._noted[-1]
        found = [(b - a) / (len(self._noted) - 1) for a, b in zip(first, last, strict=True)]
        names = ("messages", "bytes", "waiting_s", "sending_s", "seconds", "processor_s")
        rounds = self._seconds[1:-1]
        least = sum(map(min, zip(*rounds, strict=False)))
        return {**dict(zip(names, found, strict=True)), "least_sending_s": least}


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
    """Run a function in several connected processes; returns the results."""
    from hedgerow.comm.tracker import track

    with (
        track(n_workers, "127.0.0.1") as connection,
        multiprocessing.get_context("spawn").Pool(n_workers) as pool,
    ):
        jobs = [(connection, rank, work, arguments) for rank in range(n_workers)]
        return pool.starmap(run_connected, jobs, chunksize=1)


def run_connected(
    connection: dict[str, Any], rank: int, work: Callable[..., Any], arguments: Sequence[Any]
) -> Any:
    from hedgerow.comm import XGBoostComm

    connection = {**connection, "dmlc_task_id": f"{rank:06d}", "dmlc_timeout": 600}
    with XGBoostComm.connect(connection) as comm:
        return work(comm, *arguments)


def train_one(comm: Any, options: argparse.Namespace) -> common.Record:
    """Train on the data of one worker; returns figures per round."""
    from hedgerow import TreeCRF

    X, y, groups = make_table(options.positions, options.columns, options.labels, comm.rank)
    measured = MeasuredComm(comm)
    TreeCRF(
        n_rounds=options.rounds, max_depth=options.depth, decode="marginal", n_jobs=options.jobs
    ).fit(X, y, groups=groups, comm=measured)
    return measured.per_round()


def measure_rounds(options: argparse.Namespace) -> common.Record:
    """Figures per round of all processes, by number of processes."""
    found = {}
    for n_workers in options.processes:
        common.log(f"{n_workers} processes, {options.positions:,} positions each")
        workers = with_workers(n_workers, train_one, options)
        shares = {
            name: max(each[f"{name}_s"] / each["seconds"] for each in workers)
            for name in ("waiting", "sending")
        }
        shares["least_sending"] = max(
            each["least_sending_s"] / (each["least_sending_s"] + each["processor_s"])
            for each in workers
        )
        found[str(n_workers)] = {"workers": workers, "largest_shares_of_a_round": shares}
    return found


def sum_arrays(comm: Any) -> dict[int, float]:
    """Seconds for a sum of arrays, by size in bytes; the minimum of many."""
    import numpy as np

    found = {}
    for n_bytes in SIZES:
        values, seconds = np.ones(n_bytes // 8, np.int64), []
        for _ in range(30):
            comm.sum(values[:1])
            with common.Stopwatch() as watch:
                comm.sum(values)
            seconds.append(watch.seconds)
        found[n_bytes] = min(seconds)
    return found


def measure_links(options: argparse.Namespace) -> common.Record:
    """Seconds for sums, by number of processes and bytes."""
    many = [n_workers for n_workers in options.processes if n_workers > 1]
    return {str(n_workers): with_workers(n_workers, sum_arrays)[0] for n_workers in many}


def measured_network(links: common.Record) -> tuple[float, float]:
    """Bytes per second and seconds per step between two processes on this machine."""
    seconds = links["2"]
    smallest, largest = min(seconds), max(seconds)
    bandwidth = (largest - smallest) * times_sent(2) / (seconds[largest] - seconds[smallest])
    return bandwidth, seconds[smallest] / STEPS["ring"](2)


def times_sent(n_workers: int) -> float:
    """How often a worker sends each byte of a sum."""
    return 2 * (n_workers - 1) / n_workers


def predict_costs(
    rounds: common.Record, links: common.Record, options: argparse.Namespace
) -> common.Record:
    """Seconds per round and efficiency on clusters, estimated from measurements on this machine.

    A round consists of computing, proportional to the positions of a worker, and of sums over all
    workers; `WIDE_WORK` and `WIDE_BYTES` are their factors for more than `MANY_POSITIONS`. Networks
    are given by bytes per second and seconds per step. Stragglers, reading, and work that does not
    depend on the number of positions are not included.
    """
    from hedgerow.trees.units import MANY_POSITIONS

    alone, spread = rounds["1"]["workers"][0], rounds["2"]["workers"][0]
    per_position = alone["processor_s"] / options.positions
    networks = {"measured on this machine": measured_network(links), **NETWORKS}
    found = []
    for per_worker in (10**6, 10**7, 10**10 // WORKERS[-1]):
        for n_workers in WORKERS:
            is_wide = n_workers * per_worker > MANY_POSITIONS
            more_bytes, more_work = (WIDE_BYTES, WIDE_WORK) if is_wide else (1.0, 1.0)
            computing = more_work * per_position * per_worker / (CORES * EFFICIENCY)
            n_bytes = more_bytes * spread["bytes"]
            costs = {}
            for (network, (bandwidth, latency)), way in product(networks.items(), STEPS):
                sending = spread["messages"] * STEPS[way](n_workers) * latency
                sending += n_bytes * times_sent(n_workers) / bandwidth
                costs[f"{network}, {way}"] = {
                    "seconds_per_round": computing + sending,
                    "efficiency": computing / (computing + sending),
                }
            found.append({"workers": n_workers, "positions": n_workers * per_worker, **costs})
    return {
        "processor_seconds_per_position_and_round": per_position,
        "cores_per_worker": CORES,
        "efficiency_of_cores": EFFICIENCY,
        "networks_bytes_per_second_and_seconds_per_step": networks,
        "clusters": found,
    }


def train_from_file(path: str, stored: bool, n_rounds: int) -> common.Record:
    """Train from a Parquet file, read in chunks or at once; returns the memory that it takes."""
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
    """Additional peak memory of this process within a ``with`` block, in bytes (Linux).

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
    """Memory of training from a Parquet file, each run in its own process."""
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
    if "links" in asked or "model" in asked:
        record["seconds_of_sums"] = measure_links(options)
    if "rounds" in asked or "model" in asked:
        record["rounds"] = measure_rounds(options)
    if "model" in asked:
        record["model"] = predict_costs(record["rounds"], record["seconds_of_sums"], options)
    if "memory" in asked:
        record["memory"] = measure_memory(options)
    common.print_json(record)


if __name__ == "__main__":
    main()
