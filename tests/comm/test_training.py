"""Training on several workers: the same model file for any number and any division of data."""

import numpy as np
import pandas as pd
import pytest

import hedgerow.trees.learner as learners
from abuse.metamorphic.answers import file_of
from hedgerow import Checkpoint, LinearCRF, TreeCRF
from hedgerow.comm import ThreadComm, WorkerError
from hedgerow.relational import RelationalFeatures
from hedgerow.state import State
from hedgerow.training import trial
from hedgerow.training.shared_training import check_agreement
from reference.shuffled import make_parents, make_sequences, to_items

X, Y = make_sequences()
FORMS = {
    "columns": X,
    "gaps": [np.where(np.random.default_rng(3).random(x.shape) < 0.2, np.nan, x) for x in X],
    "names": to_items(X, values=False),
    "values": to_items(X, values=True),
}
PARENTS = make_parents(X)
WEIGHTS = np.random.default_rng(4).random(len(X)) + 0.5
DIVISIONS = {
    "halves": [range(20), range(20, 40)],
    "uneven": [range(3), range(3, 5), range(5, 40)],
    "shuffled": np.array_split(np.random.default_rng(5).permutation(40), 3),
}
TREES = [
    ("columns", {}),
    ("columns", {"order": 3}),
    ("columns", {"window": 1, "max_leaves": 4}),
    ("gaps", {"min_pattern_count": 2, "order": 2}),
    ("names", {}),
    ("values", {"colsample_bynode": 0.7}),
    ("columns", {"subsample": 0.5}),
    ("columns", {"stratified": True, "subsample": 0.7}),
    ("columns", {"stratified": True, "negative_weight": "balanced", "trim": 0.05}),
    ("columns", {"sampling_method": "gradient_based", "subsample": 0.5}),
    ("columns", {"sampling_method": "gradient_based", "subsample": 0.5, "stratified": True}),
    ("gaps", {"missing": "impute"}),
    ("columns", {"base": LinearCRF(max_iter=3, tol=0.0, decode="viterbi"), "base_folds": 2}),
    ("names", {"base": LinearCRF(max_iter=3, tol=0.0, decode="viterbi"), "base_folds": 0}),
    ("gaps", {"missing": "indicator"}),
    ("columns", {"class_weight": "balanced"}),
    ("columns", {"line_search": True}),
    ("columns", {"newton": False, "direction": "conjugate"}),
    ("columns", {"objective": "f1"}),
    ("columns", {"objective": "pointwise", "order": 2}),
    ("columns", {"objective": "accuracy"}),
    ("columns", {"objective": "softmax_margin"}),
]
LINEAR = [
    ("names", {}),
    ("names", {"reg_alpha": 0.5}),
    ("names", {"min_count": 4, "order": 2}),
    ("values", {}),
    ("columns", {"all_pairs": True}),
    ("names", {"objective": "f1"}),
    ("names", {"objective": "pointwise", "pattern_lambda": "auto", "order": 2}),
    ("names", {"objective": "max_margin"}),
    ("names", {"transition_attributes": True}),
]


def fit_parts(crf_of, form, parts, tmp_path, **given):
    """The model files of workers that have some of the sequences each."""

    def work(comm):
        own = list(parts[comm.rank])
        more = {
            name: values[own] if name == "sample_weight" else [values[i] for i in own]
            for name, values in given.items()
        }
        crf = crf_of().fit([FORMS[form][i] for i in own], [Y[i] for i in own], comm=comm, **more)
        path = tmp_path / str(comm.rank)
        crf.save(path)
        return path.read_bytes()

    return ThreadComm.run(len(parts), work)


def check_same(crf_of, form, division, tmp_path, **given):
    (alone,) = fit_parts(crf_of, form, [range(40)], tmp_path, **given)
    assert fit_parts(crf_of, form, DIVISIONS[division], tmp_path, **given) == [alone] * len(
        DIVISIONS[division]
    )


def make_trees(**parameters):
    return TreeCRF(**{"n_rounds": 3, "random_state": 0, "decode": "marginal"} | parameters)


