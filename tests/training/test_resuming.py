"""Stopped training runs are resumed from checkpoints, with the same model file."""

import numpy as np
import pytest

from hedgerow import Checkpoint, LinearCRF, TreeCRF, persist
from reference.estimators import ESTIMATORS
from reference.trainings import EVAL_SET, WEIGHTS, Brier, X, Y, make_data, saved, stop_at

pytestmark = pytest.mark.filterwarnings("ignore:training stopped after max_iter")

# Columns of other units than those that training of weights has.
UNITS = [x * [1, 1000, 0.01] + [0, 2020, 0] for x in X]
USUAL = {
    LinearCRF: {"reg_lambda": 0.1, "tol": 1e-2, "n_jobs": 1},
    TreeCRF: {"n_rounds": 14, "max_depth": 2, "random_state": 0, "n_jobs": 1},
}
KINDS = {
    LinearCRF: {
        "likelihood": {},
        "L1": {"reg_alpha": 0.3},
        "L1 alone": {"reg_alpha": 0.5, "reg_lambda": 0.0, "all_pairs": True},
        "pointwise": {"objective": "pointwise", "warm_iter": 5},
        "accuracy, L1": {"objective": "accuracy", "max_iter": 60, "warm_iter": 3, "reg_alpha": 0.1},
        "expected accuracy": {"objective": "expected_accuracy", "warm_iter": 0},
        "max margin": {"objective": "max_margin", "warm_iter": 4, "max_iter": 20, "tol": 1e-9},
        "max margin alone": {
            "objective": "max_margin",
            "warm_iter": 0,
            "reg_lambda": 1.0,
            "pattern_lambda": [2.0],
        },
        "order 2": {"order": 2, "transition_attributes": True, "class_weight": "balanced"},
        "attributes on patterns": {
            "order": 2,
            "pattern_attributes": True,
            "reg_alpha": 0.1,
            "max_iter": 30,
        },
    },
    TreeCRF: {
        "likelihood": {},
        "sampled": {"subsample": 0.6, "stratified": True, "colsample_bytree": 0.7},
        "sampled by gradients": {"subsample": 0.4, "sampling_method": "gradient_based"},
        "pointwise": {"objective": "pointwise"},
        "accuracy": {"objective": "accuracy", "n_rounds": 45, "warm_rounds": 3},
        "own objective": {"objective": Brier()},
        "order 2, exact steps": {"order": 2, "transition_step": "exact", "newton": False},
        "weights": {"class_weight": "balanced", "window": 1},
        "line search": {"line_search": True, "order": 3, "pattern_lambda": 0.5},
        "conjugate": {"direction": "conjugate", "n_rounds": 26},
        "conjugate, sampled": {"direction": "conjugate", "subsample": 0.6, "stratified": True},
        "conjugate, accuracy": {
            "direction": "conjugate",
            "objective": "accuracy",
            "n_rounds": 27,
            "warm_rounds": 3,
        },
        "conjugate, labels asked about": {
            "direction": "conjugate",
            "transitions": "trees",
            "objective": "pointwise",
            "order": 2,
        },
    },
}
# The parameter that limits the number of steps.
LIMIT = {LinearCRF: "max_iter", TreeCRF: "n_rounds"}


@pytest.fixture
def checkpoint(tmp_path):
    return Checkpoint(tmp_path / "kept", every=4)


def make(estimator, **parameters):
    return estimator(**USUAL[estimator] | parameters)


