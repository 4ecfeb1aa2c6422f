"""Two workers, in separate processes, train the same model as one machine.

There are few tests, each of many cases, so that the cluster is not started for each of them.
"""

import multiprocessing
import os
import signal

import dask
import dask.dataframe as dd
import numpy as np
import pytest
from distributed import Client, LocalCluster, wait
from distributed.utils import get_mp_context
from sklearn.exceptions import ConvergenceWarning

import hedgerow
import hedgerow.dask
from comm.conversation import expected, in_collective, talk
from hedgerow import Checkpoint
from hedgerow.cli import main
from hedgerow.comm import WorkerError
from hedgerow.comm.tracker import track
from hedgerow.dask.watch import find_workers
from reference.daily_tables import daily_table
from reference.shuffled import make_sequences, to_items
from reference.trainings import Brier, saved


def make_table():
    """Numbers, some of them missing, categories, a column of more than 254 words, and weights."""
    table, random = daily_table(80), np.random.default_rng(1)
    numbers = random.integers(0, 400, len(table)).astype(str)
    table["heat"] = table["heat"].where(random.random(len(table)) < 0.9)
    words = np.char.add(table["state"].to_numpy(str), numbers)
    return table.assign(word=words, weight=random.integers(1, 4, len(table)) / 2)


TABLE = make_table()
# Modules that workers need.
NEEDED = ["dask.dataframe", "hedgerow.dask", "hedgerow.linear_crf", "hedgerow.tree_crf", "xgboost"]
CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()
TREES = {"n_rounds": 2, "max_depth": 3, "decode": "marginal"}
LINEAR = {"max_iter": 200, "tol": 0.05, "decode": "marginal"}
TRAININGS = [
    ("TreeCRF", {}),
    ("TreeCRF", {"order": 3, "window": 2}),
    ("TreeCRF", {"subsample": 0.5, "colsample_bynode": 0.5, "random_state": 1}),
    ("TreeCRF", {"stratified": True, "random_state": 1}),
    ("TreeCRF", {"class_weight": "balanced", "line_search": True}),
    ("TreeCRF", {"newton": False, "direction": "conjugate"}),
    ("TreeCRF", {"objective": "pointwise"}),
    ("TreeCRF", {"objective": "expected_accuracy"}),
    ("TreeCRF", {"objective": "accuracy"}),
    ("TreeCRF", {"objective": "f1"}),
    ("TreeCRF", {"objective": "softmax_margin"}),
    ("LinearCRF", {"order": 3}),
    ("LinearCRF", {"reg_alpha": 0.5}),
    ("LinearCRF", {"objective": "max_margin", "tol": 0.1}),
]


@pytest.fixture(scope="module")
def client():
    """Two workers, where possible forked from a process that has imported everything once."""
    settings = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1"}
    settings |= {"dashboard_address": ":0", "silence_logs": "CRITICAL"}
    how = "forkserver" if CAN_FORK else "spawn"
    with dask.config.set({"distributed.worker.multiprocessing-method": how}):
        if CAN_FORK:  # after Dask has said what is imported, which is less
            get_mp_context().set_forkserver_preload(["distributed", *NEEDED])
        with LocalCluster(**settings) as cluster, Client(cluster) as found:
            yield found


@pytest.fixture
def files(tmp_path):
    """Rows in files of very different sizes, and in another order."""
    folder = tmp_path / "files"
    folder.mkdir()
    days = np.random.default_rng(2).permutation(TABLE["day"].unique())
    for number, own in enumerate(np.split(days, [1, 4, 40])):
        rows = TABLE[TABLE["day"].isin(own)].sort_values(["day", "hour"], ascending=[False, True])
        rows.to_parquet(folder / f"{number}.parquet", index=False)
    return folder


class Training:
    """A training run on one machine, and the same on a cluster."""

    def __init__(self, kind, parameters, weight=None):
        self.kind = kind
        self.parameters = {"group_column": "day"} | (TREES if kind == "TreeCRF" else LINEAR)
        self.parameters |= parameters
        self.weight = weight
        apart = [] if kind == "TreeCRF" else ["heat"]  # which has missing values
        self.table = TABLE.drop(columns=[*apart, *([] if weight else ["weight"])])

    def alone(self):
        """The model of one machine."""
        crf = getattr(hedgerow, self.kind)(**self.parameters)
        weights = self.table[self.weight] if self.weight else None
        X = self.table.drop(columns=["hour", "state", *([self.weight] if self.weight else [])])
        return crf.fit(X, self.table["state"], sample_weight=weights)

    def on(self, client, n_partitions):
        """The model of a cluster; a single partition is on a single worker."""
        crf = getattr(hedgerow.dask, self.kind)(**self.parameters)
        table = self.table.set_index("day", drop=False).sort_index()
        frame = dd.from_pandas(table, npartitions=n_partitions)
        return crf.fit(frame, "state", self.weight, position_column="hour", client=client)


def test_the_model_file_is_the_same_for_any_number_of_workers(client, tmp_path):
    different = []
    for kind, parameters in TRAININGS:
        training = Training(kind, parameters)
        if saved(training.on(client, 3), tmp_path) != saved(training.alone(), tmp_path):
            different.append((kind, parameters))
    for kind in ("TreeCRF", "LinearCRF"):
        training = Training(kind, {}, "weight")
        alone = saved(training.alone(), tmp_path)
        if (
            not saved(training.on(client, 7), tmp_path)
            == alone
            == saved(training.on(client, 1), tmp_path)
        ):
            different.append((kind, "weights"))
    assert different == []


