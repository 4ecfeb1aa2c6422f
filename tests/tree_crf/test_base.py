"""A base model: trees on top of weights, or of other trees."""

import warnings
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV

from hedgerow import Checkpoint, LinearCRF, ModelFileError, TreeCRF, load
from hedgerow.encode import GivenParents, encode
from hedgerow.identity import draw_uniforms, identify_sequences
from hedgerow.inspection import permutation_importance
from hedgerow.model_selection import cross_val_predict
from hedgerow.persist import FORMAT
from hedgerow.plots import marginals as plot_marginals
from hedgerow.raw_data import RawData
from hedgerow.report import write_report
from hedgerow.state import State, pack_base
from hedgerow.training.base_training import FOLDS, BaseTraining
from reference.estimators import (
    answers,
    assert_same,
    assert_same_model,
    assert_same_training,
    every_prediction,
    refuses,
    small,
)
from reference.trainings import X, Y, saved

N = sum(map(len, X))
WORDS = [[[f"w={round(v)}", "all"] for v in x[:, 0]] for x in X]
PLAIN = {"group_column": None, "parents": GivenParents(), "name": "CRF"}
LINEAR = small(LinearCRF).fit(X, Y)
OTHER = small(LinearCRF).fit(X, [[f"l{k}" for k in labels] for labels in Y])
WITH_BASE = small(TreeCRF, base=LINEAR).fit(X, Y)
KINDS = {
    "weights": {},
    "pairs": {"transition_attributes": True},
    "order 2": {"order": 2},
    "patterns": {"order": 2, "pattern_attributes": True},
}


def trees(**parameters):
    return small(TreeCRF, **parameters)


@pytest.fixture
def fold_scores(monkeypatch):
    """Scores of the training positions by models that did not see them, of each training."""
    found, cross_fit = [], BaseTraining._cross_fit

    def spy(self, learnt, given):
        found.append(cross_fit(self, learnt, given))
        return found[-1]

    monkeypatch.setattr(BaseTraining, "_cross_fit", spy)
    return found


# --- what a base gives


@pytest.mark.parametrize("kind", KINDS)
def test_no_rounds_leave_the_base(kind):
    """With patterns in common or not: nothing of the base is lost."""
    base = small(LinearCRF, **KINDS[kind]).fit(X, Y)
    for order in (0, 1, 2):
        crf = trees(base=base, order=order, n_rounds=1, learning_rate=1e-300).fit(X, Y)
        np.testing.assert_allclose(crf.predict_proba(X), base.predict_proba(X), atol=1e-12)
        assert crf.loss_ == pytest.approx(-base.log_likelihood(X, Y).sum() / N, rel=1e-12)


def test_the_loss_begins_where_the_base_is():
    seen = []
    crf = trees(base=LINEAR, callbacks=[lambda step: seen.append(step.figures["eval_loss"])])
    crf.set_params(early_stopping_rounds=1, n_rounds=50).fit(X, Y, eval_set=(X, Y))
    assert crf.loss_ < -LINEAR.log_likelihood(X, Y).sum() / N
    assert seen[0] < -LINEAR.log_likelihood(X, Y).sum() / N


@pytest.mark.parametrize(
    "parameters", [{}, {"window": 1, "forbidden": [(2, 2)]}, {"newton": False}, {"order": 2}]
)
def test_trees_on_trees_are_one_training(parameters):
    y = [[0 if k == 2 and 2 in labels[:t] else k for t, k in enumerate(labels)] for labels in Y]
    base = trees(n_rounds=4, **parameters).fit(X, y)
    crf = trees(n_rounds=3, base=base, **parameters).fit(X, y)
    whole = trees(n_rounds=7, **parameters).fit(X, y)
    assert crf.history_["loss"] == whole.history_["loss"][4:]
    assert crf.loss_ == whole.loss_
    np.testing.assert_array_equal(crf.predict_proba(X), whole.predict_proba(X))
    assert_same([crf.patterns()["weight"]], [whole.patterns()["weight"]])


