"""Objectives: properties of both estimators with every objective."""

import numpy as np
import pytest
from sklearn.base import clone

import hedgerow
from hedgerow import LinearCRF, TreeCRF
from hedgerow.boosting.schedule import ROUNDS_PER_STAGE
from hedgerow.objectives import F1, Accuracy, ExpectedAccuracy, Pointwise
from reference.boosting import assert_same_model
from reference.estimators import refuses
from reference.linear import hide, make_data
from reference.trainings import saved

X, Y = make_data(n_sequences=40, longest=6)
TEST_X, TEST_Y = make_data(n_sequences=20, longest=6, seed=1)
OBJECTIVES = {
    "pointwise": Pointwise(),
    "expected_accuracy": ExpectedAccuracy(),
    "accuracy": Accuracy(5.0),
    "f1": F1(),
}
MAKE = {
    LinearCRF: lambda **more: LinearCRF(**{"reg_lambda": 0.3, "sharpness": 5.0, **more}),
    TreeCRF: lambda **more: TreeCRF(**{"n_rounds": 20, "warm_rounds": 10, **more}),
}
objectives = pytest.mark.parametrize("objective", OBJECTIVES)


@pytest.fixture
def make(estimator):
    return MAKE[estimator]


class SoftF1:
    """F1 of one label, with probabilities in place of predictions."""

    def __init__(self, code):
        self.code = code

    def value(self, marginals, labels, weights):
        p, is_it = marginals[:, self.code], labels == self.code
        return 2 * len(labels) * np.sum(weights * p * is_it) / np.sum(weights * (p + is_it))

    def gradient(self, marginals, labels, weights):
        p, is_it = marginals[:, self.code], labels == self.code
        total = np.sum(weights * (p + is_it))
        slopes = np.zeros_like(marginals)
        slopes[:, self.code] = 2 * len(labels) * weights * is_it / total
        slopes[:, self.code] -= weights * self.value(marginals, labels, weights) / total
        return slopes


def value_of(objective, crf, X, y):
    """The value of the objective per position."""
    codes = np.searchsorted(crf.classes_, np.concatenate(y)).astype(np.int32)
    weights = np.ones(len(codes))
    return objective.value(crf.predict_proba(X), codes, weights) / len(codes)


@objectives
def test_weights_trained_for_an_objective_do_better_at_it(objective):
    measure, make = OBJECTIVES[objective], MAKE[LinearCRF]
    plain = make().fit(X, Y)
    for crf in (
        make(objective=objective).fit(X, Y),
        make(objective=objective).fit(X, Y, init=plain),
    ):
        assert value_of(measure, crf, X, Y) > value_of(measure, plain, X, Y)
        assert crf.log_likelihood(X, Y).sum() < plain.log_likelihood(X, Y).sum()


@objectives
def test_trees_grown_for_an_objective_do_better_at_it(objective):
    measure = OBJECTIVES[objective]
    plain = TreeCRF(n_rounds=10).fit(X, Y)
    crf = TreeCRF(n_rounds=20, warm_rounds=10, objective=objective).fit(X, Y)
    assert value_of(measure, crf, X, Y) > value_of(measure, plain, X, Y) + 0.01


@objectives
def test_the_loss_is_minus_the_value(objective):
    tree = MAKE[TreeCRF](objective=objective).fit(X, Y)
    measure = OBJECTIVES[objective]
    soft = Accuracy(5.0 / 8) if objective == "accuracy" else measure  # its first stage
    assert tree.loss_ == pytest.approx(-value_of(soft, tree, X, Y), rel=1e-9)
    linear = MAKE[LinearCRF](objective=objective, max_iter=9, tol=0).fit(X, Y)
    vector = np.concatenate([linear.weights()["weight"], linear.patterns()["weight"]])
    penalty = 0.15 * np.sum(vector**2)
    n_positions = sum(map(len, Y))
    expected = penalty - n_positions * value_of(measure, linear, X, Y)
    assert linear.loss_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("objective", "transition_step"),
    [("pointwise", "bound"), ("expected_accuracy", "exact"), ("accuracy", "exact")],
)
def test_the_loss_of_trees_does_not_rise_within_a_stage(objective, transition_step):
    n_rounds = 4 + 3 * ROUNDS_PER_STAGE
    crf = TreeCRF(
        n_rounds=n_rounds, warm_rounds=4, objective=objective, transition_step=transition_step
    ).fit(X, Y)
    losses = np.array(crf.history_["loss"])
    ends = [4, *range(4 + ROUNDS_PER_STAGE, n_rounds, ROUNDS_PER_STAGE)]
    ends = ends if objective == "accuracy" else ends[:1]
    for stage in np.split(losses, ends):
        assert (np.diff(stage) <= 0).all()


