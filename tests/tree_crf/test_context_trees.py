"""Trees that split on previous labels: what they can learn."""

from dataclasses import replace

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF, load
from hedgerow.boosting import trainer
from reference.boosting import make_booster
from reference.fitted_model import read_model
from reference.linear import hide, make_data
from reference.model_files import to_chunks
from reference.problems import central_differences

X, Y = make_data(n_sequences=8, longest=4, seed=2)


def flips(n_sequences, seed, noise=0.05, longest=12):
    """A label equals the previous one, or flips where x is 1, with some noise."""
    rng, xs, ys = np.random.default_rng(seed), [], []
    for _ in range(n_sequences):
        x = rng.integers(0, 2, (longest, 1)).astype(float)
        is_flipped = (x[1:, 0] == 1) ^ (rng.random(longest - 1) < noise)
        steps = np.concatenate([[x[0, 0]], is_flipped])
        xs.append(x)
        ys.append((np.cumsum(steps) % 2).astype(int))
    return xs, ys


def test_what_a_column_means_may_depend_on_the_label_before():
    train, test = flips(60, seed=0), flips(60, seed=1)
    parameters = {"n_rounds": 40, "max_depth": 3, "n_jobs": 1}
    apart = TreeCRF(**parameters).fit(*train)
    together = TreeCRF(transitions="trees", **parameters).fit(*train)
    # Of the first label all is known; each one after it is right with 95 %, given the one before.
    codes = np.concatenate([y[1:] for y in test[1]])
    likely = np.concatenate([y[:-1] ^ x[1:, 0].astype(int) for x, y in zip(*test, strict=True)])
    ceiling = together.log_likelihood(*test).sum() / len(codes)
    assert ceiling == pytest.approx(
        np.where(codes == likely, np.log(0.95), np.log(0.05)).mean(), abs=0.03
    )
    assert apart.log_likelihood(*test).sum() / len(codes) < -0.6
    assert "label[-1]" in together.importances()["feature"]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("objective", ["likelihood", "pointwise", "accuracy"])
@pytest.mark.parametrize("kind", ["plain", "weights", "partial", "classes", "scheme"])
def test_trees_are_grown_from_the_slopes_of_the_loss(kind, objective, order, monkeypatch):
    y, weights, more = {
        "plain": (Y, None, {}),
        "weights": (Y, np.linspace(0.3, 2.0, len(X)), {}),
        "partial": (hide(Y), None, {}),
        "classes": (Y, None, {"class_weight": {"a": 2.0}}),
        "scheme": (list(map(to_chunks, Y)), None, {"constraints": "BIO"}),
    }[kind]
    crf = TreeCRF(
        transitions="trees", order=order, objective=objective, warm_rounds=0, n_jobs=1, **more
    )
    booster = make_booster(crf, X, y, weights)
    running, rng = booster.trees.scores, np.random.default_rng(0)
    running.nodes[...] += rng.normal(size=running.nodes.shape)
    running.edges[...] = rng.normal(size=running.edges.shape)
    shape = running.edges.shape[0], *booster.trellis.arc_shape
    running.start = replace(running.start, edges=np.zeros(shape))
    learned = []
    add = booster.trees.learner.add

    def spy(*arguments, **more):
        learned.append((arguments, more))
        add(*arguments, **more)

    monkeypatch.setattr(booster.trees.learner, "add", spy)
    booster.iterate.measure_again(0)
    found = booster.iterate.measured
    (((first, offsets, gradients, probabilities, _), more),) = learned
    assert first == 0
    if "observed" in more:  # counts
        gradients, observed = gradients.copy(), more["observed"]
        seen = np.flatnonzero(observed >= 0)
        gradients[seen, observed[seen]] -= 1.0
        gradients *= 1.0 if more["weights"] is None else more["weights"][:, None]

    def loss():
        (scores,) = booster.score_training()
        return booster.iterate.objective.measure(scores, booster.targets, n_threads=1).loss

    nodes = central_differences(loss, running.nodes, 1e-5)
    edges = central_differences(loss, running.start.edges, 1e-5).reshape(gradients.shape)
    firsts, n_labels = offsets[:-1], nodes.shape[1]
    inner = np.setdiff1d(np.arange(len(nodes)), firsts)
    np.testing.assert_allclose(found.unit * gradients[inner], edges[inner], atol=1e-6)
    np.testing.assert_allclose(found.unit * gradients[firsts, :n_labels], nodes[firsts], atol=1e-6)
    # Summed over the labels before, slopes and probabilities are those of the nodes.
    labels = booster.trellis.edge_contexts().labels
    for k in range(n_labels):
        own = gradients[:, labels == k].sum(axis=1)
        np.testing.assert_allclose(found.unit * own[inner], nodes[inner, k], atol=1e-6)
        p = probabilities[:, labels == k].sum(axis=1)
        np.testing.assert_allclose(p[inner], found.marginals[inner, k], atol=1e-6)