@pytest.mark.parametrize("parameters", [{}, {"order": 2}])
def test_trees_on_trees_that_ask_about_labels(parameters):
    """Their scores of label pairs are single precision in training."""
    base = trees(n_rounds=4, transitions="trees", **parameters).fit(X, Y)
    crf = trees(n_rounds=3, base=base, transitions="trees", **parameters).fit(X, Y)
    whole = trees(n_rounds=7, transitions="trees", **parameters).fit(X, Y)
    np.testing.assert_allclose(crf.predict_proba(X), whole.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [{}, {"order": 2}, {"transitions": "trees"}])
def test_marginals_equal_enumeration(kind, more):
    """From the tables of weights alone, and the trees' own scores."""
    base = small(LinearCRF, **KINDS[kind])
    crf = trees(base=base, base_folds=2, **more).fit(X, Y)
    model = crf.model_
    for x in [x for x in X if 2 <= len(x) <= 4][:3]:
        sequences = model.read(RawData([x]), **PLAIN)
        (scores,) = model.scores(sequences, 1)
        sums = np.zeros((len(x), 3))
        for codes in product(range(3), repeat=len(x)):
            path = np.array(codes, np.int32)
            arcs = model.trellis.arcs_taken(path, np.array([0, len(x)]))
            score = scores.nodes[np.arange(len(x)), path].sum()
            score += model.trellis.pattern_scores(path, model.pattern_weights).sum()
            score += base_edges(crf.base_, x, path) + tree_edges(crf, sequences, arcs)
            sums[np.arange(len(x)), path] += np.exp(score)
        expected = sums / sums.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(crf.predict_proba([x]), expected, rtol=2e-5)


def base_edges(base, x, path):
    """Scores of label pairs or patterns by the attributes of a linear base, from its own arcs."""
    sequences = base.model_.read(RawData([x]), **PLAIN)
    (scores,) = base.model_.scores(sequences, 1)
    if scores.edges is None:
        return 0.0
    if scores.edges.ndim == 3:
        steps = range(1, len(x))
        return sum(scores.edges[t, path[t - 1], path[t]] for t in steps)
    arcs = base.model_.trellis.arcs_taken(path, np.array([0, len(x)]))
    return sum(scores.edges[t, arcs[t]] for t in range(1, len(x)))


def tree_edges(crf, sequences, arcs):
    """Scores of arcs by the trees that ask about labels."""
    trees = crf.model_.potentials[-2]
    if not trees.has_edges:
        return 0.0
    nodes = np.zeros((sequences.n_positions, 3))
    edges = np.zeros((sequences.n_positions, *crf.model_.trellis.arc_shape))
    trees.prepare(sequences, 1)(0, 1, nodes, edges)
    flat = edges.reshape(len(edges), -1)
    return sum(flat[t, arcs[t]] for t in range(1, len(flat)))


# --- cross-fitting


def test_scores_come_from_models_that_did_not_see_the_sequence(fold_scores):
    crf = trees(base=small(LinearCRF), base_folds=3, random_state=1)
    y = [list(labels) for labels in Y]
    y[5] = [(k + 1) % 3 for k in y[5]]
    crf.fit(X, Y).fit(X, y)
    before, after = (scores.nodes for scores in fold_scores)
    rows = np.repeat(np.arange(len(X)), list(map(len, X))) == 5
    np.testing.assert_array_equal(before[rows], after[rows])
    assert (before[~rows] != after[~rows]).any()


def test_folds_by_hand(fold_scores):
    """Each part is scored by an estimator that is fitted on the others."""
    trees(base=small(LinearCRF), base_folds=4, random_state=3).fit(X, Y)
    scores = fold_scores[0].nodes
    offsets = np.cumsum([0, *map(len, X)])
    found = np.zeros(len(X), bool)
    order = np.argsort(draw_uniforms(identify_sequences(encode(X)), FOLDS + 3))
    folds = np.empty(len(X), int)
    folds[order] = np.arange(len(X)) % 4
    for fold in range(4):
        rest = [s for s in range(len(X)) if folds[s] != fold]
        model = small(LinearCRF).fit([X[s] for s in rest], [Y[s] for s in rest]).model_
        for s in np.flatnonzero(folds == fold):
            (own,) = model.scores(model.read(RawData([X[s]]), **PLAIN), 1)
            np.testing.assert_array_equal(scores[offsets[s] : offsets[s + 1]], own.nodes)
            found[s] = True
    assert found.all()


