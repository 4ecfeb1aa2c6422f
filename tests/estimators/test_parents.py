"""Tree-shaped graphs: parents in every input format, passed along with sequences."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from hedgerow import Checkpoint, TreeCRF, load
from hedgerow.inspection import permutation_importance
from hedgerow.model_selection import SequenceKFold, cross_val_predict
from hedgerow.scorers import make_position_scorer
from hedgerow.training.labelled import Labelled

RNG = np.random.default_rng(3)
LENGTHS = RNG.integers(1, 8, 24)
X = [RNG.normal(size=(length, 2)) for length in LENGTHS]
# The parent of a position is any one before it, or there is none.
PARENTS = [np.array([RNG.integers(-1, t) if t else -1 for t in range(n)]) for n in LENGTHS]
Y = [
    np.where(x[:, 0] + np.where(p >= 0, 2 * x[p, 0], 0) > 0, "b", "a").tolist()
    for x, p in zip(X, PARENTS, strict=True)
]
CHAINS = [np.arange(length) - 1 for length in LENGTHS]
ROWS, LABELS, FLAT = np.concatenate(X), np.concatenate(Y), np.concatenate(PARENTS)
GROUPS = np.repeat(np.arange(len(X)), LENGTHS)
FRAME = pd.DataFrame({"walk": GROUPS, "HEAD": FLAT + 1, "a": ROWS[:, 0], "b": ROWS[:, 1]})
BY_COLUMN = {"parents_column": "HEAD", "parents_format": "conllu", "group_column": "walk"}


def quick(make, **parameters):
    return make(**{"n_jobs": 1, "decode": "viterbi"} | parameters)


def test_a_chain_as_parents_is_a_chain(make):
    plain = quick(make).fit(X, Y)
    same = quick(make).fit(X, Y, parents=CHAINS)
    np.testing.assert_array_equal(same.predict_proba(X, parents=CHAINS), plain.predict_proba(X))
    assert same.loss_ == plain.loss_
    # It knows trees too.
    assert len(same.predict(X, parents=PARENTS)) == len(X)


def test_every_form_is_the_same(make):
    listed = quick(make).fit(X, Y, parents=PARENTS)
    flat = quick(make).fit(ROWS, LABELS, groups=GROUPS, parents=FLAT)
    column = quick(make, **BY_COLUMN).fit(FRAME, LABELS)
    expected = listed.predict_proba(X, parents=PARENTS)
    np.testing.assert_array_equal(flat.predict_proba(ROWS, groups=GROUPS, parents=FLAT), expected)
    np.testing.assert_array_equal(column.predict_proba(FRAME), expected)
    without = FRAME.drop(columns="HEAD")
    np.testing.assert_array_equal(column.predict_proba(without, parents=FLAT + 1), expected)


def test_every_method_takes_them(make):
    crf = quick(make, **BY_COLUMN).fit(FRAME, LABELS)
    beside = quick(make).fit(X, Y, parents=PARENTS)
    more = {"parents": PARENTS}
    for name, arguments in {
        "predict": {},
        "predict_marginals": {},
        "predict_proba": {},
        "predict_pattern_marginals": {},
        "sample": {"random_state": 0},
    }.items():
        found = getattr(beside, name)(X, **arguments, **more)
        axis = 1 if name == "sample" else 0
        joined = np.concatenate(found, axis=axis) if isinstance(found, list) else found
        np.testing.assert_array_equal(getattr(crf, name)(FRAME, **arguments), joined)
    assert beside.score(X, Y, **more) == crf.score(FRAME, LABELS)
    likelihoods = crf.log_likelihood(FRAME, LABELS)
    np.testing.assert_array_equal(beside.log_likelihood(X, Y, **more), likelihoods)
    for own, other in zip(
        beside.predict_k_best(X, 2, **more), crf.predict_k_best(FRAME, 2), strict=True
    ):
        assert [score for _, score in own] == [score for _, score in other]


def test_one_sequence_is_explained_with_its_parents(make):
    crf = quick(make, **BY_COLUMN).fit(FRAME, LABELS)
    beside = quick(make).fit(X, Y, parents=PARENTS)
    s = int(np.argmax(LENGTHS))
    own = FRAME[s == GROUPS]
    for x in (own, own.drop(columns="walk")):
        assert crf.explain(x, 1).log_odds == beside.explain(X[s], 1, parents=PARENTS[s]).log_odds
    numbered = quick(make, parents_column=1, group_column=0, parents_format="conllu")
    numbered.fit(FRAME.to_numpy(), LABELS)
    for x in (own.to_numpy(), own.to_numpy()[:, 1:]):
        assert numbered.explain(x, 1).log_odds == crf.explain(own, 1).log_odds


def test_a_model_file_remembers_parents(make, tmp_path):
    crf = quick(make).fit(X, Y, parents=PARENTS)
    crf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict_proba(X, parents=PARENTS), crf.predict_proba(X, parents=PARENTS)
    )
    with pytest.raises(ValueError, match="was fitted with parents, but X comes without parents"):
        loaded.predict(X)
    chain = quick(make).fit(X, Y, parents=CHAINS)
    chain.save(tmp_path / "chain")
    with pytest.raises(ValueError, match="was fitted with parents, but X comes without parents"):
        load(tmp_path / "chain").predict(X)


def test_eval_sets_have_parents(make):
    crf = quick(make).fit(X, Y, parents=PARENTS, eval_set={"X": X, "y": Y, "parents": PARENTS})
    rows = {"X": ROWS, "y": LABELS, "groups": GROUPS, "parents": FLAT}
    flat = quick(make).fit(X, Y, parents=PARENTS, eval_set=rows)
    column = quick(make, **BY_COLUMN).fit(FRAME, LABELS, eval_set={"eval": (FRAME, LABELS)})
    assert crf.history_["eval_accuracy"][-1] == crf.score(X, Y, parents=PARENTS)
    assert crf.history_ == flat.history_ == column.history_


def test_init_has_parents_too(make):
    first = quick(make).fit(X, Y, parents=PARENTS)
    again = quick(make).fit(X, Y, parents=PARENTS, init=first)
    assert again.loss_ <= first.loss_
    if isinstance(first, TreeCRF):  # whose columns stay, and so does what comes with them
        with pytest.raises(ValueError, match="fitted with parents, but X comes without parents"):
            quick(make).fit(X, Y, init=first)


def test_a_checkpoint_is_of_the_same_parents(tmp_path):
    checkpoint = Checkpoint(tmp_path / "state")
    crf = TreeCRF(n_rounds=3, n_jobs=1)
    whole = clone(crf).fit(X, Y, parents=PARENTS, checkpoint=checkpoint)
    again = clone(crf).fit(X, Y, parents=PARENTS, checkpoint=checkpoint)
    assert whole.loss_ == again.loss_
    changed = [*PARENTS[:-1], np.full(LENGTHS[-1], -1)]
    assert LENGTHS[-1] > 1
    with pytest.raises(ValueError, match="belongs to another training run: X has changed"):
        clone(crf).fit(X, Y, parents=changed, checkpoint=checkpoint)


def test_early_stopping_holds_out_whole_trees(make):
    crf = quick(make, early_stopping_rounds=3).fit(X, Y, parents=PARENTS)
    assert "validation_loss" in crf.history_


def test_a_lone_forest_is_cut_between_its_trees(make):
    lone = [np.concatenate(X)], [np.concatenate(Y)]
    starts = np.repeat(np.cumsum([0, *LENGTHS[:-1]]), LENGTHS)
    forest = [np.where(FLAT < 0, -1, FLAT + starts)]
    crf = quick(make, early_stopping_rounds=3).fit(*lone, parents=forest)
    assert "validation_loss" in crf.history_
    tied = [np.maximum(np.arange(len(FLAT)) - 2, -1)]
    tied[0][1] = 0
    message = "but it cannot be cut anywhere: every cut would separate a position from its parent"
    with pytest.raises(ValueError, match=message):
        quick(make, early_stopping_rounds=3).fit(*lone, parents=tied)


def test_cuts_tie_no_parent_to_a_child():
    class Whole:
        parents = np.array([-1, 2, 0, -1, 3, -1, -1, 0], np.int32)
        offsets, lengths, n_positions = np.array([0, 6, 8]), np.array([6, 2]), 8

    labelled = Labelled(Whole(), None, None, None, None, None, None, None)
    can_cut = labelled.can_cut(np.array([1, 2, 3, 4, 5, 7]))
    assert can_cut.tolist() == [False, False, True, False, True, False]


def test_cross_validation(make):
    crf, folds = quick(make), SequenceKFold(3)
    listed = cross_val_predict(crf, X, Y, cv=folds, parents=PARENTS)
    flat = cross_val_predict(crf, ROWS, LABELS, groups=GROUPS, cv=3, parents=FLAT)
    column = cross_val_predict(quick(make, **BY_COLUMN), FRAME, LABELS, cv=3)
    assert [len(labels) for labels in listed] == LENGTHS.tolist()
    np.testing.assert_array_equal(flat, column)


def test_searches_by_column(make):
    crf = quick(make, **BY_COLUMN)
    search = GridSearchCV(crf, {"order": [0, 1]}, cv=SequenceKFold(2, group_column="walk"))
    search.fit(FRAME, LABELS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.predict(FRAME)) == len(FRAME)
    assert clone(crf).parents_column == "HEAD"


def test_parents_are_routed(make):
    with config_context(enable_metadata_routing=True):
        crf = quick(make).set_fit_request(parents=True).set_score_request(parents=True)
        scores = cross_val_score(crf, X, Y, cv=2, params={"parents": PARENTS})
        scorer = make_position_scorer("accuracy").set_score_request(parents=True)
        again = cross_val_score(crf, X, Y, cv=2, params={"parents": PARENTS}, scoring=scorer)
    np.testing.assert_array_equal(scores, again)


def test_permutation_leaves_parents_alone(make):
    crf = quick(make, **BY_COLUMN).fit(FRAME, LABELS)
    found = permutation_importance(crf, FRAME, LABELS, n_repeats=1, random_state=0)
    assert found.feature_names == ["a", "b"]
    beside = quick(make).fit(X, Y, parents=PARENTS)
    again = permutation_importance(beside, X, Y, n_repeats=1, random_state=0, parents=PARENTS)
    np.testing.assert_array_equal(found.importances, again.importances)


def test_graphs_that_cannot_be_labelled(make):
    rules = {"start_labels": ["a"], "end_labels": ["b"]}
    crf = quick(make, **rules).fit([np.zeros((3, 1))], [["a", "b", "b"]], parents=[[-1, 0, 0]])
    message = "X[0], of length 1, cannot be labelled: no labels of position 0 and of the "
    with pytest.raises(ValueError, match=re.escape(message)):
        crf.predict([np.zeros((1, 1)), np.zeros((3, 1))], parents=[[-1], [1, -1, 1]])