def make_linear(**parameters):
    return LinearCRF(**{"max_iter": 5, "tol": 0.0, "decode": "marginal"} | parameters)


@pytest.mark.parametrize(("form", "parameters"), TREES, ids=repr)
def test_trees(form, parameters, tmp_path):
    check_same(lambda: make_trees(**parameters), form, "uneven", tmp_path)


@pytest.mark.parametrize(("form", "parameters"), LINEAR, ids=repr)
def test_weights(form, parameters, tmp_path):
    check_same(lambda: make_linear(**parameters), form, "uneven", tmp_path)


@pytest.mark.parametrize(("form", "parameters"), TREES[:5], ids=repr)
def test_sums_of_more_than_32_bits(form, parameters, tmp_path, monkeypatch):
    n_positions = sum(map(len, Y))
    monkeypatch.setattr(learners, "count_bits", {n_positions: (36, 37)}.__getitem__)
    check_same(lambda: make_trees(**parameters), form, "uneven", tmp_path)


@pytest.mark.parametrize("make", [make_trees, make_linear])
@pytest.mark.parametrize("division", DIVISIONS)
def test_any_division(make, division, tmp_path):
    given = {"sample_weight": WEIGHTS, "parents": PARENTS}
    check_same(lambda: make(order=2), "columns", division, tmp_path, **given)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", [make_trees, make_linear])
def test_both_decoders_are_tried(make, form, tmp_path, monkeypatch):
    if make is make_linear and form == "gaps":
        form = "columns"
    for name, value in [("LEAST_LABELS", 20), ("PIECE", 8), ("PIECES", 4), ("LEAST", 60)]:
        monkeypatch.setattr(trial, name, value)
    tried = []

    def hold_trial(*arguments):
        tried.append(trial_held(*arguments))
        return tried[-1]

    trial_held = trial.hold_trial
    monkeypatch.setattr(trial, "hold_trial", hold_trial)
    check_same(lambda: make(decode="auto"), form, "shuffled", tmp_path, sample_weight=WEIGHTS)
    half = len(tried) // 2
    alone, spread = np.concatenate(tried[:half]), np.concatenate(tried[half:])
    assert np.any(alone)
    assert np.sort(alone).tolist() == np.sort(spread).tolist()


def test_eval_sets_are_the_same_on_all_workers(tmp_path):
    def work(comm):
        own = DIVISIONS["halves"][comm.rank]
        crf = make_trees(n_rounds=20, early_stopping_rounds=2)
        crf.fit([X[i] for i in own], [Y[i] for i in own], eval_set=(X[:5], Y[:5]), comm=comm)
        return crf.best_round_, crf.history_["eval_loss"]

    first, second = ThreadComm.run(2, work)
    assert first == second


EARLY = {"early_stopping_rounds": 2, "validation_fraction": 0.2, "decode": "auto"}


@pytest.mark.parametrize(
    ("make", "form"),
    [
        (make_trees, "gaps"),
        (make_trees, "values"),
        (make_linear, "columns"),
        (make_linear, "names"),
    ],
)
def test_what_is_held_out(make, form, tmp_path):
    given = {"sample_weight": WEIGHTS, "parents": PARENTS}
    n_steps = {"n_rounds" if make is make_trees else "max_iter": 20}
    metric = {"eval_metric": ["accuracy", "f1_macro"], "early_stopping_metric": "accuracy"}
    check_same(lambda: make(**EARLY, **n_steps, **metric), form, "shuffled", tmp_path, **given)


@pytest.mark.parametrize("make", [make_trees, make_linear])
def test_a_text_column_and_groups_of_which_some_are_held_out(make, tmp_path):
    frame = pd.concat(
        pd.DataFrame({"group": i, "a": x[:, 0], "text": np.where(x[:, 1] > 0, f"s{i}", "other")})
        for i, x in enumerate(X)
    )
    labels = np.concatenate(Y)

    def work(parts, comm):
        own = np.isin(frame["group"], list(parts[comm.rank]))
        crf = make(**EARLY, group_column="group").fit(frame[own], labels[own], comm=comm)
        crf.save(tmp_path / str(comm.rank))
        return (tmp_path / str(comm.rank)).read_bytes(), crf.history_["validation_loss"]

    (alone,) = ThreadComm.run(1, lambda comm: work([range(40)], comm))
    parts = DIVISIONS["shuffled"]
    assert ThreadComm.run(3, lambda comm: work(parts, comm)) == [alone] * 3