def test_the_base_is_trained_on_all():
    for folds in (0, 2):
        crf = trees(base=small(LinearCRF), base_folds=folds).fit(X, Y)
        assert_same_model(crf.base_, LINEAR)
    early = trees(base=small(LinearCRF), early_stopping_rounds=2, validation_fraction=0.3)
    assert (
        early.fit(X, Y).base_.loss_ != LINEAR.loss_
    )  # it was not trained on the held-out sequences


def test_more_folds_than_sequences():
    crf = trees(base=small(LinearCRF), base_folds=50).fit(X[:4], Y[:4])
    assert len(crf.classes_) == 3


def test_items_have_their_own_numbers():
    crf = trees(base=small(LinearCRF, min_count=2), base_folds=3).fit(WORDS, Y)
    assert_same_model(crf.base_, small(LinearCRF, min_count=2).fit(WORDS, Y))
    scores = -crf.log_likelihood(WORDS, Y).mean()
    assert scores < -crf.base_.log_likelihood(WORDS, Y).mean()


# --- everything combines


@pytest.mark.parametrize(
    "base",
    [
        small(LinearCRF, order=2, pattern_attributes=True),
        small(TreeCRF, transitions="trees", n_rounds=2),
        small(TreeCRF, base=small(LinearCRF, transition_attributes=True), base_folds=2),
        small(LinearCRF, early_stopping_rounds=2),
    ],
)
def test_saved_and_resumed(base, tmp_path):
    crf = trees(base=base, base_folds=2, random_state=0)
    kept = Checkpoint(tmp_path / "kept", every=1)
    first = clone(crf).set_params(n_rounds=2).fit(X, Y, checkpoint=kept)
    assert first.n_rounds_ == 2
    resumed = clone(crf).fit(X, Y, checkpoint=kept)
    whole = clone(crf).fit(X, Y)
    assert_same_training(resumed, whole)
    assert saved(resumed, tmp_path) == saved(whole, tmp_path)
    loaded = load(saved(whole, tmp_path))
    assert_same(answers(loaded, X), answers(whole, X))
    assert saved(loaded, tmp_path) == saved(whole, tmp_path)
    assert_same_training(clone(loaded).fit(X, Y), whole)
    more = clone(crf).set_params(n_rounds=1).fit(X, Y, init=first)
    assert_same_training(more, whole)
    assert_same(answers(clone(crf).set_params(n_jobs=2).fit(X, Y), X), answers(whole, X))
    explained = whole.explain(X[3], 1)
    assert explained.to_table()["contribution"].sum() == pytest.approx(explained.log_odds)
    assert '"base": {' in whole.to_json()


def test_folds_issue_no_warnings_and_leave_the_filters_of_other_threads_alone(monkeypatch):
    used, fit_labelled = [], LinearCRF.fit_labelled

    def spy(self, labelled):
        used.append(list(warnings.filters))
        return fit_labelled(self, labelled)

    monkeypatch.setattr(LinearCRF, "fit_labelled", spy)
    crf = trees(base=LinearCRF(max_iter=1), base_folds=3)
    with pytest.warns(ConvergenceWarning) as issued:
        crf.fit(X, Y)
    assert used == used[:1] * 4
    assert len(issued) == 1


def test_checkpoints_know_the_base(tmp_path):
    kept = Checkpoint(tmp_path / "kept", every=1)
    trees(base=small(LinearCRF)).fit(X, Y, checkpoint=kept)
    trees(base=small(LinearCRF, verbose=0, n_jobs=2)).fit(X, Y, checkpoint=kept)
    message = "base has changed"
    other = trees(base=small(LinearCRF, reg_lambda=3.0))
    refuses(ValueError, message, other.fit, X, Y, checkpoint=kept)
    refuses(ValueError, message, trees(base=LINEAR).fit, X, Y, checkpoint=kept, X_base=X[::1])
    refuses(ValueError, "base was given and is not", trees().fit, X, Y, checkpoint=kept)


