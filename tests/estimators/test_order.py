"""The order of the sequences does not matter: the model file is the same, to the last byte."""

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from hedgerow.relational import RelationalFeatures
from reference.shuffled import make_parents, make_sequences, to_facts, to_items

X, Y = make_sequences()
RANDOM = np.random.default_rng(1)
GAPS = [np.where(RANDOM.random(x.shape) < 0.2, np.nan, x) for x in X]
PARENTS = make_parents(X)
SOME = [[None if RANDOM.random() < 0.2 else label for label in y] for y in Y]
WEIGHTS = RANDOM.random(len(X)) + 0.5
FORMS = {
    "columns": X,
    "gaps": GAPS,
    "names": to_items(X, values=False),
    "values": to_items(X, values=True),
    "facts": to_facts(X),
}
# Compared with each other, and with constants.
MODES = ["x0(+t,-c)", "x1(+t,+c)", "x1(+t,#c)", "x2(+t,+-c)"]
QUERIES = RelationalFeatures(MODES, depth=1, window=1)
OBJECTIVES = ["pointwise", "accuracy", "expected_accuracy", "f1", "softmax_margin"]
TREES = [
    ("columns", {}),
    ("columns", {"order": 0}),
    ("columns", {"order": 3}),
    ("columns", {"window": 2}),
    ("names", {"order": 2}),
    ("values", {}),
    ("columns", {"subsample": 0.5, "colsample_bynode": 0.6}),
    ("columns", {"stratified": True}),
    ("columns", {"subsample": 0.5, "sampling_method": "gradient_based"}),
    ("columns", {"transitions": "trees", "order": 2}),
    ("columns", {"transitions": "trees", "stratified": True}),
    *(("gaps", {"missing": way}) for way in ("learned", "fractional", "surrogate", "impute")),
    ("columns", {"direction": "conjugate"}),
    ("columns", {"line_search": True, "transition_step": "exact"}),
    ("columns", {"newton": False, "max_leaves": 4}),
    ("columns", {"class_weight": "balanced"}),
    ("columns", {"early_stopping_rounds": 2, "validation_fraction": 0.2}),
    ("columns", {"base": LinearCRF(max_iter=3, tol=0.0)}),
    *(("columns", {"objective": name, "order": 2}) for name in OBJECTIVES),
    *(("columns", {"objective": name, "transitions": "trees"}) for name in OBJECTIVES[:2]),
    ("facts", {"queries": QUERIES, "max_literals": 3}),
    ("facts", {"queries": RelationalFeatures(depth=1), "transitions": "trees", "max_literals": 1}),
]
LINEAR = [
    *(("names", {"objective": name}) for name in ("likelihood", "max_margin", *OBJECTIVES)),
    ("names", {"reg_alpha": 0.5}),
    ("names", {"order": 3, "pattern_lambda": "auto"}),
    ("values", {}),
    ("columns", {"class_weight": "balanced"}),
    ("names", {"transition_attributes": True}),
    ("names", {"pattern_attributes": True, "order": 2}),
    ("names", {"early_stopping_rounds": 2, "validation_fraction": 0.2}),
    ("facts", {"queries": QUERIES}),
]


def files(crf, form, tmp_path, y=Y, **given):
    """The model files of a training, and of one with the sequences in another order."""
    found = []
    for order in (np.arange(len(X)), np.random.default_rng(2).permutation(len(X))):
        ordered = {
            name: values[order] if name == "sample_weight" else [values[i] for i in order]
            for name, values in given.items()
        }
        crf.fit([FORMS[form][i] for i in order], [y[i] for i in order], **ordered)
        crf.save(tmp_path / "model")
        found.append((tmp_path / "model").read_bytes())
    return found


def make_trees(**parameters):
    return TreeCRF(**{"n_rounds": 4, "random_state": 0, "decode": "marginal"} | parameters)


def make_linear(**parameters):
    return LinearCRF(**{"max_iter": 6, "tol": 0.0, "decode": "marginal"} | parameters)


@pytest.mark.parametrize(("form", "parameters"), TREES, ids=repr)
def test_of_trees(form, parameters, tmp_path):
    first, second = files(make_trees(**parameters), form, tmp_path)
    assert first == second


@pytest.mark.parametrize(("form", "parameters"), LINEAR, ids=repr)
def test_of_weights(form, parameters, tmp_path):
    first, second = files(make_linear(**parameters), form, tmp_path)
    assert first == second


@pytest.mark.parametrize("make", [make_trees, make_linear])
@pytest.mark.parametrize(
    ("y", "given"),
    [
        (SOME, {}),
        (Y, {"sample_weight": WEIGHTS}),
        (Y, {"parents": PARENTS}),
        (SOME, {"parents": PARENTS, "sample_weight": WEIGHTS}),
    ],
    ids=["some labels", "weights", "graphs", "all of it"],
)
@pytest.mark.parametrize("order", [1, 2])
def test_of_what_comes_with_the_sequences(make, y, given, order, tmp_path):
    first, second = files(make(order=order), "columns", tmp_path, y, **given)
    assert first == second


@pytest.mark.parametrize("by_column", [False, True], ids=["groups", "group_column"])
def test_of_groups_that_merely_count(by_column, tmp_path):
    base = TreeCRF(n_rounds=1, max_depth=2)
    draws = {"subsample": 0.5, "early_stopping_rounds": 2, "base": base, "base_folds": 2}
    crf = make_trees(**draws, group_column=X[0].shape[1] if by_column else None)
    found = []
    for order in (np.arange(len(X)), np.random.default_rng(2).permutation(len(X))):
        groups = np.repeat(np.arange(len(X)), [len(X[i]) for i in order])
        table, labels = (np.concatenate([parts[i] for i in order]) for parts in (X, Y))
        if by_column:
            crf.fit(np.column_stack([table, groups]), labels)
        else:
            crf.fit(table, labels, groups=groups)
        crf.save(tmp_path / "model")
        found.append((tmp_path / "model").read_bytes())
    assert found[0] == found[1]


def test_of_the_trial_of_decoders(tmp_path, monkeypatch):
    monkeypatch.setattr("hedgerow.training.trial.LEAST_LABELS", 20)
    monkeypatch.setattr("hedgerow.training.trial.PIECES", 8)
    first, second = files(make_trees(decode="auto"), "columns", tmp_path)
    assert first == second


def test_of_rows_that_are_drawn_for_cuts(tmp_path, monkeypatch):
    monkeypatch.setattr("hedgerow.trees.cuts.MAX_ROWS", 30)
    first, second = files(make_trees(max_bins=8), "columns", tmp_path)
    assert first == second
