"""History, early stopping and progress of training, for both estimators."""

import numpy as np
import pytest

import hedgerow
from hedgerow import Checkpoint, LinearCRF, TreeCRF
from hedgerow.training.stopping import Step
from reference.estimators import assert_same_model
from reference.linear import make_data, to_dicts
from reference.trainings import stop_at

X, Y = make_data(n_sequences=30, longest=6)
OTHERS = make_data(n_sequences=15, seed=1)
N_OTHERS = sum(map(len, OTHERS[1]))
# By name: the class, its parameters, those of a training that ends too late, the parameter that
# limits the number of steps, and the attribute that says which was best.
TREES = {"learning_rate": 0.5, "min_child_weight": 0, "trim": 0}
LATE_TREES = TREES | {"learning_rate": 1.0, "reg_lambda": 0.1}
KINDS = {
    "trees": (TreeCRF, TREES, LATE_TREES, "n_rounds", "best_round_"),
    "trees of order 2": (TreeCRF, TREES, LATE_TREES | {"order": 2}, "n_rounds", "best_round_"),
    "linear": (LinearCRF, {"tol": 0}, {"tol": 0, "reg_lambda": 1e-6}, "max_iter", "best_iter_"),
    "L1": (
        LinearCRF,
        {"tol": 0, "reg_alpha": 0.1},
        {"tol": 0, "reg_alpha": 1e-3, "reg_lambda": 1e-6, "order": 2},
        "max_iter",
        "best_iter_",
    ),
    "margin": (
        LinearCRF,
        {"tol": 0, "objective": "max_margin", "warm_iter": 0},
        {"tol": 0, "objective": "max_margin", "warm_iter": 0, "reg_lambda": 1e-3},
        "max_iter",
        "best_iter_",
    ),
}


class Kind:
    """How to make and look at an estimator."""

    def __init__(self, name):
        self.name = name
        self.crf, self.plain, self.late, self.limit, self.best = KINDS[name]

    def make(self, n_steps=10, late=False, **parameters):
        own = self.late if late else self.plain
        return self.crf(**{self.limit: n_steps, "n_jobs": 1} | own | parameters)

    def best_of(self, crf):
        return getattr(crf, self.best)


@pytest.fixture(params=KINDS)
def kind(request):
    return Kind(request.param)


@pytest.fixture(params=["trees", "linear"])
def simple(request):
    return Kind(request.param)


def n_steps(crf):
    return len(crf.history_["loss"])


def assert_same(first, second):
    """Models that predict the same, to the last bit."""
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    np.testing.assert_array_equal(first.patterns()["weight"], second.patterns()["weight"])


# The history.


def test_every_entry_of_the_history_is_the_model_at_that_time(kind):
    crf = kind.make().fit(X, Y, eval_set=OTHERS)
    names = ["loss", "accuracy"] if kind.crf is TreeCRF else ["loss"]
    assert list(crf.history_) == [*names, "eval_loss", "eval_accuracy"]
    assert {len(figures) for figures in crf.history_.values()} == {10}
    assert kind.best_of(crf) == 1 + int(np.argmin(crf.history_["eval_loss"]))
    for n in (1, 4, 10):
        early = kind.make(n).fit(X, Y)
        figures = {name: values[n - 1] for name, values in crf.history_.items()}
        assert early.loss_ == figures["loss"]
        decode = "viterbi" if kind.name == "margin" else "marginal"
        assert early.score(*OTHERS, decode=decode) == figures["eval_accuracy"]
        if kind.name != "margin":
            loss = -early.log_likelihood(*OTHERS).sum() / N_OTHERS
            assert figures["eval_loss"] == pytest.approx(loss, rel=1e-9)


def test_the_eval_set_does_not_change_the_model(kind):
    plain, watched = kind.make().fit(X, Y), kind.make().fit(X, Y, eval_set=[*OTHERS])
    assert watched.history_["loss"] == plain.history_["loss"]
    assert kind.best_of(plain) is None
    assert_same(plain, watched)


def test_several_eval_sets(simple):
    kind = simple
    one, own = (kind.make().fit(X, Y, eval_set=data).history_ for data in (OTHERS, (X, Y)))
    both = kind.make().fit(X, Y, eval_set=[OTHERS, (X, Y)])
    named = kind.make().fit(X, Y, eval_set={"dev": OTHERS, "own": (X, Y)})
    for metric in ("loss", "accuracy"):
        assert both.history_[f"eval_0_{metric}"] == one[f"eval_{metric}"]
        assert both.history_[f"eval_1_{metric}"] == own[f"eval_{metric}"]
        assert named.history_[f"dev_{metric}"] == one[f"eval_{metric}"]
    assert kind.best_of(named) == 1 + int(np.argmin(own["eval_loss"]))


# Early stopping.


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_early_stopping_keeps_the_best(kind, metric, tmp_path):
    options = {"early_stopping_rounds": 4, "early_stopping_metric": metric}
    crf = kind.make(100, late=True, **options).fit(X, Y, eval_set=OTHERS)
    figures = np.array(crf.history_[f"eval_{metric}"])
    best = 1 + (figures if metric == "loss" else -figures).argmin()
    assert kind.best_of(crf) == best
    assert n_steps(crf) == best + 4 < 100
    same = kind.make(best, late=True).fit(X, Y)
    assert_same(crf, same)
    assert crf.loss_ == crf.history_["loss"][best - 1] == same.loss_
    crf.save(tmp_path / "model")
    loaded = hedgerow.load(tmp_path / "model")
    assert kind.best_of(loaded) == best
    assert_same(crf, loaded)