def test_a_base_may_see_other_features(tmp_path):
    sets = {"X": X[:5], "y": Y[:5], "X_base": WORDS[:5]}
    crf = trees(base=small(LinearCRF)).fit(X, Y, X_base=WORDS, eval_set=sets)
    assert_same_model(crf.base_, small(LinearCRF).fit(WORDS, Y))
    for method in every_prediction(crf):
        method(X, X_base=WORDS)
        refuses(ValueError, "; if the base was trained on X_base, pass X_base too", method, X)
    refuses(ValueError, "in the base model: X holds 3 columns", crf.predict, X)
    assert crf.score(X, Y, X_base=WORDS) > 0.3
    assert len(crf.log_likelihood(X, Y, X_base=WORDS)) == len(X)
    names = crf.explain(X[0], 0, X_base=WORDS[0]).feature_table["feature"].tolist()
    assert "base: all" in names
    assert "x0" in names
    assert plot_marginals(crf, X[0], Y[0], X_base=WORDS[0]) is not None
    write_report(crf, tmp_path / "page.html", X, Y, X_base=WORDS)
    found = permutation_importance(crf, X, Y, X_base=WORDS, n_repeats=1, scoring="accuracy")
    assert found.importances.shape == (3, 1)
    plain = trees(base=small(LinearCRF, reg_lambda=2.0))
    predicted = cross_val_predict(plain, X, Y, X_base=WORDS, cv=3)
    assert list(map(len, predicted)) == list(map(len, X))
    loaded = load(saved(crf, tmp_path))
    np.testing.assert_array_equal(
        loaded.predict_proba(X, X_base=WORDS), crf.predict_proba(X, X_base=WORDS)
    )


def test_flat_tables_of_a_base():
    ids = np.repeat([f"s{s}" for s in range(len(X))], list(map(len, X)))
    table = pd.DataFrame(np.concatenate(X), columns=list("abc")).assign(id=ids)
    y = np.concatenate(Y)
    plain = {"base": small(LinearCRF), "base_folds": 0}  # folds of groups depend on their names
    expected = trees(**plain).fit(X, Y, X_base=[x[:, :2] for x in X])
    probs = expected.predict_proba(X, X_base=[x[:, :2] for x in X])
    crf = trees(**plain, group_column="id")
    for X_base in (table[["a", "b", "id"]], table[["a", "b"]]):
        crf.fit(table, y, X_base=X_base)
        np.testing.assert_array_equal(crf.predict_proba(table, X_base=X_base), probs)
    crf = trees(**plain)
    rows, X_base = table[["a", "b", "c"]], table[["a", "b"]]
    crf.fit(rows, y, X_base=X_base, groups=ids)
    found = crf.predict_proba(rows, X_base=X_base, groups=ids)
    np.testing.assert_array_equal(found, probs)
    crf.fit(iter(X), iter(Y))  # each is read once only, by the trees and by the base
    found = crf.predict_proba(iter(X))
    np.testing.assert_array_equal(found, trees(**plain).fit(X, Y).predict_proba(X))


def test_scores_from_outside_count_once():
    rng = np.random.default_rng(0)
    outside = [rng.normal(size=(len(x), 3)) for x in X]
    crf = trees(base=small(LinearCRF), n_rounds=1, learning_rate=1e-300, base_folds=0)
    crf.fit(X, Y, base_scores=outside)
    base = small(LinearCRF).fit(X, Y, base_scores=outside)
    assert_same_model(crf.base_, base)
    found = crf.predict_proba(X, base_scores=outside)
    np.testing.assert_allclose(found, base.predict_proba(X, base_scores=outside), atol=1e-12)
    zero = [np.zeros_like(scores) for scores in outside]
    plain, crf = trees(base=LINEAR).fit(X, Y), trees(base=LINEAR).fit(X, Y, base_scores=zero)
    np.testing.assert_array_equal(crf.predict_proba(X, base_scores=zero), plain.predict_proba(X))
    assert (crf.predict_proba(X, base_scores=outside) != plain.predict_proba(X)).any()
    refuses(ValueError, "was fitted with base_scores", trees(base=base).fit, X, Y)


