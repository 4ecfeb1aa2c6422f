"""Training for the softmax margin, for both estimators."""

import numpy as np
import pytest
from sklearn.base import clone

from hedgerow import Checkpoint, TreeCRF, load
from reference.linear import hide, make_data
from reference.trainings import saved

X, Y = make_data(n_sequences=30, longest=6)
PARTIAL = hide(Y)
TEST_X, TEST_Y = make_data(n_sequences=20, longest=6, seed=1)
WAYS = {
    "weights": {},
    "trees": {"transitions": "trees"},
    "exact": {"transition_step": "exact", "order": 2},
    "line search": {"line_search": True},
    "conjugate": {"direction": "conjugate", "order": 2},
    "first order": {"newton": False},
    "by length": {"curvature": "length"},
    "brute force": {"curvature": "exact"},
}


@pytest.fixture
def short(make):
    """An estimator for the softmax margin, with little to do."""

    def build(**more):
        few = {"n_rounds": 6} if "n_rounds" in make().get_params() else {"max_iter": 20, "tol": 0}
        return make(**few | {"objective": "softmax_margin"} | more)

    return build


@pytest.mark.parametrize("y", [Y, PARTIAL], ids=["known", "partial"])
def test_without_costs_it_is_the_likelihood_bit_for_bit(short, y):
    for order in (0, 1, 2):
        plain = short(objective="likelihood", order=order).fit(X, y, eval_set=(TEST_X, TEST_Y))
        free = short(label_costs=0, order=order).fit(X, y, eval_set=(TEST_X, TEST_Y))
        assert free.history_ == plain.history_
        np.testing.assert_array_equal(free.predict_proba(TEST_X), plain.predict_proba(TEST_X))
        assert free.loss_ == plain.loss_
        assert free.decode_ == plain.decode_


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_trees_lower_it_in_every_way(way):
    for y in (Y, PARTIAL):
        crf = TreeCRF(
            objective="softmax_margin", label_costs=3.0, n_rounds=8, pattern_lambda=None, **way
        ).fit(X, y)
        assert (np.diff(crf.history_["loss"]) <= 0).all()
        assert crf.n_warm_rounds_ == 0
        free = clone(crf).set_params(label_costs=0).fit(X, y)
        plain = clone(crf).set_params(objective="likelihood").fit(X, y)
        assert free.history_ == plain.history_


def test_costs_in_every_form_are_the_same_costs(short):
    classes = sorted({label for y in Y for label in y})
    forms = (
        2.0,
        dict.fromkeys(classes, 2),
        {a: {b: 2.0 for b in classes if a != b} for a in classes},
        2 * (1 - np.eye(len(classes))),
    )
    models = [short(label_costs=costs).fit(X, Y) for costs in forms]
    for crf in models[1:]:
        assert crf.history_ == models[0].history_
        assert crf.loss_ == models[0].loss_


def test_mistakes_that_cost_more_are_made_less_often(short):
    """A label that is costly to miss is predicted more often."""
    label = Y[0][0]
    n_found = [
        sum(
            np.sum(labels == label) for labels in short(label_costs=costs).fit(X, Y).predict(TEST_X)
        )
        for costs in ("hamming", {label: 6.0})
    ]
    assert n_found[1] > n_found[0]


def test_labels_by_other_names_in_another_order(short):
    classes = sorted({label for y in Y for label in y})
    names = dict(zip(classes, reversed([f"name {n}" for n in range(len(classes))]), strict=True))
    costs = {classes[0]: {classes[1]: 4.0}, classes[1]: 0.5}
    renamed = {names[classes[0]]: {names[classes[1]]: 4.0}, names[classes[1]]: 0.5}
    crf = short(label_costs=costs).fit(X, Y)
    other = short(label_costs=renamed).fit(X, [[names[label] for label in y] for y in Y])
    assert other.loss_ == pytest.approx(crf.loss_, rel=1e-6)
    order = np.argsort([names[label] for label in crf.classes_])
    np.testing.assert_allclose(
        other.predict_proba(TEST_X), crf.predict_proba(TEST_X)[:, order], atol=1e-5
    )


def test_accuracies_are_those_of_the_model_and_losses_have_costs(short):
    crf = short(label_costs=3.0, decode="marginal").fit(X, Y, eval_set=(X, Y))
    history = crf.history_
    assert history["eval_accuracy"][-1] == crf.score(X, Y)
    if "accuracy" in history:
        assert history["accuracy"][-1] == crf.score(X, Y)
        assert history["eval_loss"][-1] == pytest.approx(crf.loss_, rel=1e-12)
    plain = -crf.log_likelihood(X, Y).sum() / sum(map(len, Y))
    assert history["eval_loss"][-1] > plain


def test_early_stopping_checkpoints_and_files(short, tmp_path):
    matrix = [[0.0, 1.0, 3.0], [0.5, 0.0, 0.0], [2.0, 1.5, 0.0]]
    made = short(label_costs=np.array(matrix), early_stopping_rounds=3, random_state=0)
    whole = clone(made).fit(X, PARTIAL)
    path = tmp_path / "training"

    def interrupt(step):
        if step.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clone(made).set_params(callbacks=[interrupt]).fit(
            X, PARTIAL, checkpoint=Checkpoint(path, every=1)
        )
    resumed = clone(made).fit(X, PARTIAL, checkpoint=Checkpoint(path))
    assert resumed.history_ == whole.history_
    file = saved(whole, tmp_path)
    assert saved(resumed, tmp_path) == file
    loaded = load(file)
    assert loaded.label_costs == matrix
    assert saved(loaded.fit(X, PARTIAL), tmp_path) == file
    with pytest.raises(ValueError, match="label_costs was"):
        clone(made).set_params(label_costs=1.0).fit(X, PARTIAL, checkpoint=Checkpoint(path))


def test_going_on_from_a_model_for_the_likelihood(short):
    plain = short(objective="likelihood").fit(X, Y)
    crf = short(label_costs=2.0).fit(X, Y, init=plain)
    again = short(label_costs=2.0).fit(X, Y, init=crf)
    if isinstance(crf, TreeCRF):
        assert (crf.n_warm_rounds_, again.n_warm_rounds_) == (6, 6)
        assert (np.diff(again.history_["loss"][6:]) <= 0).all()
    assert again.loss_ <= crf.loss_


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"zebra": 2}, "^label_costs has the unknown label 'zebra'; known labels: "),
        ([[0, 1], [1, 0]], r"^label_costs has shape \(2, 2\), but y has 3 labels; expected shape"),
        ("squared", "^label_costs is 'squared'; expected 'hamming', a number, a dict"),
    ],
)
def test_costs_that_are_refused(short, costs, message):
    with pytest.raises(ValueError, match=message):
        short(label_costs=costs).fit(X, Y)


def test_weights_of_positions_weigh_the_terms_of_the_chain_rule(short):
    """With independent labels each position has its own margin."""
    flat, labels = np.concatenate(X), np.concatenate(Y)
    weights = np.random.default_rng(0).integers(0, 3, len(flat)).astype(float)
    crf = short(order=0, label_costs=2.0).fit(flat, labels, sample_weight=weights)
    if not isinstance(crf, TreeCRF):
        return
    log_odds = np.log(crf.predict_proba(flat))
    own = crf.classes_ == labels[:, None]
    losses = np.log(np.exp(log_odds + 2.0 * ~own).sum(axis=1)) - log_odds[own]
    assert crf.loss_ == pytest.approx(losses @ weights / weights.sum(), rel=1e-9)