def test_without_input_they_become_the_best_weights_of_label_pairs():
    _, y = make_data(n_sequences=40, longest=6, seed=5)
    nothing = [np.zeros((len(labels), 1)) for labels in y]
    firsts = [np.eye(1, len(labels)).T for labels in y]
    crf = TreeCRF(
        n_rounds=300,
        transitions="trees",
        label_patterns=[],
        reg_lambda=0,
        min_child_weight=0,
        max_step=None,
        trim=0,
        n_jobs=1,
    ).fit(nothing, y)
    best = LinearCRF(reg_lambda=0, tol=1e-9, max_iter=1000, n_jobs=1).fit(firsts, y)
    assert crf.loss_ == pytest.approx(best.loss_ / sum(map(len, y)), rel=1e-3)


def test_labels_by_other_names_are_learnt_alike():
    X, y = make_data(n_sequences=30, longest=8, seed=3)
    names = dict(zip("abc", "zyx", strict=True))
    renamed = [[names[label] for label in labels] for labels in y]
    parameters = {"n_rounds": 10, "transitions": "trees", "order": 2, "n_jobs": 1}
    first, second = (TreeCRF(**parameters).fit(X, labels) for labels in (y, renamed))
    for ours, theirs in zip(first.predict_marginals(X), second.predict_marginals(X), strict=True):
        np.testing.assert_allclose(ours, theirs[:, ::-1], atol=1e-5)


@pytest.mark.parametrize("order", [1, 3])
def test_a_model_does_what_its_tables_say(order, tmp_path):
    X, y = make_data(n_sequences=12, longest=5, seed=4)
    crf = TreeCRF(
        n_rounds=6, transitions="trees", order=order, window=1, min_child_weight=0, n_jobs=1
    ).fit(X, y)
    table = crf.importances()
    asked = sorted(name for name in table["feature"] if name.startswith("label"))
    assert asked == [f"label[-{lag}]" for lag in range(1, 1 + len(asked))] != []
    assert len(crf.feature_importances_) == X[0].shape[1]
    questions = [text for text in crf.trees()["question"] if text.startswith("label[-1]")]
    assert all(" in {" in text or "missing" in text for text in questions)
    naive = read_model(crf, X)
    for x, marginals in zip(X, crf.predict_marginals(X), strict=True):
        np.testing.assert_allclose(marginals, naive.enumerate(x).marginals, atol=1e-6)
    crf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.transitions == "trees"
    np.testing.assert_array_equal(loaded.predict_proba(X), crf.predict_proba(X))
    explained = crf.explain(X[0], 2)
    assert explained.to_table()["contribution"].sum() == pytest.approx(explained.log_odds, abs=1e-9)
    labels = dict(zip(*(explained.features[name] for name in ("feature", "value")), strict=True))
    assert labels.get("label[-1]", "a") in "abc"
    document = crf.to_json()
    assert '"label[-1]"' in document


def test_the_loss_is_that_of_the_model():
    X, y = make_data(n_sequences=30, longest=9, seed=6)
    crf = TreeCRF(n_rounds=12, transitions="trees", n_jobs=1).fit(X, y, eval_set=(X, y))
    mean = -crf.log_likelihood(X, y).sum() / sum(map(len, X))
    assert crf.loss_ == pytest.approx(mean, rel=1e-6)
    np.testing.assert_allclose(crf.history_["eval_loss"], crf.history_["loss"], rtol=1e-6)
    assert (np.diff(crf.history_["loss"]) <= 0).all()


def test_what_they_cannot_do_is_said(monkeypatch):
    with pytest.raises(ValueError, match=r"order is 0 and transitions is 'trees', whose trees"):
        TreeCRF(transitions="trees", order=0).fit(X, Y)
    monkeypatch.setattr(trainer, "machine_memory", lambda: 2**10)
    with pytest.raises(
        ValueError, match=r"about 0.0 GiB for \d+ positions and 9 arcs between labels"
    ):
        TreeCRF(transitions="trees").fit(X, Y)
    n_numbers = 9 * sum(map(len, X))
    for n_bytes, parameters in ((16, {}), (24, {"line_search": True})):
        monkeypatch.setattr(trainer, "machine_memory", lambda n=n_bytes: n * n_numbers)
        TreeCRF(transitions="trees", n_rounds=1, **parameters).fit(X, Y)
        with pytest.raises(ValueError, match="and 9 arcs between labels"):
            TreeCRF(transitions="trees", direction="conjugate").fit(X, Y)
    many = [[str(number) for number in range(256)]]
    with pytest.raises(ValueError, match=r"y has 256 labels; transitions='trees' takes up to 255"):
        TreeCRF(transitions="trees").fit([np.zeros((256, 1))], many)
