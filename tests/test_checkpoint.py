"""Checkpoints: their files, and when they are refused."""

import errno
import multiprocessing
import os
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from abuse.children import fork, wait
from hedgerow import Checkpoint, LinearCRF, ModelFileError, TreeCRF, load, persist
from hedgerow import lock as lock_module
from hedgerow.atomic_write import name_beside
from hedgerow.objectives import Accuracy
from reference.trainings import EVAL_SET, Brier, X, Y, make_data, saved, stop_at, train_long


class Power(Brier):
    """The same with a state."""

    def __init__(self, power):
        self.power = power


def small(**parameters):
    return TreeCRF(**{"n_rounds": 14, "max_depth": 2, "random_state": 0, "n_jobs": 1} | parameters)


@pytest.fixture
def checkpoint(tmp_path):
    return Checkpoint(tmp_path / "kept", every=2)


@cache
def file_of(training):
    """The checkpoint that a training leaves."""
    crf, options = TRAININGS[training]
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder, "kept"), every=2)
        crf.fit(X, Y, **options, checkpoint=checkpoint)
        return checkpoint.path.read_bytes()


def test_what_does_not_matter_may_differ(checkpoint):
    small(n_rounds=5, callbacks=[print]).fit(X, Y, checkpoint=checkpoint)
    crf = small(n_jobs=2, verbose=False).fit(X, Y, checkpoint=Checkpoint(checkpoint.path, every=3))
    assert crf.history_ == small().fit(X, Y).history_


@pytest.mark.parametrize(
    ("parameters", "data", "message"),
    [
        ({"max_depth": 3}, {}, r"max_depth was 2 and is 3 now; delete the file to start again"),
        ({"objective": Brier()}, {}, r"objective was 'likelihood' and is .*\.Brier\(\) now"),
        ({"objective": Accuracy(2.0)}, {}, r"objective was .*\.Accuracy\(sharpness=2.0\) now"),
        ({"objective": Power(3.0)}, {}, r"objective was .*\.Power\(power=3.0\) now"),
        ({"start_labels": {0, 1, 2}}, {}, r"start_labels was None and is \[0, 1, 2\] now"),
        ({"forbidden": []}, {}, r"forbidden was None and is \[\] now"),
        ({"label_patterns": {(1, 0): 1}.keys()}, {}, r"label_patterns .* is \[\[1, 0\]\] now"),
        ({"class_weight": {1: 2}}, {}, r"class_weight was None and is {1: 2} now"),
        ({"max_bins": 9, "order": 2}, {}, r"max_bins was 255 and is 9 now, order was 1 and is 2"),
        ({"random_state": 1}, {}, r"random_state was 0 and is 1 now"),
        ({}, {"X": [x + 1 for x in X]}, r"X has changed"),
        ({}, {"y": [[2 - label for label in labels] for labels in Y]}, r"y has changed"),
        ({}, {"sample_weight": np.full(24, 2.0)}, r"sample_weight was not given and is given now"),
        ({}, {"eval_set": None}, r"eval_set was given and is not given now"),
        ({}, {"eval_set": make_data(2, 8)}, r"eval_set has changed"),
        ({}, {"init": small(n_rounds=1).fit(X, Y)}, r"init was not given and is given now"),
    ],
)
def test_another_training_is_refused(parameters, data, message, checkpoint):
    checkpoint.path.write_bytes(file_of("another"))
    with pytest.raises(ValueError, match=f"'.*kept' belongs to another training run: {message}"):
        small(**parameters).fit(
            **{"X": X, "y": Y, "eval_set": EVAL_SET} | data, checkpoint=checkpoint
        )


