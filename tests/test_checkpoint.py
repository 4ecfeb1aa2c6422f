"""Checkpoints: trainings that were ended from outside go on, and give the same model file."""

import json

import numpy as np
import pytest

from hedgerow import Checkpoint, ModelFileError, TreeCRF, load, persist
from hedgerow.objectives import Accuracy


def make_data(seed=0, n_sequences=24):
    """Sequences of three numbers a position, and three labels that depend on their neighbours."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, 8), 3)) for _ in range(n_sequences)]
    y = [((x[:, 0] + np.roll(x[:, 1], 1) > 0).astype(int) + (x[:, 2] > 1)).tolist() for x in X]
    return X, y


X, Y = make_data()
EVAL_SET = make_data(1, 8)


class Brier:
    """An objective of a user's own."""

    def value(self, marginals, labels, weights):
        return -0.5 * float((((marginals - np.eye(3)[labels]) ** 2).sum(axis=1) * weights).sum())

    def gradient(self, marginals, labels, weights):
        return (np.eye(3)[labels] - marginals) * weights[:, None]


def stop_at(*numbers):
    """A callback that presses Ctrl-C."""

    def callback(now):
        if now.number in numbers:
            raise KeyboardInterrupt

    return callback


def fit_with_stops(make, stops, data, checkpoint):
    """Train until it is stopped, and again until it is not; one stop after the other."""
    for stop in stops:
        with pytest.raises(KeyboardInterrupt):
            make(callbacks=[stop_at(stop)]).fit(*data[0], **data[1], checkpoint=checkpoint)
    return make().fit(*data[0], **data[1], checkpoint=checkpoint)


def saved(crf, path):
    crf.save(path)
    return path.read_bytes()


def small(**parameters):
    return TreeCRF(**{"n_rounds": 14, "max_depth": 2, "random_state": 0} | parameters)


TREES = {
    "likelihood": {},
    "sampled": {"subsample": 0.6, "stratified": True, "colsample_bytree": 0.7},
    "pointwise": {"objective": "pointwise"},
    "accuracy": {"objective": "accuracy", "n_rounds": 45, "warm_rounds": 3},
    "expected accuracy": {"objective": "expected_accuracy", "warm_rounds": 8},
    "own objective": {"objective": Brier()},
    "order 2, exact steps": {"order": 2, "transition_step": "exact", "newton": False},
    "weights": {"class_weight": "balanced", "window": 1},
}


@pytest.mark.parametrize("name", TREES)
def test_trees_go_on_to_the_same_file(name, tmp_path):
    def make(**more):
        return small(**TREES[name], **more)

    data = ((X, Y), {})
    n_rounds = make().n_rounds
    crf = fit_with_stops(make, [2, 8, n_rounds - 1], data, Checkpoint(tmp_path / "kept", every=3))
    assert saved(crf, tmp_path / "a") == saved(make().fit(X, Y), tmp_path / "b")


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_trees_that_stop_early(metric, tmp_path):
    def make(**more):
        stop = {"early_stopping_rounds": 6, "early_stopping_metric": metric}
        return small(n_rounds=60, subsample=0.5, **stop, **more)

    data = ((X, Y), {"eval_set": EVAL_SET, "sample_weight": np.arange(1, 25)})
    whole = make().fit(*data[0], **data[1])
    assert whole.best_round_ < len(whole.history_["loss"]) - 5 < 55
    stops = [5, whole.best_round_ + 4]
    crf = fit_with_stops(make, stops, data, Checkpoint(tmp_path / "kept", every=2))
    assert saved(crf, tmp_path / "a") == saved(whole, tmp_path / "b")


def test_trees_on_top_of_others(tmp_path):
    first = small(n_rounds=5).fit(X, Y, eval_set=EVAL_SET)
    data = ((X, Y), {"eval_set": EVAL_SET, "init": first})
    crf = fit_with_stops(small, [8, 12], data, Checkpoint(tmp_path / "kept", every=2))
    assert crf.n_rounds_ == 19
    assert saved(crf, tmp_path / "a") == saved(small().fit(*data[0], **data[1]), tmp_path / "b")


def test_text_columns_and_their_categories(tmp_path):
    rng = np.random.default_rng(3)
    X = [[{"word": str(rng.integers(30)), "size": 2.5} for _ in range(9)] for _ in range(9)]
    y = [[int(item["word"]) % 3 for item in x] for x in X]
    crf = fit_with_stops(small, [7], ((X, y), {}), Checkpoint(tmp_path / "kept", every=3))
    assert saved(crf, tmp_path / "a") == saved(small().fit(X, y), tmp_path / "b")