@pytest.mark.parametrize(("make", "form"), [(make_trees, "columns"), (make_linear, "columns")])
def test_a_worker_all_of_whose_sequences_are_held_out(make, form, tmp_path):
    def crf_of():
        return make(early_stopping_rounds=2, validation_fraction=0.5)

    (alone,) = fit_parts(crf_of, form, [range(40)], tmp_path)
    for own in range(4):
        parts = [[own], [i for i in range(40) if i != own]]
        assert fit_parts(crf_of, form, parts, tmp_path) == [alone] * 2


@pytest.mark.parametrize("form", ["columns", "names"])
def test_a_base_where_some_sequences_are_held_out(form, tmp_path):
    base = LinearCRF(max_iter=3, tol=0.0, **EARLY)
    check_same(lambda: make_trees(**EARLY, base=base, base_folds=2), form, "uneven", tmp_path)


def test_a_base_where_all_sequences_of_a_worker_are_held_out():
    X, y = [np.array([[1.0, 2.0]]), np.array([[0.0, 2.3]])], [["cc"], ["b"]]

    def train(X, y, **given):
        base = TreeCRF(n_rounds=2, max_depth=2, min_child_weight=0.0)
        crf = TreeCRF(n_rounds=1, min_child_weight=0.0, newton=False, base=base, base_folds=0)
        crf.set_params(early_stopping_rounds=1, validation_fraction=0.3, order=0)
        return file_of(crf.set_params(random_state=0).fit(X, y, **given))

    def work(comm):
        return train([X[comm.rank]], [y[comm.rank]], comm=comm)

    assert ThreadComm.run(2, work) == [train(X, y)] * 2


def test_only_one_sequence_to_hold_out():
    def work(comm):
        y = [Y[0], [None] * len(Y[1])]
        make_trees(**EARLY).fit(X[:2], y, sample_weight=[comm.rank, 1], comm=comm)

    with pytest.raises(ValueError, match="a weight above 0 is 1 on all 2 workers together"):
        ThreadComm.run(2, work)


def test_eval_sets_by_name(tmp_path):
    def work(parts, comm):
        own = parts[comm.rank]
        crf = make_trees(
            n_rounds=20,
            early_stopping_rounds=2,
            eval_metric="f1_macro",
            early_stopping_metric="f1_macro",
            decode="auto",
        )
        sets = {"dev": (X[:5], Y[:5]), "more": (X[5:9], Y[5:9])}
        crf.fit([X[i] for i in own], [Y[i] for i in own], eval_set=sets, comm=comm)
        crf.save(tmp_path / str(comm.rank))
        return (tmp_path / str(comm.rank)).read_bytes(), crf.history_["more_f1_macro"]

    (alone,) = ThreadComm.run(1, lambda comm: work([range(40)], comm))
    assert ThreadComm.run(2, lambda comm: work(DIVISIONS["halves"], comm)) == [alone] * 2


def test_the_first_worker_calls_back(tmp_path):
    called = []

    def stop(step):
        called.append(step.number)
        return step.number == 2

    def work(comm):
        own = DIVISIONS["halves"][comm.rank]
        crf = make_trees(n_rounds=5, callbacks=[stop])
        crf.fit([X[i] for i in own], [Y[i] for i in own], comm=comm)
        return len(crf.history_["loss"])

    assert ThreadComm.run(2, work) == [2, 2]
    assert called == [1, 2]


class Custom:
    """A custom objective."""

    def value(self, marginals, labels, weights):
        return 0.0

    def gradient(self, marginals, labels, weights):
        return np.zeros_like(marginals)