def test_weights_missing_labels_and_constraints():
    y = [[None if (s + t) % 7 == 0 else k for t, k in enumerate(Y[s])] for s in range(len(Y))]
    crf = trees(base=small(LinearCRF), forbidden=[(2, 2)], missing_label=1)
    y = [[0 if k == 2 and t and labels[t - 1] == 2 else k for t, k in enumerate(labels)]
         for labels in y]  # fmt: skip
    crf.fit(X, y, sample_weight=np.arange(1.0, len(X) + 1))
    assert crf.classes_.tolist() == [0, 2]
    assert crf.base_.classes_.tolist() == [0, 2]
    assert all(pair != (2, 2) for labels in crf.predict(X) for pair in pairwise(labels))


def test_early_stopping_may_keep_the_base_alone():
    """Trees that learn noise only harm a base that is right."""
    rng = np.random.default_rng(0)
    noise = [rng.integers(0, 3, len(x)).tolist() for x in X]
    noise[0][0], noise[1][0], noise[2][0] = 0, 1, 2
    base = small(LinearCRF, reg_lambda=0.01, max_iter=100).fit(X, Y)
    crf = trees(base=base, early_stopping_rounds=1).fit(X, noise, eval_set=(X, Y))
    assert (crf.best_round_, crf.n_rounds_) == (0, 0)
    np.testing.assert_allclose(crf.predict_proba(X), base.predict_proba(X), atol=1e-12)


def test_a_fitted_base_may_know_more_labels():
    part = [s for s in range(len(Y)) if 2 not in Y[s]]
    crf = trees(base=LINEAR).fit([X[s] for s in part], [Y[s] for s in part])
    assert crf.classes_.tolist() == [0, 1, 2]


# --- scikit-learn


def test_parameters_of_the_base(tmp_path):
    crf = trees(base=small(LinearCRF), base_folds=2)
    assert crf.get_params()["base__reg_lambda"] == 1.0
    crf.set_params(base__reg_lambda=0.5)
    assert crf.base.reg_lambda == 0.5
    search = GridSearchCV(crf, {"base__reg_lambda": [0.1, 10.0]}, cv=2, error_score="raise")
    search.fit(X, Y)
    assert search.best_estimator_.base_.reg_lambda == search.best_params_["base__reg_lambda"]


def test_a_base_that_is_frozen_stays_fitted(tmp_path):
    crf = trees(base=FrozenEstimator(LINEAR))
    copied = clone(crf).fit(X, Y)
    assert copied.base_ is LINEAR
    assert_same(answers(copied, X), answers(trees(base=LINEAR).fit(X, Y), X))
    assert hasattr(load(saved(copied, tmp_path)).base, "model_")


def test_a_base_is_left_as_it_is():
    base = small(LinearCRF)
    crf = trees(base=base).fit(X, Y)
    assert not hasattr(base, "model_")
    assert crf.base is base
    crf.set_params(base=None).fit(X, Y)
    assert not hasattr(crf, "base_")


# --- what shows it


def test_pages_and_notebooks_name_it(tmp_path):
    crf = trees(base=LINEAR).fit(X, Y)
    (note,) = write_report(crf, tmp_path / "page.html")
    assert note.startswith("The page shows features and trees without the base model;")
    assert "Weights of the base" in (tmp_path / "page.html").read_text()
    assert "a LinearCRF" in crf._repr_html_()
    write_report(trees(base=crf).fit(X, Y), tmp_path / "page.html")
    assert "Rounds of the base" in (tmp_path / "page.html").read_text()


# --- damaged files


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": 5}, "its base is not valid"),
        ({"base": {"model": "Forest"}}, "its base is not valid"),
        ({"base_was_fitted": "yes"}, "base_was_fitted is not true or false"),
        ({"base_scores": False}, "its entry base_scores is not valid"),
    ],
)
def test_files_that_make_no_sense(change, message):
    state = WITH_BASE.to_state()
    metadata = state.metadata | {"format": FORMAT} | change
    with pytest.raises(ModelFileError, match=f"the contents of the file are not valid: {message}"):
        TreeCRF.from_state(State(state.tensors, metadata))


def test_a_file_whose_base_has_other_labels():
    state, other = WITH_BASE.to_state(), OTHER.to_state()
    mixed = state | pack_base("LinearCRF", other)
    mixed.metadata["format"] = FORMAT
    with pytest.raises(ModelFileError, match="its base has other labels"):
        TreeCRF.from_state(mixed)