def test_the_last_of_several_eval_sets_says_when_to_stop(simple):
    kind = simple
    watched = kind.make(100, late=True, early_stopping_rounds=4)
    expected = watched.fit(X, Y, eval_set=OTHERS).history_["eval_loss"]
    sets = {"own": (X, Y), "dev": OTHERS}
    assert watched.fit(X, Y, eval_set=sets).history_["dev_loss"] == expected


@pytest.mark.parametrize("name", ["trees", "linear", "L1"])
def test_a_model_to_go_on_from_may_be_the_best(name, tmp_path):
    kind = Kind(name)
    good = {"reg_lambda": 10.0} if kind.crf is LinearCRF else {}
    init = kind.make(2, late=True, **good).fit(X, Y)
    late = kind.make(50, late=True, early_stopping_rounds=3)
    found = late.fit(X, Y, eval_set=OTHERS, init=init)
    losses = [-crf.log_likelihood(*OTHERS).sum() for crf in (init, found)]
    assert losses[1] <= losses[0]
    best = np.argmin(found.history_["eval_loss"]) + 1 + (2 if kind.crf is TreeCRF else 0)
    if losses[0] == losses[1]:
        assert kind.best_of(found) == (0 if kind.crf is LinearCRF else 2)
        assert_same(found, init)
    else:
        assert kind.best_of(found) == best
    assert np.isfinite(found.loss_)
    found.save(tmp_path / "model")
    assert kind.best_of(hedgerow.load(tmp_path / "model")) == kind.best_of(found)


def test_early_stopping_goes_on_from_a_checkpoint(kind, tmp_path):
    metric = "accuracy" if kind.name in ("trees", "linear") else "loss"
    options = {"late": True, "early_stopping_rounds": 4, "early_stopping_metric": metric}
    whole = kind.make(100, **options).fit(X, Y, eval_set=OTHERS)
    checkpoint = Checkpoint(tmp_path / "kept", every=1)
    for stop in (2, kind.best_of(whole) + 2, n_steps(whole)):
        crf = kind.make(100, callbacks=[stop_at(stop)], **options)
        with pytest.raises(KeyboardInterrupt):
            crf.fit(X, Y, eval_set=OTHERS, checkpoint=checkpoint)
    for _ in range(2):  # the second time it has come to its end
        crf = kind.make(100, **options).fit(X, Y, eval_set=OTHERS, checkpoint=checkpoint)
        assert crf.history_ == whole.history_
        assert (crf.loss_, kind.best_of(crf)) == (whole.loss_, kind.best_of(whole))
        assert_same(crf, whole)


# Callbacks.


def test_callbacks_are_told_of_every_step(kind):
    told = []
    crf = kind.make(callbacks=[told.append]).fit(X, Y, eval_set=OTHERS)
    assert all(isinstance(now, Step) for now in told)
    assert [now.number for now in told] == list(range(1, 11))
    for name, figures in crf.history_.items():
        assert [now.figures[name] for now in told] == figures


def test_callbacks_can_end_training(kind):
    crf = kind.make(callbacks=(lambda now: now.number == 4,)).fit(X, Y)
    assert n_steps(crf) == 4
    assert_same(crf, kind.make(4).fit(X, Y))


def test_a_training_that_was_ended_need_not_have_settled():
    LinearCRF(callbacks=[lambda now: True]).fit(X, Y)  # which gives no warning


def test_an_interrupted_fit_leaves_the_model_as_it_was(kind):
    error = RuntimeError if kind.name == "linear" else KeyboardInterrupt
    crf, twin = kind.make().fit(X, Y), kind.make().fit(X, Y)
    history, loss = crf.history_, crf.loss_
    crf.set_params(callbacks=[stop_at(3, error)], verbose=1)
    with pytest.raises(error):
        crf.fit(to_dicts(OTHERS[0]), [["z", *labels[1:]] for labels in OTHERS[1]])
    assert crf.history_ is history
    assert (crf.loss_, crf.n_features_in_) == (loss, 3)
    assert_same_model(crf, twin)
    fresh = kind.make(callbacks=[stop_at(3, error)])
    with pytest.raises(error):
        fresh.fit(X, Y)
    assert not hasattr(fresh, "classes_")


# Progress.


def test_verbose_shows_the_figures(kind, capsys):
    kind.make(verbose=0).fit(X, Y)
    kind.make(verbose=False).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    crf = kind.make(verbose=1).fit(X, Y, eval_set=OTHERS)
    out, err = capsys.readouterr()
    assert out == ""
    assert "10/10" in err
    assert f"loss={crf.loss_:.6g}" in err
    for name in ("eval_loss=", "eval_accuracy="):
        assert name in err
    kind.make(verbose=True, callbacks=[lambda now: now.number == 3]).fit(X, Y)
    assert "3/3" in capsys.readouterr().err
