"""Trainings of trees that were stopped go on, and give the same model file."""

import json

import numpy as np
import pytest

from hedgerow import Checkpoint, TreeCRF, persist
from reference.trainings import EVAL_SET, WEIGHTS, Brier, X, Y, saved


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


def small(**parameters):
    return TreeCRF(**{"n_rounds": 14, "max_depth": 2, "random_state": 0, "n_jobs": 1} | parameters)


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
    assert saved(crf, tmp_path) == saved(make().fit(X, Y), tmp_path)


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_trees_that_stop_early(metric, tmp_path):
    def make(**more):
        stop = {"early_stopping_rounds": 6, "early_stopping_metric": metric}
        return small(n_rounds=60, subsample=0.5, **stop, **more)

    data = ((X, Y), {"eval_set": EVAL_SET, "sample_weight": WEIGHTS})
    whole = make().fit(*data[0], **data[1])
    assert whole.best_round_ < len(whole.history_["loss"]) - 5 < 55
    stops = [5, whole.best_round_ + 4]
    crf = fit_with_stops(make, stops, data, Checkpoint(tmp_path / "kept", every=2))
    assert saved(crf, tmp_path) == saved(whole, tmp_path)


def test_trees_on_top_of_others(tmp_path):
    first = small(n_rounds=5).fit(X, Y, eval_set=EVAL_SET)
    data = ((X, Y), {"eval_set": EVAL_SET, "init": first})
    crf = fit_with_stops(small, [8, 12], data, Checkpoint(tmp_path / "kept", every=2))
    assert crf.n_rounds_ == 19
    assert saved(crf, tmp_path) == saved(small().fit(*data[0], **data[1]), tmp_path)


def test_text_columns_and_their_categories(tmp_path):
    rng = np.random.default_rng(3)
    X = [[{"word": str(rng.integers(30)), "size": 2.5} for _ in range(9)] for _ in range(9)]
    y = [[int(item["word"]) % 3 for item in x] for x in X]
    crf = fit_with_stops(small, [7], ((X, y), {}), Checkpoint(tmp_path / "kept", every=3))
    assert saved(crf, tmp_path) == saved(small().fit(X, y), tmp_path)


def test_a_checkpoint_of_format_4(tmp_path):
    # Each round had a tree for every label then, and all trees counted alike.
    checkpoint = Checkpoint(tmp_path / "kept", every=3)
    with pytest.raises(KeyboardInterrupt):
        small(callbacks=[stop_at(7)]).fit(X, Y, checkpoint=checkpoint)
    kind, state = persist.read(checkpoint.path.read_bytes())
    state.metadata["format"] = 4
    for part in ("kept", "later"):
        assert (state.tensors[f"{part}.tree_weights"] == 1).all()
        for name in ("round_offsets", "outputs", "tree_weights"):
            del state.tensors[f"{part}.{name}"]
    persist.write(checkpoint.path, kind, state)
    crf = small().fit(X, Y, checkpoint=checkpoint)
    assert saved(crf, tmp_path) == saved(small().fit(X, Y), tmp_path)


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
    assert saved(crf, tmp_path) == saved(again, tmp_path)
    assert checkpoint.path.read_bytes() == written


def test_more_rounds_than_were_asked_for_at_first(tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept")
    small(n_rounds=7).fit(X, Y, checkpoint=checkpoint)
    crf = small(n_rounds=14).fit(X, Y, checkpoint=checkpoint)
    assert saved(crf, tmp_path) == saved(small().fit(X, Y), tmp_path)
    with pytest.raises(ValueError, match=r"after 14 rounds or iterations and n_rounds is 9 now"):
        small(n_rounds=9).fit(X, Y, checkpoint=checkpoint)


def test_rounds_for_the_likelihood_that_would_be_others(tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept")
    small(objective="pointwise").fit(X, Y, checkpoint=checkpoint)
    with pytest.raises(ValueError, match=r"n_rounds was 14 and is 20 now"):
        small(objective="pointwise", n_rounds=20).fit(X, Y, checkpoint=checkpoint)


@pytest.mark.parametrize("n_rounds", [4, 5, 24, 25])
def test_the_loss_of_a_training_that_ends_with_a_stage(n_rounds, tmp_path):
    crf = TreeCRF(n_rounds=n_rounds, warm_rounds=4, objective="accuracy", n_jobs=1)
    checkpoint = Checkpoint(tmp_path / "kept")
    losses = [crf.fit(X, Y, checkpoint=checkpoint).loss_ for _ in range(2)]
    assert losses[0] == losses[1] == crf.history_["loss"][-1]