# --- what is refused

REFUSED = {
    "kind": ({"base": "linear"}, {}, TypeError,
             "base is of type str; expected a LinearCRF() or a TreeCRF(), fitted or not, or None"),
    "one fold": ({"base": LinearCRF(), "base_folds": 1}, {}, ValueError,
                 "base_folds is 1, which leaves nothing to train a base on; expected at least 2"),
    "folds": ({"base_folds": -1}, {}, ValueError, "base_folds is -1; expected an integer of at"),
    "fitted": ({"base": LINEAR, "base_folds": 5}, {}, ValueError,
               "base is fitted already and base_folds is 5: it is not known which sequences"),
    "labels": ({"base": OTHER}, {}, ValueError,
               "y has the labels 0, 1, 2, but base was fitted on the labels 'l0', 'l1', 'l2'; "
               "fit the base on data that have all of them"),
    "init": ({"base": LINEAR}, {"init": trees().fit(X, Y)}, ValueError,
             "init was trained without a base model, and this TreeCRF has one; set base=None"),
    "no base": ({}, {"init": WITH_BASE}, ValueError,
                "init was trained on top of a base model, and this TreeCRF has none; set the same"),
    "X_base": ({}, {"X_base": X}, ValueError,
               "X_base is given, but this TreeCRF has no base model that uses it"),
    "sequences": ({"base": LinearCRF()}, {"X_base": X[:3]}, ValueError,
                  "where X is the argument X_base: y has 24 sequences but X has 3"),
    "fewer": ({"base": LINEAR}, {"X_base": X[:3]}, ValueError,
              "X_base has 3 sequences but X has 24; pass the same sequences"),
    "lengths": ({"base": LINEAR}, {"X_base": [X[0][:1] if len(X[0]) > 1 else X[1], *X[1:]]},
                ValueError, "sequence 0 of X_base has 1 position but that of X has"),
    "columns": ({"base": LINEAR}, {"X_base": [x[:, :2] for x in X]}, ValueError,
                "where X is the argument X_base: X has 2 features, but the base is expecting 3"),
    "numbers": ({"base": LinearCRF()}, {"X_base": [x * np.nan for x in X]}, ValueError,
                "in the base model, where X is the argument X_base: X[0] has NaN at position 0"),
    "objective": ({"base": LinearCRF(objective="nonsense")}, {}, ValueError, "objective is"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    parameters, more, kind, message = REFUSED[name]
    refuses(kind, message, trees(**parameters).fit, X, Y, **more)


def test_one_sequence_has_no_folds():
    crf = trees(base=small(LinearCRF))
    message = "base_folds is 5, but the number of training sequences with labels is 1, too few"
    refuses(ValueError, message, crf.fit, X[1:2], [[0] + [1] * (len(X[1]) - 1)])
    crf.set_params(base_folds=0).fit(X[1:2], [[0] + [1] * (len(X[1]) - 1)])


def test_a_linear_model_has_no_base():
    refuses(ValueError, "this LinearCRF has no base", small(LinearCRF).fit, X, Y, X_base=X)
    refuses(ValueError, "this LinearCRF has no base", LINEAR.predict, X, X_base=X)


@pytest.mark.parametrize("sees_more", ["base", "trees"])
def test_sequences_that_only_one_of_both_can_tell_apart_may_be_in_any_order(sees_more, tmp_path):
    rng = np.random.default_rng(0)
    same, different = [np.zeros((1, 1))] * 12, [rng.normal(size=(1, 2)) for _ in range(12)]
    X, X_base = (same, different) if sees_more == "base" else (different, same)
    settings = {"n_rounds": 2, "early_stopping_rounds": 1, "validation_fraction": 0.3}

    def train(order):
        crf = TreeCRF(base=TreeCRF(n_rounds=2), base_folds=2, decode="viterbi", **settings)
        some = [[part[i] for i in order] for part in (X, [["a"], ["b"]] * 6, X_base)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            crf.fit(*some[:2], X_base=some[2])
        return saved(crf, tmp_path)

    assert train(range(12)) == train(range(11, -1, -1)) == train(rng.permutation(12))