@pytest.mark.parametrize(
    ("name", "before", "now", "message"),
    [
        ("start_labels", pd.Series([0, 2]), pd.Series([0, 1, 2]), "start_labels"),
        ("forbidden", {(2, 2): 1}.keys(), {}.keys(), r"forbidden was \[\[2, 2\]\] and"),
        ("label_patterns", [(0, 1)], [(1, 0)], "label_patterns was"),
        ("class_weight", {0: 1}, {0: 5}, "class_weight was {0: 1} and is {0: 5}"),
        ("objective", Power(2.0), Power(3.0), r"Power\(power=2.0\) and is .*=3.0\)"),
    ],
)
def test_other_values_of_the_same_type_are_refused(name, before, now, message, checkpoint):
    # They begin with 0, and no 2 comes after a 2.
    labels = [[0, *(label % 2 for label in each[2:]), 2][-len(each) :] for each in Y]
    small(n_rounds=2, warm_rounds=1, **{name: before}).fit(X, labels, checkpoint=checkpoint)
    with pytest.raises(ValueError, match=rf"belongs to another training run: .*{message}"):
        small(n_rounds=2, warm_rounds=1, **{name: now}).fit(X, labels, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"reg_lambda": 1, "max_step": 2.0}, {"reg_lambda": 1.0, "max_step": np.int64(2)}),
        ({"start_labels": [0, 1, 2]}, {"start_labels": np.array([0, 1, 2])}),
        ({"class_weight": {0: 1, 2: 3}}, {"class_weight": {np.int64(2): 3.0, 0: 1}}),
        ({"objective": Power(2)}, {"objective": Power(2.0)}),
        ({"window": (1, 2)}, {"window": [1, 2]}),
    ],
)
def test_other_types_of_the_same_values_go_on(before, now, checkpoint):
    small(n_rounds=4, warm_rounds=1, **before).fit(X, Y, checkpoint=checkpoint)
    crf = small(n_rounds=6, warm_rounds=1, **now).fit(X, Y, checkpoint=checkpoint)
    assert crf.history_ == small(n_rounds=6, warm_rounds=1, **now).fit(X, Y).history_


def test_an_objective_that_cannot_be_described_is_refused(checkpoint):
    crf = small(n_rounds=2, objective=Power(lambda: 2))
    with pytest.raises(TypeError, match=r"Power, which a checkpoint cannot compare: obj"):
        crf.fit(X, Y, checkpoint=checkpoint)
    assert not checkpoint.path.exists()


def test_an_objective_may_change_while_it_is_used(checkpoint):
    class Counting(Brier):
        n_calls = 0

        def value(self, *args):
            self.n_calls += 1
            return super().value(*args)

    for n_rounds in (2, 3):
        crf = small(n_rounds=n_rounds, warm_rounds=1, objective=Counting())
        crf.fit(X, Y, checkpoint=checkpoint)
        assert crf.objective.n_calls > 0


def test_another_kind_of_estimator_is_refused(checkpoint):
    class OtherCRF(TreeCRF):
        pass

    OtherCRF(n_rounds=1).fit(X, Y, checkpoint=checkpoint)
    with pytest.raises(ValueError, match=r"was written by a OtherCRF and this is a TreeCRF"):
        small().fit(X, Y, checkpoint=checkpoint)


def test_another_version_is_refused(checkpoint, monkeypatch):
    small(n_rounds=1).fit(X, Y, checkpoint=checkpoint)
    monkeypatch.setattr("hedgerow.version.__version__", "99")
    with pytest.raises(ValueError, match=r"written by hedgerow [0-9.]+ and this is hedgerow 99"):
        small(n_rounds=1).fit(X, Y, checkpoint=checkpoint)