@pytest.mark.parametrize(
    ("crf", "given", "message"),
    [
        (
            make_trees(transitions="trees"),
            {},
            "transitions is 'trees', but 2 workers train the model",
        ),
        (
            make_trees(missing="surrogate"),
            {},
            "missing is 'surrogate', but 2 workers train the model",
        ),
        (
            make_linear(objective=Custom()),
            {},
            "the objective Custom has no method named 'terms', but 2",
        ),
        (
            make_trees(queries=RelationalFeatures()),
            {},
            "queries is set, but 2 workers train the model",
        ),
        (make_trees(device="cuda"), {}, "device is 'cuda', but 2 workers train the model"),
    ],
)
def test_what_is_for_one_worker_alone(crf, given, message):
    with pytest.raises(ValueError, match=message):
        ThreadComm.run(2, lambda comm: crf.fit(X[:2], Y[:2], comm=comm, **given))


@pytest.mark.parametrize("make", [make_trees, make_linear])
def test_a_checkpoint_is_resumed_on_fewer_workers(make, tmp_path):
    def work(n_steps, division, comm):
        own = list(DIVISIONS[division][comm.rank])
        crf = make(**{"n_rounds" if make is make_trees else "max_iter": n_steps})
        where = Checkpoint(tmp_path / "checkpoint")
        crf.fit([X[i] for i in own], [Y[i] for i in own], comm=comm, checkpoint=where)
        crf.save(tmp_path / str(comm.rank))
        return (tmp_path / str(comm.rank)).read_bytes()

    ThreadComm.run(3, lambda comm: work(2, "uneven", comm))
    resumed = ThreadComm.run(2, lambda comm: work(4, "halves", comm))
    (tmp_path / "checkpoint").unlink()
    assert resumed == ThreadComm.run(2, lambda comm: work(4, "halves", comm))


def with_words(x):
    """A frame whose categories workers number differently."""
    words = np.array([*"abc"])[np.digitize(x[:, 0], [-0.5, 0.5])]
    return pd.DataFrame({"word": words, "number": x[:, 1]})


@pytest.mark.parametrize("is_fitted", [False, True])
def test_checkpoints_know_what_a_base_sees_on_any_worker(is_fitted, tmp_path):
    words = [with_words(x) for x in X]
    base = LinearCRF(max_iter=3, tol=0.0, decode="viterbi")
    if is_fitted:
        base.fit(words, Y)

    def work(n_rounds, parts, seen, comm):
        own = list(parts[comm.rank])
        make_trees(n_rounds=n_rounds, base=base, base_folds=0 if is_fitted else 2).fit(
            [X[i] for i in own],
            [Y[i] for i in own],
            X_base=[seen[i] for i in own],
            comm=comm,
            checkpoint=Checkpoint(tmp_path / "checkpoint"),
        )

    ThreadComm.run(3, lambda comm: work(2, DIVISIONS["shuffled"], words, comm))
    ThreadComm.run(2, lambda comm: work(3, DIVISIONS["halves"], words, comm))
    ThreadComm.run(1, lambda comm: work(4, [range(40)], words, comm))
    other = [*words[:39], words[39].assign(number=0.0)]
    with pytest.raises(ValueError, match="base"):
        ThreadComm.run(2, lambda comm: work(5, DIVISIONS["halves"], other, comm))


@pytest.mark.parametrize("first", [0, 1, 7])
@pytest.mark.parametrize("division", DIVISIONS)
def test_groups_that_merely_count(first, division, tmp_path):
    def work(parts, comm):
        own = list(parts[comm.rank])
        groups = np.repeat(np.add(own, first), [len(X[i]) for i in own])
        crf = make_trees(subsample=0.5, n_rounds=2)
        y = np.concatenate([Y[i] for i in own])
        crf.fit(np.concatenate([X[i] for i in own]), y, groups=groups, comm=comm)
        crf.save(tmp_path / str(comm.rank))
        return (tmp_path / str(comm.rank)).read_bytes()

    parts = DIVISIONS[division]
    spread = ThreadComm.run(len(parts), lambda comm: work(parts, comm))
    for order in (range(40), np.concatenate(parts)):
        assert set(spread) == set(ThreadComm.run(1, lambda comm, all=order: work([all], comm)))