def test_files_of_any_size_and_attributes(client, files, tmp_path, capsys):
    crf = hedgerow.dask.TreeCRF(group_column="day", **TREES)
    crf.fit(files, "state", "weight", position_column="hour", client=client)
    alone = saved(Training("TreeCRF", {}, "weight").alone(), tmp_path)
    assert saved(crf, tmp_path) == alone
    torn = dd.from_pandas(TABLE.sample(frac=1, random_state=0), npartitions=3, sort=False)
    shuffled = {"shuffle": True, "position_column": "hour", "client": client}
    assert saved(crf.fit(torn, "state", "weight", **shuffled), tmp_path) == alone
    features = TABLE.drop(columns=["hour", "state", "weight"]).set_index("day", drop=False)
    parts = dd.from_pandas(features.sort_index(kind="stable"), npartitions=3)
    assert crf.predict(parts).compute().tolist() == crf.predict(parts.compute()).tolist()

    command = ["train", *map(str, sorted(files.iterdir())), "--group", "day", "--label", "state"]
    command += ["--rounds", "2", "-m"]
    assert main([*command, str(tmp_path / "alone")]) == 0
    spread = [str(tmp_path / "spread"), "--cluster", client.scheduler.address]
    assert main([*command, *spread]) == 0
    assert (tmp_path / "alone").read_bytes() == (tmp_path / "spread").read_bytes()
    capsys.readouterr()

    X, y = make_sequences()
    for values in (False, True):
        items = to_items(X, values=values)
        for crf in (hedgerow.TreeCRF(**TREES), hedgerow.LinearCRF(**LINEAR | {"tol": 0.5})):
            expected = saved(crf.fit(items, y), tmp_path)
            assert fit_on_workers(client, crf, items, y, tmp_path) == [expected, expected]


def fit_on_workers(client, crf, X, y, folder):
    """Model files of workers that call the method `fit` themselves, each with some sequences."""

    def work(comm):
        path = folder / str(comm.rank)
        crf.fit(X[comm.rank :: 2], y[comm.rank :: 2], comm=comm).save(path)
        return path.read_bytes()

    return on_both_workers(client, work)


def on_both_workers(client, work):
    """The results of workers that are connected by XGBoost."""
    addresses = sorted(find_workers(client))
    with track(2, "127.0.0.1") as connection:
        futures = [
            client.submit(in_collective, connection, work, workers=[address], pure=False)
            for address in addresses
        ]
        wait(futures)
        return client.gather(futures)


def test_the_collective_operations_of_xgboost(client):
    assert on_both_workers(client, talk) == [expected(2)] * 2


def test_what_goes_wrong_on_a_worker_is_known_on_the_client(client, files):
    bad = TABLE.copy()
    bad.loc[bad["day"].eq("d33").idxmax(), "noise"] = np.inf
    rows = bad[bad["day"].isin(["d33", "d34"])].assign(day=lambda part: part["day"] + "x")
    rows.to_parquet(files / "bad.parquet", index=False)
    crf = hedgerow.dask.TreeCRF(group_column="day", **TREES)
    with pytest.raises(ValueError, match=r"bad\.parquet, group 'd33x': X has inf at row 0, column"):
        crf.fit(files, "state", "weight", position_column="hour", client=client)
    TABLE[:3].to_parquet(files / "bad.parquet", index=False)
    with pytest.raises(ValueError, match=r"group 'd0' of column 'day' is in two partitions, .*bad"):
        crf.fit(files, "state", "weight", position_column="hour", client=client)
    with pytest.raises(ValueError, match="the objective Brier has no method named 'terms', but 2"):
        Training("TreeCRF", {"objective": Brier()}).on(client, 4)
    with pytest.warns(ConvergenceWarning, match="training stopped after max_iter=2 iterations"):
        Training("LinearCRF", {"max_iter": 2}).on(client, 4)


def test_a_worker_that_dies_or_hangs(client, files, tmp_path):
    training = Training("TreeCRF", {"n_rounds": 6}, "weight")
    alone = saved(training.alone(), tmp_path)
    checkpoint = Checkpoint(tmp_path / "checkpoint", every=2)
    given = {"y": "state", "sample_weight": "weight", "position_column": "hour", "client": client}
    pids = [pid for _, pid in sorted(client.run(os.getpid).items())]

    def send(which, number, victim):
        """A callback of the first worker that sends a signal to one of them."""

        def callback(step, pid=pids[victim]):
            if step.number == number:
                os.kill(pid, which)

        return callback

    crf = hedgerow.dask.TreeCRF(**training.parameters | {"n_rounds": 100})
    crf.set_params(callbacks=[send(signal.SIGSTOP, 1, victim=1)])
    try:
        with pytest.raises(WorkerError, match=r"failed: a worker did not answer in time: tcp://"):
            crf.fit(files, **given, timeout=2)
    finally:
        os.kill(pids[1], signal.SIGCONT)

    crf = hedgerow.dask.TreeCRF(**training.parameters)
    crf.set_params(callbacks=[send(signal.SIGKILL, 4, victim=0)])
    with pytest.raises(WorkerError, match=r"training has failed: a worker was lost: tcp://"):
        crf.fit(files, checkpoint=checkpoint, **given, timeout=20)
    assert not hasattr(crf, "model_")
    crf.set_params(callbacks=None).fit(files, checkpoint=checkpoint, **given)
    assert saved(crf, tmp_path) == alone
    assert len(crf.history_["loss"]) == 6