def test_an_objective_of_the_user(make):
    plain = make().fit(X, Y)
    crf = make(objective=SoftF1(1)).fit(X, Y)
    assert value_of(SoftF1(1), crf, X, Y) > value_of(SoftF1(1), plain, X, Y)
    assert crf.decode_ == "marginal"
    again = clone(crf).fit(X, Y)
    np.testing.assert_array_equal(crf.predict_proba(X), again.predict_proba(X))


def test_the_unit_of_an_objective_does_not_matter_to_trees():
    class Scaled:
        def value(self, *args):
            return SoftF1(1).value(*args) / 1024

        def gradient(self, *args):
            return SoftF1(1).gradient(*args) / 1024

    one, other = (MAKE[TreeCRF](objective=each).fit(X, Y) for each in (SoftF1(1), Scaled()))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-6)


@objectives
def test_models_decode_as_they_were_trained(make, objective, tmp_path):
    crf = make(objective=objective).fit(X, Y, eval_set=(TEST_X, TEST_Y))
    by_marginals = np.concatenate(crf.predict(TEST_X, decode="marginal"))
    np.testing.assert_array_equal(np.concatenate(crf.predict(TEST_X)), by_marginals)
    right = float(np.mean(by_marginals == np.concatenate(TEST_Y)))
    assert crf.score(TEST_X, TEST_Y) == pytest.approx(right)
    assert crf.history_["eval_accuracy"][-1] == pytest.approx(right)
    loss = -value_of(OBJECTIVES[objective], crf, TEST_X, TEST_Y)
    assert crf.history_["eval_loss"][-1] == pytest.approx(loss, rel=1e-9)
    loaded = hedgerow.load(saved(crf, tmp_path))
    assert (loaded.decode_, loaded.objective) == ("marginal", objective)
    np.testing.assert_array_equal(np.concatenate(loaded.predict(TEST_X)), by_marginals)


def test_a_file_remembers_how_to_decode_but_not_an_objective_of_the_user(make, tmp_path):
    crf = make(objective=SoftF1(0)).fit(X, Y)
    loaded = hedgerow.load(saved(crf, tmp_path))
    assert (loaded.decode_, loaded.objective) == ("marginal", None)
    np.testing.assert_array_equal(loaded.predict_proba(X), crf.predict_proba(X))
    message = r"^objective is None; expected a name.* which is not saved: set it again, set_params"
    for model in (loaded, clone(loaded)):
        with pytest.raises(TypeError, match=message):
            model.fit(X, Y)
    assert loaded.set_params(objective=SoftF1(0)).fit(X, Y).loss_ == crf.loss_


@pytest.mark.parametrize(
    ("objective", "first"), [("accuracy", 5), ("accuracy", 15), ("pointwise", 15)]
)
def test_rounds_go_on_where_a_model_was_left(objective, first):
    """On either side of the last round for the likelihood."""
    whole = TreeCRF(n_rounds=45, warm_rounds=10, objective=objective, subsample=0.7, random_state=1)
    whole.fit(X, Y)
    begun = clone(whole).set_params(n_rounds=first).fit(X, Y)
    after = clone(whole).set_params(n_rounds=45 - first).fit(X, Y, init=begun)
    assert_same_model(whole, after)
    assert after.history_ == whole.history_


def test_a_likelihood_model_to_start_from_takes_the_place_of_warm_rounds(tmp_path):
    warm = TreeCRF(n_rounds=12).fit(X, Y)
    for init in (warm, hedgerow.load(saved(warm, tmp_path))):
        crf = TreeCRF(n_rounds=8, objective="pointwise").fit(X, Y, init=init)
        whole = TreeCRF(n_rounds=20, objective="pointwise", warm_rounds=12).fit(X, Y)
        assert_same_model(crf, whole)


