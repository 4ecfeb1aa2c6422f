"""Trials of both decoders: training and test pieces, results, and no side effects."""

import numpy as np
import pandas as pd
import pytest

from hedgerow import Checkpoint, LinearCRF, TreeCRF, _core
from hedgerow.encode import encode
from hedgerow.objectives import Likelihood
from hedgerow.training import trial
from hedgerow.training.decoder import proven_decoder
from hedgerow.training.labelled import read_labelled
from hedgerow.training.trial import cut_pieces, divide, try_decoders
from reference.linear import make_data, to_dicts
from reference.trainings import saved, stop_at

X, Y = make_data(n_sequences=40, longest=8)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Trials with little data."""
    for name, value in [("LEAST_LABELS", 20), ("PIECE", 8), ("PIECES", 4), ("LEAST", 40)]:
        monkeypatch.setattr(trial, name, value)


def label(y, X=None, sample_weight=None, **parameters):
    """Labelled sequences; X says which sequence a position is of, and where in it."""
    if X is None:
        X = [np.array([[s, t] for t in range(len(labels))]) for s, labels in enumerate(y)]
    return read_labelled(
        LinearCRF(**parameters),
        encode(X),
        _core.StringIndex(),
        y,
        sample_weight,
        objective=Likelihood(),
    )


def spans(pieces):
    return list(zip(pieces.begins.tolist(), pieces.ends.tolist(), strict=True))


def test_long_sequences_are_cut():
    y = [list("ab"), list("ab" * 9), list("b" * 8)]
    pieces = cut_pieces(label(y))
    assert spans(pieces) == [(0, 2), (2, 8), (8, 14), (14, 20), (20, 28)]
    assert pieces.owners.tolist() == [0, 1, 1, 1, 2]


def test_they_are_cut_where_constraints_allow_it():
    y = [["B-x", "I-x", "I-x", "O"] * 5]
    pieces = cut_pieces(label(y, constraints="BIO"))
    assert spans(pieces) == [(0, 7), (7, 15), (15, 20)]  # not before 6 and 13, which are inside
    never = [["a", *"b" * 18, "c"]]
    rules = {"start_labels": ["a"], "end_labels": ["c"]}
    assert spans(cut_pieces(label(never, **rules))) == [(0, 20)]


def test_what_has_no_label_that_counts_is_left_out():
    y = [list("ab"), list("??"), list("ab"), list("?" * 9 + "a" * 9)]
    pieces = cut_pieces(label(y, missing_label="?", sample_weight=[1, 1, 0, 1]))
    assert spans(pieces) == [(0, 2), (12, 18), (18, 24)]


@pytest.mark.parametrize("seed", range(3))
def test_no_sequence_is_on_both_sides(seed):
    y = [list("ab" * n) for n in (1, 2, 9, 3, 20, 1, 1)]
    labelled = label(y)
    pieces, identities = cut_pieces(labelled), labelled.identify()
    one, other = divide(pieces, identities, seed)
    assert sorted(spans(one) + spans(other)) == spans(pieces)
    assert not set(one.owners.tolist()) & set(other.owners.tolist())
    assert (len(set(one.owners.tolist())), len(set(other.owners.tolist()))) == (3, 4)
    assert [spans(side) for side in divide(pieces, identities, seed)] == [spans(one), spans(other)]


def test_a_lone_sequence_is_divided_in_two():
    labelled = label([list("ab" * 20)])
    one, other = divide(cut_pieces(labelled), labelled.identify(), 0)
    assert max(one.ends) <= min(other.begins)
    assert (len(one.ends), len(other.ends)) == (2, 3)


def test_enough_is_taken():
    labelled = label([list("abc")] * 40)
    pieces, _ = divide(cut_pieces(labelled), labelled.identify(), 0)
    assert len(pieces.ends) == 20
    for n_positions, n_taken in [(1, 4), (13, 5), (15, 5), (16, 6), (999, 20)]:
        taken = pieces.first(n_positions)
        assert len(taken.ends) == n_taken
        assert sorted(spans(pieces)[:n_taken]) == spans(taken)


@pytest.mark.parametrize(
    "y", [[list("abc")] * 6, [list("abcd"), *[list("abcdef")] * 2], [list("ab" * 15)] * 1]
)
def test_no_trial_with_few_labels_or_few_pieces(y, make, monkeypatch):
    crf = make()
    monkeypatch.setattr(trial, "PIECES", 5)
    assert try_decoders(crf._trainer(None), label(y), 0, 1) is None
    assert crf.fit([[[0.0]] * len(labels) for labels in y], y).decode_ == "marginal"


def leads_by_hand(crf, numbers, X, y):
    """Train on some sequences and decode others by both."""
    learnt, tested = numbers
    crf.set_params(decode="viterbi").fit([X[i] for i in learnt], [y[i] for i in learnt])
    right = {
        decode: [np.sum(crf.predict([X[i]], decode=decode)[0] == y[i]) for i in tested]
        for decode in ("marginal", "viterbi")
    }
    return np.subtract(right["marginal"], right["viterbi"]).tolist()


@pytest.mark.parametrize("few", [True, False])
def test_leads_of_a_trial(estimator, make, few, monkeypatch):
    monkeypatch.setattr(trial, "FEW_PIECES", 99 if few else 4)
    monkeypatch.setattr(trial, "STEPS", 5)
    X, y = make_data(n_sequences=60, longest=8, n_features=1, seed=4)
    y = [np.array(labels) for labels in y]
    steps = {"max_iter" if estimator is LinearCRF else "n_rounds": 9}
    labelled = label(y, X)
    sides = divide(cut_pieces(labelled), labelled.identify(), 7)
    bounds = [(sides[0].first(40), sides[1].first(trial.TESTED))]
    if few:
        bounds.append((sides[1].first(40), sides[0].first(trial.TESTED)))
    shorter = dict.fromkeys(steps, 5)
    expected = [
        leads_by_hand(make(order=2, **shorter), [side.owners for side in pair], X, y)
        for pair in bounds
    ]
    crf = make(order=2, random_state=7, **steps)
    leads = try_decoders(crf._trainer(None), labelled, 7, 1)
    assert leads.tolist() == np.concatenate(expected).tolist()
    assert np.any(leads)
    assert crf.fit(X, y).decode_ == proven_decoder(leads)


class Watch(list):
    """Remembers the leads of trials."""

    def __call__(self, trainer, labelled, random_state, n_threads):
        self.append(try_decoders(trainer, labelled, random_state, n_threads))
        return self[-1]


@pytest.fixture
def trials(monkeypatch):
    """The leads of all trials of the test."""
    watch = Watch()
    monkeypatch.setattr("hedgerow.training.training.try_decoders", watch)
    return watch


def test_there_is_no_trial_for_what_is_known(make, trials):
    for decode in ("viterbi", "marginal"):
        make(decode=decode).fit(X, Y)
    make().fit(X, Y, eval_set=(X, Y))
    make(early_stopping_rounds=2).fit(X, Y)
    make(objective="expected_accuracy").fit(X, Y)
    assert not trials
    make().fit(X, Y)
    assert len(trials) == 1


def test_the_training_is_as_without_a_trial(make, trials, tmp_path, capsys):
    def fit(decode):
        calls = []
        random = np.random.RandomState(5)
        crf = make(decode=decode, random_state=random, callbacks=[calls.append], verbose=1)
        if isinstance(crf, TreeCRF):
            crf.set_params(subsample=0.5)
        crf.fit(X, Y)
        return crf, calls, random.randint(1 << 30), capsys.readouterr()

    crf, calls, drawn, shown = fit("auto")
    other, *rest = fit(crf.decode_)
    assert [calls, drawn] == rest[:2]
    assert [shown.out.count("\n"), shown.err.count("\n")] == [
        rest[2].out.count("\n"),
        rest[2].err.count("\n"),
    ]
    other.set_params(decode="auto")
    assert saved(crf, tmp_path) == saved(other, tmp_path)
    assert len(trials) == 1


def test_the_same_leads_on_any_number_of_threads_and_after_resuming(make, trials, tmp_path):
    draws = {"subsample": 0.5} if isinstance(make(), TreeCRF) else {}
    make(n_jobs=1, **draws).fit(X, Y)
    make(n_jobs=3, **draws).fit(X, Y)
    checkpoint = Checkpoint(tmp_path / "training", every=1)
    with pytest.raises(KeyboardInterrupt):
        make(callbacks=[stop_at(2)], **draws).fit(X, Y, checkpoint=checkpoint)
    make(**draws).fit(X, Y, checkpoint=checkpoint)
    assert len(trials) == 4
    assert all(leads.tolist() == trials[0].tolist() for leads in trials)


def test_the_same_leads_as_one_longer_training(trials):
    TreeCRF(n_rounds=7, random_state=1).fit(X, Y)
    init = TreeCRF(n_rounds=3, random_state=1).fit(X, Y)
    TreeCRF(n_rounds=4, random_state=1).fit(X, Y, init=init)
    assert trials[0].tolist() == trials[2].tolist()
    assert trials[0].tolist() != trials[1].tolist()


RARE = to_dicts(X)
RARE[0][0]["rare"] = 1.0  # in one sequence, which a trial need not have
FRAMES = [pd.DataFrame({"x": x[:, 0], "c": np.where(x[:, 1] > 0, "up", "down")}) for x in X]
HIDDEN = [[None if (s + t) % 4 == 0 else c for t, c in enumerate(y)] for s, y in enumerate(Y)]
CHUNKS = [["O" if c == "a" else "B-x" for c in y] for y in Y]


@pytest.mark.parametrize(
    ("parameters", "X", "y", "extras"),
    [
        ({}, FRAMES, Y, {}),
        (
            {},
            np.concatenate(X),
            np.concatenate(Y),
            {"groups": np.repeat(range(40), [*map(len, X)])},
        ),
        ({}, np.concatenate(X), np.concatenate(Y), {}),
        ({}, X, HIDDEN, {}),
        ({"class_weight": "balanced"}, X, Y, {"sample_weight": np.arange(40.0)}),
        ({"forbidden": [("a", "b")], "order": 2}, X, [sorted(y, reverse=True) for y in Y], {}),
        ({"min_pattern_count": 9, "order": 3}, X, Y, {}),
    ],
)
def test_it_combines_with(make, trials, parameters, X, y, extras):
    crf = make(**parameters).fit(X, y, **extras)
    assert crf.decode_ == proven_decoder(trials[0])


def test_chunks_are_decoded_as_a_whole_without_a_trial(make, trials):
    assert make(constraints="BIO").fit(X, CHUNKS).decode_ == "viterbi"
    assert not trials


@pytest.mark.parametrize("seed", [0, 1])  # the rare attribute is on one side or the other
@pytest.mark.parametrize(
    "crf",
    [
        TreeCRF(n_rounds=2, monotone_constraints={"rare": {"a": 1}}),
        TreeCRF(n_rounds=2, interaction_constraints=[["rare", "x0"]], transitions="trees"),
        LinearCRF(max_iter=2, tol=0, transition_attributes="rare"),
        LinearCRF(max_iter=2, tol=0, pattern_attributes="x1", min_count=100),
    ],
)
def test_attributes_that_a_trial_does_not_have(crf, seed, trials):
    crf.set_params(random_state=seed).fit(RARE, Y)
    assert len(trials[0]) > 1


def test_ctrl_c_in_a_trial_leaves_the_model_as_it_was(make, monkeypatch, tmp_path):
    def press(*args, **kwargs):
        raise KeyboardInterrupt

    crf = make().fit(X, Y)
    before = saved(crf, tmp_path)
    monkeypatch.setattr(trial, "lead_of_marginals", press)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X[1:], Y[1:])
    assert saved(crf, tmp_path) == before