def test_a_seed_that_was_drawn_is_kept(tmp_path):
    seeds = []
    for random_state in (None, np.random.RandomState(7)):

        def make(random_state=random_state, **more):
            return small(subsample=0.5, random_state=random_state, **more)

        checkpoint = Checkpoint(tmp_path / f"kept {random_state is None}", every=4)
        crf = fit_with_stops(make, [6], ((X, Y), {}), checkpoint)
        seeds.append(json.loads(metadata_of(checkpoint.path))["seed"])
        again = small(subsample=0.5, random_state=seeds[-1]).fit(X, Y)
        assert again.history_ == crf.history_
    assert seeds[1] == np.random.RandomState(7).randint(np.iinfo(np.int32).max)


def metadata_of(path):
    """The JSON text of a file."""
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return header["__metadata__"]["hedgerow"].partition(" ")[2]


def test_callbacks_are_told_of_new_rounds_only(tmp_path):
    told = []

    def note(now):
        told.append(now.number)

    checkpoint = Checkpoint(tmp_path / "kept", every=4)
    with pytest.raises(KeyboardInterrupt):
        small(callbacks=[note, stop_at(6)]).fit(X, Y, checkpoint=checkpoint)
    assert told == [1, 2, 3, 4, 5, 6]
    told.clear()
    small(callbacks=[note]).fit(X, Y, checkpoint=checkpoint)
    assert told == list(range(5, 15))


