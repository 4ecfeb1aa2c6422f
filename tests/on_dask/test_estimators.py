"""Estimators on a cluster of one worker, a thread of this process."""

import dask.dataframe as dd
import numpy as np
import pytest
from distributed import Client

import hedgerow
import hedgerow.dask
from reference.daily_tables import daily_table
from reference.trainings import saved


@pytest.fixture(scope="module")
def client():
    with Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as found:
        yield found


TABLE = daily_table(20).sort_values(["day", "hour"], ignore_index=True)
FEATURES = TABLE.drop(columns=["hour", "state"])


@pytest.mark.parametrize("name", ["TreeCRF", "LinearCRF"])
def test_the_model_file_is_that_of_one_machine(client, name, tmp_path):
    parameters = {"group_column": "day"} | ({"n_rounds": 3} if name == "TreeCRF" else {})
    alone = getattr(hedgerow, name)(**parameters).fit(FEATURES, TABLE["state"])
    frame = dd.from_pandas(TABLE, npartitions=1)
    crf = getattr(hedgerow.dask, name)(**parameters)
    crf.fit(frame, "state", position_column="hour")
    assert saved(crf, tmp_path) == saved(alone, tmp_path)
    cut = int((TABLE["day"] == "d7").argmax())
    folder = tmp_path / "table"
    folder.mkdir()
    for number, part in enumerate((TABLE[:cut], TABLE[cut:])):
        part.to_parquet(folder / f"{number}.parquet")
    crf.fit(folder, "state", position_column="hour", client=client)
    assert saved(crf, tmp_path) == saved(alone, tmp_path)
    labels = crf.predict(frame[FEATURES.columns.tolist()])
    assert labels.compute().tolist() == alone.predict(FEATURES).tolist()


def test_predictions_of_partitions(client, tmp_path):
    alone = hedgerow.TreeCRF(group_column="day", n_rounds=3).fit(FEATURES, TABLE["state"])
    crf = hedgerow.dask.TreeCRF(group_column="day", n_rounds=3).fit(FEATURES, TABLE["state"])
    # Data in memory are trained on in this process.
    assert saved(crf, tmp_path) == saved(alone, tmp_path)
    cut = int((TABLE["day"] == "d7").argmax())
    ends = [0, 0, cut, len(TABLE)]  # the first partition is empty
    frame = dd.from_map(
        lambda begin, end: FEATURES[begin:end], ends[:-1], ends[1:], meta=FEATURES[:0]
    )
    labels = crf.predict(frame, decode="viterbi").compute()
    assert labels.index.equals(TABLE.index)
    assert labels.tolist() == alone.predict(FEATURES, decode="viterbi").tolist()
    marginals = crf.predict_marginals(frame).compute()
    assert marginals.columns.tolist() == ["idle", "on", "wash"]
    np.testing.assert_array_equal(marginals, alone.predict_marginals(FEATURES))
    np.testing.assert_array_equal(crf.predict_marginals(FEATURES), marginals)
    assert crf.predict(FEATURES).tolist() == alone.predict(FEATURES).tolist()


def test_rows_of_a_group_are_brought_together_on_request(client, tmp_path):
    alone = hedgerow.TreeCRF(group_column="day", n_rounds=2)
    alone.fit(FEATURES, TABLE["state"])
    rows = np.random.default_rng(0).permutation(len(TABLE))
    for number in range(3):
        TABLE.iloc[rows[number::3]].to_parquet(tmp_path / f"{number}.parquet")
    crf = hedgerow.dask.TreeCRF(group_column="day", n_rounds=2)
    with pytest.raises(ValueError, match=r"group 'd\d+' of column 'day' is in two partitions, /"):
        crf.fit(tmp_path, "state", position_column="hour")
    crf.fit(tmp_path, "state", position_column="hour", shuffle=True)
    assert saved(crf, tmp_path) == saved(alone, tmp_path)


def test_bad_data_are_named_by_partition_and_group(client):
    bad = TABLE.copy()
    bad.loc[bad["day"].eq("d3").idxmax(), "noise"] = np.inf
    crf = hedgerow.dask.TreeCRF(group_column="day")
    with pytest.raises(ValueError, match=r"partition 0, group 'd3': X has inf at row 0, column 'n"):
        crf.fit(dd.from_pandas(bad, npartitions=1), "state", position_column="hour")
    assert not hasattr(crf, "model_")


def test_figures_and_callbacks(client, capsys):
    crf = hedgerow.dask.TreeCRF(group_column="day", n_rounds=4, verbose=2)
    crf.set_params(callbacks=[lambda step: step.number == 2])
    crf.fit(dd.from_pandas(TABLE, npartitions=1), "state", position_column="hour")
    assert len(crf.history_["loss"]) == 2
    assert crf.verbose == 2
    assert crf.n_jobs is None
    assert capsys.readouterr().err.startswith("1/4  loss=")


def test_workers_may_be_threads_of_one_process(tmp_path):
    alone = hedgerow.TreeCRF(group_column="day", n_rounds=2).fit(FEATURES, TABLE["state"])
    crf = hedgerow.dask.TreeCRF(group_column="day", n_rounds=2)
    with Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as client:
        frame = dd.from_pandas(TABLE.set_index("day", drop=False), npartitions=6)
        crf.fit(frame, "state", position_column="hour", client=client)
    assert saved(crf, tmp_path) == saved(alone, tmp_path)


FRAME = dd.from_pandas(TABLE[:9], npartitions=1)
REFUSED = {
    "group_column is None; expected the name": lambda crf: crf.fit(FRAME, "state"),
    "y is of type ndarray; expected the name of a column": lambda crf: crf.fit(FRAME, np.ones(9)),
    "groups is given, .* set group_column": lambda crf: crf.fit(FRAME, "state", groups="day"),
    "X_base is given, .* leave it out": lambda crf: crf.fit(FRAME, "state", X_base=FRAME),
    "timeout is 0; expected": lambda crf: crf.set_params(group_column="day").fit(
        FRAME, "state", timeout=0
    ),
    "X has no rows; expected": lambda crf: crf.set_params(group_column="day").fit(
        FRAME.loc[99:], "state"
    ),
    "X has no column 'z', which y names": lambda crf: crf.set_params(group_column="day").fit(
        FRAME, "z"
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(client, message):
    with pytest.raises((ValueError, TypeError), match=message):
        REFUSED[message](hedgerow.dask.TreeCRF())
