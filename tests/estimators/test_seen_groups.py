"""Warnings about groups that are missing in prediction data, or split between data sets."""

import pickle
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from hedgerow import DataWarning, load
from hedgerow.model_selection import SequenceKFold
from hedgerow.scorers import make_position_scorer
from reference.estimators import group_ids, refuses

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(length, 3)) for length in (5, 6, 7, 8) * 3]
Y = [np.where(x[:, 0] > 0, "a", "b") for x in X]
ROWS, LABELS, IDS = np.concatenate(X), np.concatenate(Y), group_ids(X)
NAMES = np.array([f"walk {number}" for number in IDS])
TABLE = pd.DataFrame(ROWS, columns=["a", "b", "c"]).assign(walk=NAMES)
SCORER = make_position_scorer(accuracy_score)
TORN = "12 of the 12 groups of X were in the training data too ('walk 0', "
HALF = np.arange(len(IDS)) % 2 == 0


@pytest.fixture(scope="module")
def crf(make):
    return make(group_column="walk").fit(TABLE[HALF], LABELS[HALF])


def test_scores_of_torn_groups(crf):
    rest, labels = TABLE[~HALF], LABELS[~HALF]
    pipe = make_pipeline("passthrough", crf)
    twin = pickle.loads(pickle.dumps(crf))
    for score in (crf.score, twin.score, pipe.score, *(partial(SCORER, c) for c in (crf, pipe))):
        with pytest.warns(DataWarning, match=re.escape(TORN)):
            score(rest, labels)
    with pytest.warns(DataWarning, match="scores are too high; keep sequences whole: use a "):
        crf.score(rest, labels)
    crf.predict(rest)  # which measures nothing


def test_training_data_and_other_groups_may_be_scored(crf, tmp_path):
    crf.score(TABLE[HALF], LABELS[HALF])
    SCORER(crf, TABLE[HALF], LABELS[HALF])
    crf.score(TABLE.assign(walk="other"), LABELS)
    crf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")  # a file does not keep the groups
    loaded.score(TABLE[~HALF], LABELS[~HALF])


def test_one_torn_group_of_many(make):
    crf = make(group_column="walk").fit(TABLE[IDS < 6], LABELS[IDS < 6])
    test = IDS >= 5
    test[np.flatnonzero(IDS == 5)[0]] = False
    with pytest.warns(DataWarning, match="1 of the 7 groups of X was in the training data too"):
        crf.score(TABLE[test], LABELS[test])


def test_equal_numbers_are_one_group(make):
    numbered = TABLE.assign(walk=IDS + 3)
    crf = make(group_column="walk").fit(numbered[HALF], LABELS[HALF])
    with pytest.warns(DataWarning, match="of the 12 groups of X"):
        crf.score(numbered[~HALF].astype({"walk": float}), LABELS[~HALF])


def test_groups_beside_the_table(make):
    """Numbers from 0 or 1 on are likely to be other sequences; names are not."""
    for ids in (IDS, IDS + 1):
        counting = make().fit(ROWS[HALF], LABELS[HALF], groups=ids[HALF])
        counting.score(ROWS[~HALF], LABELS[~HALF], groups=ids[~HALF])
    named = make().fit(ROWS[HALF], LABELS[HALF], groups=NAMES[HALF])
    with pytest.warns(DataWarning, match="of the 12 groups of X"):
        SCORER(named, ROWS[~HALF], LABELS[~HALF], groups=NAMES[~HALF])


def test_cross_validation_tells_of_a_splitter_that_tears(make):
    crf = make(group_column="walk")
    for scoring in (None, SCORER):
        with pytest.warns(DataWarning, match="groups of X were in the training data too"):
            cross_val_score(crf, TABLE, LABELS, cv=KFold(2, shuffle=True), scoring=scoring)
        cross_val_score(
            crf, TABLE, LABELS, cv=SequenceKFold(2, group_column="walk"), scoring=scoring
        )


def test_an_eval_set_of_torn_groups(make):
    rest = (TABLE[~HALF], LABELS[~HALF])
    with pytest.warns(DataWarning, match="12 groups of eval_set were in the training data too"):
        make(group_column="walk").fit(TABLE[HALF], LABELS[HALF], eval_set=rest)
    same = (TABLE[HALF], LABELS[HALF])
    make(group_column="walk").fit(*same, eval_set=same)


def test_an_eval_set_without_groups(make):
    message = (
        f"in eval_set: X is one flat table of {len(ROWS)} rows without groups, but fit was given "
        "groups; pass (X, y, groups). If X is one sequence, pass ([X], [y])"
    )
    fit = make().fit
    refuses(ValueError, message, fit, ROWS, LABELS, groups=IDS, eval_set=(ROWS, LABELS))
    fit(ROWS, LABELS, groups=IDS, eval_set=(ROWS, LABELS, IDS))
    fit(ROWS, LABELS, groups=IDS, eval_set=([ROWS], [LABELS]))
    fit(ROWS, LABELS, eval_set=(ROWS, LABELS))
    fit(X, Y, eval_set=(ROWS, LABELS))


def test_predictions_without_groups(make):
    crf = make().fit(ROWS, LABELS, groups=NAMES)
    longest = max(map(len, X))
    message = (
        f"X is one flat table without groups, so all of its {len(ROWS)} rows are one sequence, but "
        f"fit was given groups, and no sequence had more than {longest}; pass groups=... here too. "
        "If X is one sequence, pass [X]"
    )
    for ask in (crf.predict, crf.predict_proba, lambda rows: crf.score(rows, LABELS)):
        with pytest.warns(DataWarning, match=re.escape(message)):
            ask(ROWS)
    crf.predict(ROWS[: 2 * longest])  # may be a long sequence
    crf.predict([ROWS])
    crf.predict(ROWS, groups=NAMES)
    make().fit(X, Y).predict(ROWS)
    make().fit(ROWS, LABELS).predict(ROWS)


def test_scorers_of_scikit_learn_hand_no_groups_on(make):
    with sklearn.config_context(enable_metadata_routing=True):
        crf = make().set_fit_request(groups=True)
        search = GridSearchCV(
            crf, {"order": [1]}, cv=SequenceKFold(2), scoring="accuracy", refit=False
        )
        with pytest.warns(DataWarning, match="pass groups=... here too"):
            search.fit(ROWS, LABELS, groups=NAMES)


def test_what_is_remembered_is_small(make):
    crf = make(group_column="walk").fit(TABLE, LABELS)
    seen = crf.seen_groups_
    assert (seen.names.nbytes, seen.lengths.nbytes) == (12 * 8, 12 * 8)