def fit_with_stops(crf, stops, checkpoint, *data, **options):
    """Train until it is stopped, and again until it is not; one stop after the other."""
    for stop in stops:
        crf.callbacks = [stop_at(stop)]
        with pytest.raises(KeyboardInterrupt):
            crf.fit(*data, **options, checkpoint=checkpoint)
    crf.callbacks = None
    return crf.fit(*data, **options, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("estimator", "kind"), [(each, kind) for each in ESTIMATORS for kind in KINDS[each]]
)
def test_a_training_that_was_stopped_goes_on_to_the_same_file(
    estimator, kind, checkpoint, tmp_path
):
    crf = make(estimator, **KINDS[estimator][kind])
    options = {"sample_weight": WEIGHTS, "eval_set": (UNITS, Y)}
    whole = saved(crf.fit(UNITS, Y, **options), tmp_path)
    n_steps = len(crf.history_["loss"])
    assert n_steps > 8
    # Before the first checkpoint, in a later stage, and at the end.
    stops = [3, n_steps * 2 // 3, n_steps]
    for again in (stops, []):  # the second time it is over
        fit_with_stops(crf, again, checkpoint, UNITS, Y, **options)
        assert saved(crf, tmp_path) == whole


@pytest.mark.parametrize("objective", ["likelihood", "pointwise"])
def test_a_training_that_starts_from_another_model(estimator, objective, checkpoint, tmp_path):
    init, other = (
        make(estimator, **{LIMIT[estimator]: n}).fit(*make_data(2), eval_set=EVAL_SET)
        for n in (5, 4)
    )
    crf = make(estimator, objective=objective)
    options = {"eval_set": EVAL_SET, "init": init}
    whole = saved(crf.fit(X, Y, **options), tmp_path)
    crf = fit_with_stops(crf, [7, 12], checkpoint, X, Y, **options)
    assert saved(crf, tmp_path) == whole
    if estimator is TreeCRF:
        assert crf.n_rounds_ == 19
    with pytest.raises(ValueError, match=r"another training run: init has changed; delete"):
        crf.fit(X, Y, **options | {"init": other}, checkpoint=checkpoint)


def test_more_steps_than_were_asked_for_at_first(estimator, checkpoint, tmp_path):
    limit = LIMIT[estimator]
    make(estimator, **{limit: 7}).fit(X, Y, checkpoint=checkpoint)
    crf = make(estimator).fit(X, Y, checkpoint=checkpoint)
    assert saved(crf, tmp_path) == saved(make(estimator).fit(X, Y), tmp_path)
    n_steps = len(crf.history_["loss"])
    message = rf"has {n_steps} rounds or iterations already, but {limit} is 9; increase it"
    with pytest.raises(ValueError, match=message):
        make(estimator, **{limit: 9}).fit(X, Y, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("estimator", "parameters", "message"),
    [
        (LinearCRF, {"max_iter": 900}, r"max_iter was 1000 and is 900 now"),
        (
            LinearCRF,
            {"min_count": 2, "tol": 0.0},
            r"min_count was 0 and is 2 now, tol was 0.01 and is 0.0 now;",
        ),
        (TreeCRF, {"n_rounds": 20}, r"n_rounds was 14 and is 20 now"),
    ],
)
def test_another_schedule_is_another_training(estimator, parameters, message, checkpoint):
    items = [[{"word": str(row[0])[:4]} for row in x] for x in X]
    make(estimator, objective="pointwise").fit(items, Y, checkpoint=checkpoint)
    with pytest.raises(ValueError, match=message):
        make(estimator, objective="pointwise", **parameters).fit(items, Y, checkpoint=checkpoint)


def test_text_columns_and_their_categories(estimator, checkpoint, tmp_path):
    rng = np.random.default_rng(3)
    X = [[{"word": str(rng.integers(30)), "size": 2.5} for _ in range(9)] for _ in range(9)]
    y = [[int(item["word"]) % 3 for item in x] for x in X]
    crf = fit_with_stops(make(estimator), [7], checkpoint, X, y)
    assert saved(crf, tmp_path) == saved(make(estimator).fit(X, y), tmp_path)


@pytest.mark.parametrize("every", [1, 5, 100])
def test_a_training_that_is_over_is_not_done_again(estimator, every, tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept", every=every)
    crf = make(estimator, callbacks=[lambda now: now.number == 10])
    crf.fit(X, Y, checkpoint=checkpoint)
    written = checkpoint.path.read_bytes()
    again = make(estimator, callbacks=[pytest.fail]).fit(X, Y, checkpoint=checkpoint)
    assert len(again.history_["loss"]) == len(crf.history_["loss"]) == 10
    assert saved(crf, tmp_path) == saved(again, tmp_path)
    assert checkpoint.path.read_bytes() == written


def test_callbacks_are_told_of_new_steps_only(estimator, checkpoint):
    told = []

    def note(now):
        told.append(now.number)

    with pytest.raises(KeyboardInterrupt):
        make(estimator, callbacks=[note, stop_at(6)]).fit(X, Y, checkpoint=checkpoint)
    assert told == [1, 2, 3, 4, 5, 6]
    told.clear()
    crf = make(estimator, callbacks=[note]).fit(X, Y, checkpoint=checkpoint)
    assert told == list(range(5, 1 + len(crf.history_["loss"])))


# What only trees have.


def test_a_checkpoint_of_format_4(checkpoint, tmp_path):
    # Each round had a tree for every label then, and all trees counted alike.
    with pytest.raises(KeyboardInterrupt):
        make(TreeCRF, callbacks=[stop_at(7)]).fit(X, Y, checkpoint=checkpoint)
    kind, state = persist.read(checkpoint.path.read_bytes())
    state.metadata["format"] = 4
    for part in ("kept", "later"):
        assert (state.tensors[f"{part}.tree_weights"] == 1).all()
        for name in ("round_offsets", "outputs", "tree_weights"):
            del state.tensors[f"{part}.{name}"]
    persist.write(checkpoint.path, kind, state)
    crf = make(TreeCRF).fit(X, Y, checkpoint=checkpoint)
    assert saved(crf, tmp_path) == saved(make(TreeCRF).fit(X, Y), tmp_path)


def test_missing_values_on_both_sides_of_trees_on_labels_before(checkpoint, tmp_path):
    rng = np.random.default_rng(4)
    gaps = [np.where(rng.random(x.shape) < 0.25, np.nan, x) for x in X]
    parameters = {"missing": "fractional", "transitions": "trees", "order": 2, "n_rounds": 9}
    crf = make(TreeCRF, max_depth=3, subsample=0.8, **parameters)
    whole = saved(crf.fit(gaps, Y), tmp_path)
    table = crf.trees()
    assert "both" in table["missing"]
    assert "label[-1]" in table["feature"]
    fit_with_stops(crf, [3, 6], checkpoint, gaps, Y)
    assert saved(crf, tmp_path) == whole


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(7)])
def test_a_seed_that_was_drawn_is_kept(random_state, checkpoint):
    crf = make(TreeCRF, subsample=0.5, random_state=random_state)
    fit_with_stops(crf, [6], checkpoint, X, Y)
    seed = persist.read(checkpoint.path.read_bytes())[1].metadata["seed"]
    if random_state is not None:
        assert seed == np.random.RandomState(7).randint(np.iinfo(np.int32).max)
    again = make(TreeCRF, subsample=0.5, random_state=seed).fit(X, Y)
    assert again.history_ == crf.history_


@pytest.mark.parametrize("n_rounds", [4, 5, 24, 25])
def test_the_loss_of_a_training_that_ends_with_a_stage(n_rounds, checkpoint):
    crf = TreeCRF(n_rounds=n_rounds, warm_rounds=4, objective="accuracy", n_jobs=1)
    losses = [crf.fit(X, Y, checkpoint=checkpoint).loss_ for _ in range(2)]
    assert losses[0] == losses[1] == crf.history_["loss"][-1]