def test_damaged_files_are_refused(checkpoint):
    small(n_rounds=2).fit(X, Y, checkpoint=checkpoint)
    whole = checkpoint.path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [b"", whole[:9], whole[:-1], b"PK" + whole]
    for place in rng.integers(8, len(whole), 20):
        damaged.append(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
    for data in damaged:
        checkpoint.path.write_bytes(data)
        with pytest.raises(
            ModelFileError,
            match=r"(?s)cannot resume from .*kept': .*(; delete the file to|or delete the file if)",
        ):
            small(n_rounds=2).fit(X, Y, checkpoint=checkpoint)


FLAT = [x * 0 for x in X]  # training on other data does not help here: no round is kept
WEIGHTS = {"reg_lambda": 0.1, "max_iter": 9, "warm_iter": 1, "tol": 0, "n_jobs": 1}
TRAININGS = {
    "another": (small(), {"eval_set": EVAL_SET}),
    "trees": (small(n_rounds=9, early_stopping_rounds=8), {"eval_set": (FLAT, Y)}),
    "conjugate": (
        small(n_rounds=9, early_stopping_rounds=8, direction="conjugate"),
        {"eval_set": (FLAT, Y)},
    ),
    "likelihood": (LinearCRF(**WEIGHTS), {}),
    "max_margin": (LinearCRF(objective="max_margin", **WEIGHTS), {}),
}
APART = "its planes do not fit together"
# By training: what is put in which place of its checkpoint, and the message.
FORGED = {
    "trees": [
        ("identity", {}, "its description of the training run is not valid"),
        ("seed", "7", "its seed is not valid"),
        ("seed", -1, "its seed is not valid"),
        ("best_step", "7", "its best step is not valid"),
        ("best_step", -1, "its best step is not valid"),
        ("ended", None, "its training state is not valid"),
        ("history", ["gone"], "history.gone is missing"),
        ("history", None, "its history is not valid"),
        ("loss", np.array([0.0, 1.0]), "its loss is not valid"),
        ("loss", np.array([np.inf]), "its loss is not valid"),
        ("loss", np.array([-np.inf]), "its loss is not valid"),
        ("best", np.array([]), "its best step is not valid"),
        ("kept.columns", 99, r"ValueError\('tree 0: .*"),
        ("later.lefts", 99, r"ValueError\('tree 0: .*"),
    ],
    "conjugate": [
        ("steps", np.ones(99), "it has more steps than rounds"),
        ("steps", np.nan, "steps is not finite"),
        ("steps", np.ones(1), "carries has the wrong shape"),
        ("carries", 1e30, "its shares of previous directions are out of range"),
        ("conjugate_rounds", -1, "conjugate_rounds is not a valid number"),
        ("direction.weights", np.zeros(1), "direction.weights has the wrong shape"),
        ("direction.weights_before", np.inf, "direction.weights_before is not finite"),
        ("direction.product", np.nan, "direction.product is not finite"),
        ("direction.product", np.ones(2), "direction.product has the wrong shape"),
    ],
    "likelihood": [
        ("done", ["1"], "its stages do not fit the training run"),
        ("done", [0], "its stages do not fit the training run"),
        ("losses", np.zeros(2), "its stages do not fit the training run"),
        ("history", [], "its history has no loss"),
        ("scaled_weights", np.zeros(1), "scaled_weights has the wrong shape"),
        ("metric.steps", np.zeros(1, np.float32), "its steps are not valid"),
        ("metric.products", -np.ones(12), "its steps are not valid"),
        ("metric.products", np.full(12, np.inf), "its steps are not valid"),
    ],
    "max_margin": [
        ("done", [1, 0], "its stages do not fit the training run"),
        ("done", [], "its stages do not fit the training run"),
        ("done", [-1], "its stages do not fit the training run"),
        ("bundle.gram", np.zeros((1, 1, 1)), "bundle.gram has the wrong shape"),
        ("bundle.gram", np.full((1, 11, 11), np.nan), "bundle.gram is not finite"),
        ("bundle.gram", -np.eye(11)[None], APART),
        ("bundle.at_centre", np.full((1, 11), 1e100), APART),
        ("bundle.squares", np.array([-1.0]), APART),
        ("bundle.offsets", np.zeros(99), "its number of planes is out of range"),
        ("bundle.figures", -np.ones(3), "its step control is out of range"),
        ("bundle.figures", np.array([1e120, 1, 0]), "its step control is out of range"),
        ("bundle.figures", np.array([1, 1e120, 0]), "its loss and bound are not valid"),
        ("bundle.figures", np.array([1, 1e-9, 1]), "its loss and bound are not valid"),
        ("bundle.step_shares", np.zeros(11), "the shares of its planes do not add up to 1"),
        ("bundle.step_shares", np.ones(11), "the shares of its planes do not add up to 1"),
    ],
}


@pytest.mark.parametrize(
    ("training", "name", "value", "message"),
    [(training, *case) for training, cases in FORGED.items() for case in cases],
)
def test_a_file_that_makes_no_sense_is_refused(training, name, value, message, checkpoint):
    crf, options = TRAININGS[training]
    kind, state = persist.read(file_of(training))
    if name in state.tensors:
        old = state.tensors[name]
        state.tensors[name] = value if np.ndim(value) else np.full_like(old, value)
    else:
        state.metadata[name] = value
    persist.write(checkpoint.path, kind, state)
    with pytest.raises(ModelFileError, match=f"{message}; delete the file to start again"):
        crf.fit(X, Y, **options, checkpoint=checkpoint)


@pytest.mark.parametrize("forged", [{"class": "x", "state": []}, {"pairs": 3}, {}])
def test_a_description_that_makes_no_sense_is_refused(forged, checkpoint):
    small(n_rounds=2).fit(X, Y, checkpoint=checkpoint)
    kind, state = persist.read(checkpoint.path.read_bytes())
    state.metadata["identity"]["parameters"]["objective"] = forged
    persist.write(checkpoint.path, kind, state)
    with pytest.raises(
        ModelFileError, match=r"its description of the training run is not valid; delete"
    ):
        small(n_rounds=2).fit(X, Y, checkpoint=checkpoint)


def test_an_objective_is_the_same_wherever_it_lies(checkpoint):
    @dataclass(repr=False)
    class Own(Brier):
        strength: int = 1

    for _ in range(2):
        small(n_rounds=1, objective=Own()).fit(X, Y, checkpoint=checkpoint)


def test_models_and_checkpoints_are_not_taken_for_each_other(checkpoint):
    crf = small(n_rounds=2).fit(X, Y, checkpoint=checkpoint)
    with pytest.raises(
        ModelFileError, match=r"it is the checkpoint of a training run, not a model"
    ):
        load(checkpoint.path)
    crf.save(checkpoint.path)
    with pytest.raises(
        ModelFileError, match=r"it holds a TreeCRF, not a checkpoint; pass another path$"
    ):
        crf.fit(X, Y, checkpoint=checkpoint)


def test_what_a_killed_writer_left_is_removed(tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept [1]")
    left = tmp_path / f"{name_beside(checkpoint.path)}-{'0f' * 8}"
    other = tmp_path / f"{name_beside(tmp_path / 'kept [2]')}-{'0f' * 8}"
    left.touch()
    other.touch()
    small(n_rounds=1).fit(X, Y, checkpoint=checkpoint)
    assert sorted(tmp_path.iterdir()) == [other, checkpoint.path]


def test_what_was_left_stays_where_nobody_can_tell_whose_it_is(checkpoint, tmp_path, monkeypatch):
    def fail(_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(lock_module, "_try_lock", fail)
    left = tmp_path / f"{name_beside(checkpoint.path)}-{'0f' * 8}"
    left.touch()
    with pytest.warns(UserWarning, match=r"file system without file locking \(no locks avail"):
        small(n_rounds=1).fit(X, Y, checkpoint=checkpoint)
    assert sorted(tmp_path.iterdir()) == [left, checkpoint.path]


def test_a_second_training_is_refused_and_the_first_unharmed(checkpoint, tmp_path):
    (tmp_path / "link").symlink_to("kept")

    def begin_second(now):
        if now.number == 3:
            with pytest.raises(BlockingIOError, match=rf"link' is in use by process {os.getpid()}"):
                small().fit(X, Y, checkpoint=Checkpoint(tmp_path / "link"))

    crf = small(callbacks=[begin_second]).fit(X, Y, checkpoint=checkpoint)
    assert saved(crf, tmp_path) == saved(small().fit(X, Y), tmp_path)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_every_end_of_a_training_releases_the_lock(error, checkpoint, tmp_path):
    with pytest.raises(error):
        small(callbacks=[stop_at(5, error)]).fit(X, Y, checkpoint=checkpoint)
    assert list(tmp_path.iterdir()) == [checkpoint.path]
    small().fit(X, Y, checkpoint=checkpoint)
    with pytest.raises(ValueError, match="belongs to another training run"):
        small(max_depth=3).fit(X, Y, checkpoint=checkpoint)
    assert list(tmp_path.iterdir()) == [checkpoint.path]


def start_long(kind, path):
    """Start another process that trains and keeps every step; a fork need not import anything."""
    forks = "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if forks else "spawn")
    process = context.Process(target=train_long, args=(kind, Checkpoint(path, every=1)))
    process.start()
    return process


def test_a_training_of_another_process_goes_on_unharmed(tmp_path):
    path = tmp_path / "kept"
    child = start_long("TreeCRF", path)
    while not path.exists():
        time.sleep(0.01)
    for _ in range(10):
        with pytest.raises(BlockingIOError, match=f"kept' is in use by process {child.pid} on"):
            small().fit(X, Y, checkpoint=Checkpoint(path))
    child.join()
    assert child.exitcode == 0
    assert list(tmp_path.iterdir()) == [path]
    assert len(persist.read(path.read_bytes())[1].tensors["history.loss"]) == 150


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_does_not_write(tmp_path):
    children, told = [], tmp_path / "told"

    def fork_once(now):
        if now.number == 2:
            children.append(os.fork())

    def train():
        try:
            checkpoint = Checkpoint(tmp_path / "kept", every=1)
            small(callbacks=[fork_once]).fit(X, Y, checkpoint=checkpoint)
        except RuntimeError as error:
            told.write_text(str(error))
            return 7
        return 10 + wait(children[0])

    assert wait(fork(train)) == 17
    assert "belongs to the process that this one was forked from" in told.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "told"}


def test_places_that_cannot_be_written_are_refused_before_training(tmp_path):
    def fit(path):
        small(callbacks=[pytest.fail]).fit(X, Y, checkpoint=Checkpoint(path))

    with pytest.raises(FileExistsError, match="it is a folder; name a file"):
        fit(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere' does not exist"):
        fit(tmp_path / "nowhere" / "kept")
    with pytest.raises(OSError, match="too long") as long:
        fit(tmp_path / ("n" * 256))
    assert long.value.filename == str(tmp_path / ("n" * 256))
    assert list(tmp_path.iterdir()) == []
    small(n_rounds=1).fit(X, Y, checkpoint=Checkpoint(tmp_path / ("n" * 255)))


def test_parameters_of_a_checkpoint():
    assert repr(Checkpoint("kept", every=5)) == "Checkpoint('kept', every=5)"
    with pytest.raises(TypeError, match=r"path is of type int; expected a file path"):
        Checkpoint(7)
    for every in (0, 2.5, True):
        with pytest.raises(ValueError, match=r"every is .*; expected an integer of at least 1"):
            Checkpoint("kept", every=every)
    with pytest.raises(TypeError, match=r"checkpoint is 'kept'; expected a hedgerow.Checkpoint"):
        small().fit(X, Y, checkpoint="kept")


@pytest.mark.parametrize("kind", ["TreeCRF", "LinearCRF"])
def test_a_training_that_was_killed_goes_on(kind, tmp_path):
    path = tmp_path / "kept"
    for _ in range(5):  # should the training ever be over before it is killed
        path.unlink(missing_ok=True)
        child = start_long(kind, path)
        while not path.exists() and child.is_alive():
            time.sleep(0.01)
        child.kill()
        child.join()
        if child.exitcode != 0:
            break
    n_done = len(persist.read(path.read_bytes())[1].tensors["history.loss"])
    resumed = train_long(kind, Checkpoint(path, every=100))
    assert 0 < n_done < len(resumed.history_["loss"])
    assert saved(resumed, tmp_path) == saved(train_long(kind, None), tmp_path)
