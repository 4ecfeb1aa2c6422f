"""Early stopping with held-out training sequences."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import hedgerow
from hedgerow import Checkpoint, LinearCRF, TreeCRF
from hedgerow.raw_data import RawData
from hedgerow.training.stopping import Stopping
from hedgerow.training.training import Training
from reference.estimators import assert_same_training, group_ids
from reference.linear import hide, make_data, to_dicts
from reference.trainings import stop_at

X, Y = make_data(n_sequences=30, longest=6)
STOPPING = {"early_stopping_rounds": 2, "random_state": 0}
NAMES = ["validation_loss", "validation_accuracy"]


def held_out(make, y=Y, X=X, **more):
    """Numbers of the sequences that are held out."""
    crf = make(**STOPPING, **more)
    training = Training(crf, crf._trainer(None), Stopping.read(crf, None))
    marks = np.arange(1.0, 1 + len(X))  # weights, which tell them apart
    _, held = training.divide(training.read(RawData(X, y, sample_weight=marks)))
    return (held.sequence_weights.astype(int) - 1).tolist()


def divide(data, held):
    return [data[s] for s in range(len(data)) if s not in held], [data[s] for s in held]


def to_frames(X):
    """Numbers, and text whose values differ from sequence to sequence."""
    return [pd.DataFrame({"x": x[:, 0], "t": [f"t{v:.1f}" for v in x[:, 1]]}) for x in X]


FORMS = {
    "arrays": lambda X: X,
    "dicts": lambda X: [[{f"w={v:.0f}": 1.0 for v in row} for row in x] for x in X],
    "frames": to_frames,
    "sparse": lambda X: [scipy.sparse.csr_array(x) for x in X],
}


@pytest.mark.parametrize("form", FORMS)
def test_it_is_as_if_they_had_been_given_as_an_eval_set(make, form):
    forms = FORMS[form](X)
    held = held_out(make, X=forms)
    assert len(held) == 3
    (X_train, X_held), (y_train, y_held) = divide(forms, held), divide(Y, held)
    crf = make(**STOPPING).fit(forms, Y)
    other = make(**STOPPING).fit(X_train, y_train, eval_set={"validation": (X_held, y_held)})
    assert_same_training(crf, other)
    assert list(crf.history_)[-2:] == NAMES


def test_flat_tables_with_groups(make):
    rows, labels, groups = np.concatenate(X), np.concatenate(Y), group_ids(X)
    flat = make(**STOPPING).fit(rows, labels, groups=groups)
    assert_same_training(flat, make(**STOPPING).fit(X, Y))


def test_a_lone_sequence(make):
    rows, labels = np.concatenate(X), np.concatenate(Y)
    crf = make(validation_fraction=0.25, **STOPPING).fit(rows, labels)
    cut = round(0.75 * len(rows))
    last = {"validation": (rows[cut:], labels[cut:])}
    assert_same_training(crf, make(**STOPPING).fit(rows[:cut], labels[:cut], eval_set=last))


def test_an_eval_set_takes_its_place(make):
    data = {"X": X, "y": Y, "eval_set": make_data(8, seed=1)}
    crf = make(**STOPPING).fit(**data)
    assert_same_training(crf, make(validation_fraction=None, **STOPPING).fit(**data))
    assert "eval_loss" in crf.history_
    assert not set(NAMES) & set(crf.history_)


def test_missing_labels_and_constraints(make):
    y, more = hide(Y), {"forbidden": [], "order": 2}
    held = held_out(make, y, **more)
    assert 2 not in held  # which has no label
    (X_train, X_held), (y_train, y_held) = divide(X, held), divide(y, held)
    crf = make(**STOPPING, **more).fit(X, y)
    other = make(**STOPPING, **more)
    other.fit(X_train, y_train, eval_set={"validation": (X_held, y_held)})
    assert_same_training(crf, other)


def test_weights_count_as_in_training(make):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    held = held_out(make)
    crf = make(**STOPPING | {"early_stopping_rounds": 50}).fit(X, Y, weights)
    X_held, y_held = divide(X, held)[1], divide(Y, held)[1]
    own = weights[held]
    early = make(**{"max_iter" if isinstance(crf, LinearCRF) else "n_rounds": 1})
    early.fit(divide(X, held)[0], divide(Y, held)[0], np.delete(weights, held))
    total = own @ list(map(len, y_held))
    loss = -(own @ early.log_likelihood(X_held, y_held)) / total
    assert crf.history_["validation_loss"][0] == pytest.approx(loss, rel=1e-9)
    accuracy = early.score(X_held, y_held, own, decode="marginal")
    assert crf.history_["validation_accuracy"][0] == pytest.approx(accuracy, rel=1e-12)


def test_weights_of_classes_count_too(make):
    groups = group_ids(X)
    by_label = {"a": 2.0, "b": 0.5}
    rows = np.array([by_label.get(label, 1.0) for labels in Y for label in labels])
    crf = make(class_weight=by_label, **STOPPING).fit(X, Y)
    flat = make(**STOPPING).fit(np.concatenate(X), np.concatenate(Y), rows, groups=groups)
    assert_same_training(crf, flat)
    plain = make(class_weight={"a": 1.0}, **STOPPING).fit(X, Y).history_["validation_loss"]
    assert plain == pytest.approx(make(**STOPPING).fit(X, Y).history_["validation_loss"], rel=1e-6)
    assert plain != pytest.approx(crf.history_["validation_loss"], rel=1e-3)


def test_labels_that_are_held_out_are_classes_still(make):
    X, y = [[{"x": 1.0}]] * 9, [*["a"] * 8, "b"]
    flat = np.arange(9.0)[:, None]
    crf = make(**STOPPING).fit(flat, y)
    assert crf.classes_.tolist() == ["a", "b"]
    apart = make(**STOPPING).fit(
        X, [[label] for label in y]
    )  # the rest, a separate sequence, is trained on
    assert apart.predict_proba(X[:1])[0, 1] > 0.01


def test_a_training_that_goes_on(make, estimator, tmp_path):
    more = STOPPING | {"random_state": None, "early_stopping_rounds": 6}
    more |= {"n_rounds": 8} if estimator is TreeCRF else {}
    whole = make(**more).fit(X, Y)
    checkpoint = Checkpoint(tmp_path / "kept", every=2)
    with pytest.raises(KeyboardInterrupt):
        make(**more, callbacks=[stop_at(5)]).fit(X, Y, checkpoint=checkpoint)
    assert_same_training(make(**more).fit(X, Y, checkpoint=checkpoint), whole)
    with pytest.raises(ValueError, match=r"validation_fraction was 0.1 and is 0.2 now"):
        make(**more, validation_fraction=0.2).fit(X, Y, checkpoint=checkpoint)


@pytest.mark.parametrize("form", ["arrays", "dicts"])
def test_more_rounds_from_a_model(form):
    forms, more = FORMS[form](X), STOPPING | {"early_stopping_rounds": 9, "max_depth": 2}
    init = TreeCRF(n_rounds=3, **more).fit(forms, Y)
    crf = TreeCRF(n_rounds=2, **more).fit(forms, Y, init=init)
    assert_same_training(crf, TreeCRF(n_rounds=5, **more).fit(forms, Y))


def test_attributes_that_only_they_have_are_unknown():
    forms = [[{f"s{s}": 1.0, **row} for row in x] for s, x in enumerate(to_dicts(X))]
    crf = LinearCRF(max_iter=3, all_pairs=True, tol=0, **STOPPING).fit(forms, Y)
    assert len(crf.attributes_) == 3 + 27


def test_it_is_kept_in_the_file(make, tmp_path):
    crf = make(validation_fraction=0.2, **STOPPING).fit(X, Y)
    crf.save(tmp_path / "model")
    again = hedgerow.load(tmp_path / "model")
    assert again.validation_fraction == 0.2
    assert again.history_ == crf.history_
