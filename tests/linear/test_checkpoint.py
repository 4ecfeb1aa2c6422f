"""Trainings of weights that were stopped go on, and give the same model file."""

import numpy as np
import pytest

from hedgerow import Checkpoint, LinearCRF, ModelFileError, _core, persist
from hedgerow.progress import Progress
from reference.trainings import EVAL_SET, WEIGHTS, Brier, X, Y, make_data, saved

pytestmark = pytest.mark.filterwarnings("ignore:training stopped after max_iter")

MORE = make_data(2)


def make(**parameters):
    return LinearCRF(**{"reg_lambda": 0.1, "tol": 1e-6, "n_jobs": 1} | parameters)


@pytest.fixture
def stop_after(monkeypatch):
    """Press Ctrl-C after so many iterations, counted from the very first; None: never."""

    class Stopping(Progress):
        stop = None

        def __init__(self, total, verbose, done=0):
            super().__init__(total, verbose, done)
            self.n_done = done

        def update(self, figures):
            self.n_done += 1
            if self.n_done == self.stop:
                raise KeyboardInterrupt

    monkeypatch.setattr("hedgerow.estimator.Progress", Stopping)
    return lambda n_iter: setattr(Stopping, "stop", n_iter)


KINDS = {
    "likelihood": {},
    "L1": {"reg_alpha": 0.3},
    "L1 alone": {"reg_alpha": 0.5, "reg_lambda": 0.0, "all_pairs": True},
    "pointwise": {"objective": "pointwise", "warm_iter": 5},
    "accuracy": {"objective": "accuracy", "max_iter": 80, "tol": 1e-4},
    "accuracy, L1": {"objective": "accuracy", "max_iter": 60, "warm_iter": 3, "reg_alpha": 0.1},
    "expected accuracy": {"objective": "expected_accuracy", "warm_iter": 0},
    "own objective": {"objective": Brier(), "warm_iter": 12},
    "max margin": {"objective": "max_margin", "warm_iter": 4, "max_iter": 90, "tol": 1e-9},
    "max margin alone": {"objective": "max_margin", "warm_iter": 0, "reg_lambda": 1.0},
    "order 2": {"order": 2, "transition_attributes": True, "class_weight": "balanced"},
}