def test_sequences_that_hold_the_same_on_two_workers(tmp_path):
    def work(comm):
        crf = make_trees(subsample=0.5)
        crf.fit(X[:4] * (2 // comm.size), Y[:4] * (2 // comm.size), comm=comm)
        crf.save(tmp_path / str(comm.rank))
        return (tmp_path / str(comm.rank)).read_bytes()

    assert set(ThreadComm.run(2, work)) == set(ThreadComm.run(1, work))


@pytest.mark.parametrize("name", ["sample_weight", "checkpoint"])
def test_other_arguments_on_another_worker(name, tmp_path):
    def work(comm):
        given = {"sample_weight": [1.0], "checkpoint": Checkpoint(tmp_path / "checkpoint")}
        more = {name: given[name]} if comm.rank else {}
        make_trees().fit(X[:1], Y[:1], comm=comm, **more)

    with pytest.raises(ValueError, match=f"{name} is given on one worker and not on another; all"):
        ThreadComm.run(2, work)


@pytest.mark.parametrize("make", [make_trees, make_linear])
def test_workers_that_know_no_label_or_do_not_count(make, tmp_path):
    lengths = list(map(len, X))
    hidden = [[None] * n if i in DIVISIONS["uneven"][0] else Y[i] for i, n in enumerate(lengths)]
    weights = np.repeat(np.where(np.arange(40) < 5, 0.0, 1.0), lengths)
    weights[-1] = 0.5  # only there do weights differ within a sequence

    def fit(comm):
        own = list(DIVISIONS["uneven"][comm.rank]) if comm.size > 1 else range(40)
        rows = np.concatenate([np.full(lengths[i], i) for i in own])
        marked = np.isin(np.repeat(np.arange(40), lengths), own)
        partly = make().fit([X[i] for i in own], [hidden[i] for i in own], comm=comm)
        flat = np.concatenate([X[i] for i in own]), np.concatenate([Y[i] for i in own])
        weighed = make().fit(*flat, weights[marked], groups=rows, comm=comm)
        return [file_of(crf) for crf in (partly, weighed)]

    (alone,) = ThreadComm.run(1, fit)
    assert ThreadComm.run(3, fit) == [alone] * 3
    with pytest.raises(ValueError, match="sample_weight is zero for every sequence; at least"):
        ThreadComm.run(2, lambda comm: make().fit(X[:2], Y[:2], [0.0, 0.0], comm=comm))
    nothing = [[None] * len(X[0])]
    with pytest.raises(ValueError, match="y has no label at any of its 30 positions"):
        ThreadComm.run(2, lambda comm: make().fit(X[:1], nothing, comm=comm))


def test_other_columns_on_another_worker():
    parts = [X[0]], [X[0][:, :3]]
    message = r"X of worker \d has \d features, but X of worker \d has \d; all parts of the data"
    with pytest.raises(ValueError, match=message):
        ThreadComm.run(2, lambda comm: make_trees().fit(parts[comm.rank], Y[:1], comm=comm))
    parts = [X[0]], [[{"a": 1}] * len(X[0])]
    message = r"X of worker \d has .*, but X of worker \d has .*; all parts .* same form"
    with pytest.raises(ValueError, match=message):
        ThreadComm.run(2, lambda comm: make_trees().fit(parts[comm.rank], Y[:1], comm=comm))


def test_other_types_of_labels_on_another_worker():
    parts = Y[:1], [[1] * len(Y[0])]
    with pytest.raises(ValueError, match="y holds integers on one worker and text on another"):
        ThreadComm.run(2, lambda comm: make_trees().fit(X[:1], parts[comm.rank], comm=comm))


def test_workers_that_round_differently():
    def work(comm):
        check_agreement(lambda: State({"a": np.array([comm.rank])}, {}), 3, comm)

    with pytest.raises(WorkerError, match="after step 3 the models of worker 1 and worker 0"):
        ThreadComm.run(2, work)
