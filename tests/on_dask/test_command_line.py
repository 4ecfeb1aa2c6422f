"""hedgerow train on a cluster: of one worker, a thread of this process."""

import sys

import pytest
from distributed import Client

from hedgerow.cli import main
from reference.command_line import complaint
from reference.daily_tables import daily_table


@pytest.fixture
def cluster():
    with Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as found:
        yield found.scheduler.address


@pytest.fixture
def files(tmp_path):
    table = daily_table(20).drop(columns="hour")
    late = table["day"].isin(["d7", "d8", "d9"])
    for name, part in {"a": table[~late], "b": table[late]}.items():
        part.to_parquet(tmp_path / f"{name}.parquet", index=False)
    return [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]


SETTINGS = ["--group", "day", "--label", "state", "--rounds", "3"]


def test_the_model_file_is_that_of_one_machine(files, cluster, tmp_path, capsys):
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    assert main(["train", *files, "-m", str(alone), *SETTINGS]) == 0
    capsys.readouterr()
    assert main(["train", *files, "-m", str(spread), *SETTINGS, "--cluster", cluster]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("2 files: 115 positions, 3 labels\n3 features: heat, noise, weather")
    assert "3/3  loss=" in said.err
    assert spread.read_bytes() == alone.read_bytes()


def test_bad_data_are_named(files, cluster, tmp_path, capsys):
    table = daily_table(3).drop(columns="hour")
    table.loc[4, "heat"] = float("inf")
    table.to_parquet(files[0], index=False)
    arguments = ["train", files[0], "-m", tmp_path / "model", *SETTINGS, "--cluster", cluster]
    message = complaint(capsys, *arguments)
    assert f"{files[0]}, group 'd0': X[0] has inf at position 4, column 'heat'" in message


def test_what_is_refused(files, tmp_path, capsys, monkeypatch):
    arguments = ["train", *files, "-m", tmp_path / "model", *SETTINGS]
    message = complaint(capsys, *arguments, "--workers", 2, "--cluster", "tcp://127.0.0.1:1")
    assert "--workers starts a cluster, and --cluster names one; give one of them" in message
    assert "--workers is 0; expected at least 1" in complaint(capsys, *arguments, "--workers", 0)
    text = tmp_path / "a.csv"
    daily_table(2).to_csv(text)
    on_text = ["train", text, "-m", tmp_path / "model", *SETTINGS, "--workers", 2]
    assert f"{text} is no Parquet file; --cluster and --workers can be used if all" in complaint(
        capsys, *on_text
    )
    monkeypatch.setitem(sys.modules, "hedgerow.dask", None)
    message = complaint(capsys, *arguments, "--workers", 2)
    assert "--workers and --cluster need further packages (" in message
    assert "pip install 'hedgerow[dask]'" in message