def test_a_fifth_of_the_rounds_is_for_the_likelihood():
    crf = TreeCRF(n_rounds=20, objective="pointwise").fit(X, Y)
    assert_same_model(crf, TreeCRF(n_rounds=20, objective="pointwise", warm_rounds=4).fit(X, Y))
    only = TreeCRF(n_rounds=20, objective="pointwise", warm_rounds=20).fit(X, Y)
    assert_same_model(only, TreeCRF(n_rounds=20).fit(X, Y))


def test_warm_rounds_are_not_stopped():
    options = {"n_rounds": 60, "learning_rate": 1.0, "early_stopping_rounds": 3, "max_step": None}
    data = {"X": X[:6], "y": Y[:6], "eval_set": (TEST_X, TEST_Y)}
    stopped = TreeCRF(**options).fit(**data)
    assert len(stopped.history_["loss"]) < 30
    crf = TreeCRF(objective="pointwise", warm_rounds=40, **options).fit(**data)
    assert 40 < len(crf.history_["loss"]) < 60


def test_most_rounds_before_f1_are_for_the_likelihood():
    for objective, n_warm in (("f1", 8), (F1(("a",)), 8), ("pointwise", 2), (SoftF1(1), 2)):
        assert TreeCRF(n_rounds=10, objective=objective).fit(X, Y).n_warm_rounds_ == n_warm


def test_warm_iterations():
    warm = LinearCRF(max_iter=7, tol=0).fit(X, Y)
    crf = LinearCRF(objective="pointwise", warm_iter=7, max_iter=5, tol=0).fit(X, Y)
    assert crf.n_iter_ == 12
    assert crf.history_["loss"][:7] == pytest.approx(warm.history_["loss"])
    cold = LinearCRF(objective="pointwise", warm_iter=0, max_iter=5, tol=0).fit(X, Y)
    assert cold.n_iter_ == 5
    begun = LinearCRF(objective="pointwise", max_iter=5, tol=0).fit(X, Y, init=warm)
    assert begun.n_iter_ == 5


@objectives
def test_from_nothing(objective):
    """Before any training all labels are alike, and every one is a rival of the others."""
    linear = LinearCRF(objective=objective, warm_iter=0, max_iter=30, tol=0).fit(X, Y)
    trees = TreeCRF(objective=objective, warm_rounds=0, n_rounds=20).fit(X, Y)
    most = np.unique(np.concatenate(Y), return_counts=True)[1].max() / sum(map(len, Y))
    assert min(linear.score(X, Y), trees.score(X, Y)) > most + 0.05


@pytest.mark.parametrize(
    ("estimator", "parameters", "message"),
    [
        (TreeCRF, {"objective": "max_margin"}, "which only LinearCRF can be trained for"),
        (TreeCRF, {"warm_rounds": -1}, "warm_rounds is -1; expected an integer of at least 0"),
        (LinearCRF, {"warm_iter": 1.5}, "warm_iter is 1.5; expected an integer of at least 0"),
        (LinearCRF, {"objective": "hinge"}, "'max_margin', or an object with the methods"),
        (
            LinearCRF,
            {"objective": "max_margin", "reg_alpha": 1.0},
            "reg_alpha is 1.0 and objective is 'max_margin', whose training has no L1 penalty",
        ),
        (
            LinearCRF,
            {"objective": "max_margin", "reg_lambda": 0.0},
            "reg_lambda is 0.0 and objective is 'max_margin', which needs a penalty",
        ),
    ],
)
def test_parameters_that_make_no_sense(estimator, parameters, message):
    refuses(ValueError, message, estimator(**parameters).fit, X, Y)


def test_the_margin_needs_all_labels():
    message = "objective='max_margin' needs all labels, but y["
    crf = LinearCRF(objective="max_margin")
    refuses(ValueError, message, crf.fit, X, hide(Y))
    refuses(ValueError, f"in eval_set: {message}", crf.fit, X, Y, eval_set=(X, hide(Y)))


def test_training_for_the_margin():
    crf = LinearCRF(objective="max_margin", tol=1e-3).fit(X, Y, eval_set=(TEST_X, TEST_Y))
    assert clone(crf).fit(X, Y).decode_ == "viterbi"
    assert crf.score(X, Y) > 0.6
    assert (np.diff(crf.history_["loss"][-10:]) <= 1e-9).all()
    assert set(crf.history_) == {"loss", "eval_loss", "eval_accuracy"}