@pytest.mark.parametrize("every", [1, 5, 100])
def test_a_training_that_is_over_is_not_done_again(every, tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept", every=every)
    crf = small(callbacks=[lambda now: now.number == 10]).fit(X, Y, checkpoint=checkpoint)
    written = checkpoint.path.read_bytes()
    again = small(callbacks=[pytest.fail]).fit(X, Y, checkpoint=checkpoint)
    assert again.n_rounds_ == crf.n_rounds_ == 10
    assert saved(crf, tmp_path / "a") == saved(again, tmp_path / "b")
    assert checkpoint.path.read_bytes() == written


def test_more_rounds_than_were_asked_for_at_first(tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept")
    small(n_rounds=7).fit(X, Y, checkpoint=checkpoint)
    crf = small(n_rounds=14).fit(X, Y, checkpoint=checkpoint)
    assert saved(crf, tmp_path / "a") == saved(small().fit(X, Y), tmp_path / "b")
    with pytest.raises(ValueError, match=r"after 14 rounds or iterations and n_rounds is 9 now"):
        small(n_rounds=9).fit(X, Y, checkpoint=checkpoint)


def test_what_does_not_matter_may_differ(tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept", every=2)
    with pytest.raises(KeyboardInterrupt):
        small(n_jobs=1, callbacks=[stop_at(5)]).fit(X, Y, checkpoint=checkpoint)
    crf = small(n_jobs=2, verbose=False).fit(X, Y, checkpoint=Checkpoint(checkpoint.path, every=3))
    assert crf.history_ == small().fit(X, Y).history_


@pytest.mark.parametrize(
    ("parameters", "data", "message"),
    [
        ({"max_depth": 3}, {}, r"max_depth was 2 and is 3 now; delete the file to begin anew"),
        ({"objective": Brier()}, {}, r"objective was 'likelihood' and is 'a .*Brier' now"),
        ({"objective": Accuracy(2.0)}, {}, r"objective was .* is 'Accuracy\(sharpness=2.0\)' now"),
        ({"start_labels": {0, 1, 2}}, {}, r"start_labels was None and is \[0, 1, 2\] now"),
        ({"max_bins": 9, "order": 2}, {}, r"max_bins was 255 and is 9 now, order was 1 and is 2"),
        ({"random_state": 1}, {}, r"random_state was 0 and is 1 now"),
        ({}, {"X": [x + 1 for x in X]}, r"X is not what it was"),
        ({}, {"y": [[2 - label for label in labels] for labels in Y]}, r"y is not what it was"),
        ({}, {"sample_weight": np.full(24, 2.0)}, r"sample_weight was not given and is given now"),
        ({}, {"eval_set": None}, r"eval_set was given and is not given now"),
        ({}, {"eval_set": make_data(2, 8)}, r"eval_set is not what it was"),
        ({}, {"init": small(n_rounds=1).fit(X, Y)}, r"init was not given and is given now"),
    ],
)
def test_another_training_is_refused(parameters, data, message, tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept")
    small(n_rounds=14).fit(X, Y, eval_set=EVAL_SET, checkpoint=checkpoint)
    with pytest.raises(ValueError, match=f"'.*kept' is of another training: {message}"):
        small(**parameters).fit(
            **{"X": X, "y": Y, "eval_set": EVAL_SET} | data, checkpoint=checkpoint
        )


def test_rounds_for_the_likelihood_that_would_be_others(tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept")
    small(objective="pointwise").fit(X, Y, checkpoint=checkpoint)
    with pytest.raises(ValueError, match=r"n_rounds was 14 and is 20 now"):
        small(objective="pointwise", n_rounds=20).fit(X, Y, checkpoint=checkpoint)


def test_another_kind_of_estimator_is_refused(tmp_path):
    class OtherCRF(TreeCRF):
        pass

    checkpoint = Checkpoint(tmp_path / "kept")
    OtherCRF(n_rounds=1).fit(X, Y, checkpoint=checkpoint)
    with pytest.raises(ValueError, match=r"was written by a OtherCRF and this is a TreeCRF"):
        small().fit(X, Y, checkpoint=checkpoint)


def test_another_version_is_refused(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path / "kept")
    small(n_rounds=1).fit(X, Y, checkpoint=checkpoint)
    monkeypatch.setattr("hedgerow.__version__", "99")
    with pytest.raises(ValueError, match=r"written by hedgerow [0-9.]+ and this is hedgerow 99"):
        small(n_rounds=1).fit(X, Y, checkpoint=checkpoint)


def test_damaged_files_are_refused(tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept")
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
            match=r"(?s)cannot go on from .*kept': .*; delete the file to begin anew",
        ):
            small(n_rounds=2).fit(X, Y, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("identity", {}, r"valid model: whose training it is"),
        ("seed", "7", r"its seed"),
        ("best_round", "7", r"its best round"),
        ("history", ["gone"], r"history.gone is missing"),
        ("history", None, r"its history"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(name, value, message, tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept")
    small(n_rounds=2).fit(X, Y, checkpoint=checkpoint)
    kind, state = persist.read(checkpoint.path.read_bytes())
    state = persist.State(state.tensors, state.metadata | {name: value})
    persist.write(checkpoint.path, kind, state)
    with pytest.raises(ModelFileError, match=message):
        small(n_rounds=2).fit(X, Y, checkpoint=checkpoint)


def test_figures_that_are_too_few_are_refused(tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept")
    small(n_rounds=2).fit(X, Y, checkpoint=checkpoint)
    kind, state = persist.read(checkpoint.path.read_bytes())
    state.tensors["figures"] = np.zeros(1)
    persist.write(checkpoint.path, kind, state)
    with pytest.raises(ModelFileError, match=r"its figures; delete the file"):
        small(n_rounds=2).fit(X, Y, checkpoint=checkpoint)


def test_models_and_checkpoints_are_not_taken_for_each_other(tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept")
    crf = small(n_rounds=2).fit(X, Y, checkpoint=checkpoint)
    with pytest.raises(ModelFileError, match=r"it is the checkpoint of a training, not a model"):
        load(checkpoint.path)
    crf.save(checkpoint.path)
    with pytest.raises(ModelFileError, match=r"it holds a TreeCRF, not a checkpoint; delete"):
        crf.fit(X, Y, checkpoint=checkpoint)


def test_a_folder_that_is_not_there(tmp_path):
    path = tmp_path / "nowhere" / "kept"
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere' does not exist"):
        small(callbacks=[pytest.fail]).fit(X, Y, checkpoint=Checkpoint(path))


def test_what_a_killed_writer_left_is_removed(tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept [1]")
    left = tmp_path / f".kept [1].{'0f' * 16}"
    other = tmp_path / f".kept [2].{'0f' * 16}"
    left.touch()
    other.touch()
    small(n_rounds=1).fit(X, Y, checkpoint=checkpoint)
    assert sorted(tmp_path.iterdir()) == [other, checkpoint.path]


def test_parameters_of_a_checkpoint():
    assert repr(Checkpoint("kept", every=5)) == "Checkpoint('kept', every=5)"
    with pytest.raises(TypeError, match=r"path is of type int; expected that of a file"):
        Checkpoint(7)
    for every in (0, 2.5, True):
        with pytest.raises(ValueError, match=r"every is .*; expected an integer of at least 1"):
            Checkpoint("kept", every=every)
    with pytest.raises(TypeError, match=r"checkpoint is 'kept'; expected a hedgerow.Checkpoint"):
        small().fit(X, Y, checkpoint="kept")