@pytest.mark.parametrize("name", KINDS)
def test_weights_go_on_to_the_same_file(name, stop_after, tmp_path):
    crf = make(**KINDS[name])
    options = {"sample_weight": WEIGHTS, "eval_set": EVAL_SET}
    whole = saved(crf.fit(X, Y, **options), tmp_path)
    n_iter = crf.n_iter_
    assert n_iter > 8
    checkpoint = Checkpoint(tmp_path / "kept", every=4)
    # Before the first checkpoint, soon after it, in later stages, and at the end.
    for stop in sorted({3, 6, n_iter // 2, n_iter * 3 // 4, n_iter}):
        stop_after(stop)
        with pytest.raises(KeyboardInterrupt):
            crf.fit(X, Y, **options, checkpoint=checkpoint)
    stop_after(None)
    assert saved(crf.fit(X, Y, **options, checkpoint=checkpoint), tmp_path) == whole
    assert saved(crf.fit(X, Y, **options, checkpoint=checkpoint), tmp_path) == whole  # it is over


@pytest.mark.parametrize("objective", ["likelihood", "pointwise"])
def test_weights_that_start_from_others(objective, stop_after, tmp_path):
    crf = make(objective=objective)
    init = make(max_iter=3).fit(*MORE)
    whole = saved(crf.fit(X, Y, init=init), tmp_path)
    checkpoint = Checkpoint(tmp_path / "kept", every=4)
    stop_after(7)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, Y, init=init, checkpoint=checkpoint)
    stop_after(None)
    assert saved(crf.fit(X, Y, init=init, checkpoint=checkpoint), tmp_path) == whole
    other = make(max_iter=4).fit(*MORE)
    with pytest.raises(ValueError, match=r"another training: init is not what it was; delete"):
        crf.fit(X, Y, init=other, checkpoint=checkpoint)


def test_more_iterations_than_were_asked_for_at_first(tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept")
    make(max_iter=7).fit(X, Y, checkpoint=checkpoint)
    crf = make().fit(X, Y, checkpoint=checkpoint)
    assert saved(crf, tmp_path) == saved(make().fit(X, Y), tmp_path)
    with pytest.raises(ValueError, match=rf"after {crf.n_iter_} rounds or iterations and max_iter"):
        make(max_iter=7).fit(X, Y, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_iter": 900}, r"max_iter was 1000 and is 900 now"),
        (
            {"min_count": 2, "tol": 0.0},
            r"min_count was 0 and is 2 now, tol was 1e-06 and is 0.0 now;",
        ),
    ],
)
def test_another_training_is_refused(parameters, message, tmp_path):
    items = [[{"word": str(row[0])[:4]} for row in x] for x in X]
    checkpoint = Checkpoint(tmp_path / "kept")
    make(objective="pointwise").fit(items, Y, checkpoint=checkpoint)
    with pytest.raises(ValueError, match=message):
        make(objective="pointwise", **parameters).fit(items, Y, checkpoint=checkpoint)


def damage(checkpoint, name, value):
    kind, state = persist.read(checkpoint.path.read_bytes())
    if isinstance(value, np.ndarray):
        state.tensors[name] = value
    else:
        state.metadata[name] = value
    persist.write(checkpoint.path, kind, state)


@pytest.mark.parametrize(
    ("objective", "name", "value", "message"),
    [
        ("likelihood", "done", ["1"], r"its stages"),
        ("likelihood", "done", [0], r"its stages"),
        ("max_margin", "done", [1, 0], r"its stages"),
        ("max_margin", "done", [], r"its stages"),
        ("max_margin", "done", [-1], r"its stages"),
        ("likelihood", "losses", np.zeros(2), r"its stages"),
        ("likelihood", "history", [], r"its history"),
        ("likelihood", "scaled_weights", np.zeros(1), r"scaled_weights has the wrong shape"),
        ("likelihood", "metric.steps", np.zeros(1, np.float32), r"its steps"),
        ("likelihood", "metric.products", -np.ones(12), r"its steps"),
        ("likelihood", "metric.products", np.full(12, np.inf), r"its steps"),
        ("max_margin", "bundle.gram", np.zeros((1, 1, 1)), r"bundle.gram has the wrong shape"),
        ("max_margin", "bundle.offsets", np.zeros(99), r"its planes"),
        ("max_margin", "bundle.figures", -np.ones(3), r"its pull"),
        ("max_margin", "bundle.figures", np.array([1e120, 1, 0]), r"its pull"),
        ("max_margin", "bundle.figures", np.array([1, 1e120, 0]), r"its loss and bound"),
        ("max_margin", "bundle.figures", np.array([1, 1e-9, 1]), r"its loss and bound"),
        ("max_margin", "bundle.step_shares", np.zeros(11), r"the shares of its planes"),
        ("max_margin", "bundle.step_shares", np.ones(11), r"the shares of its planes"),
        ("max_margin", "bundle.gram", -np.eye(11)[None], r"its planes do not fit together"),
        ("max_margin", "bundle.gram", np.full((1, 11, 11), np.nan), r"bundle.gram is not finite"),
        (
            "max_margin",
            "bundle.at_centre",
            np.full((1, 11), 1e100),
            r"its planes do not fit together",
        ),
        ("max_margin", "bundle.squares", np.array([-1.0]), r"its planes do not fit together"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(objective, name, value, message, tmp_path):
    crf = make(objective=objective, max_iter=9, warm_iter=1)
    checkpoint = Checkpoint(tmp_path / "kept")
    crf.fit(X, Y, checkpoint=checkpoint)
    damage(checkpoint, name, value)
    with pytest.raises(ModelFileError, match=rf"{message}; delete the file to begin anew"):
        crf.fit(X, Y, checkpoint=checkpoint)


def test_steps_that_were_not_remembered_are_refused():
    hessian = _core.InverseHessian(3, 2)
    steps, products = np.ones(3, np.float32), np.ones(2)
    with pytest.raises(ValueError, match=r"steps, changes and products must have as many pairs"):
        hessian.restore(steps, np.ones(6, np.float32), products)
    with pytest.raises(ValueError, match=r"no steps that could have been remembered"):
        hessian.restore(steps, steps, -products)
    hessian.restore(steps, 2 * steps, products)
    assert [array.tolist() for array in hessian.to_arrays()] == [[1] * 3, [2] * 3, [1, 1]]
