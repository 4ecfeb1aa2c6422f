"""Splitters that keep sequences whole, by themselves and in scikit-learn's tools."""

from itertools import chain

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hedgerow import LinearCRF, TreeCRF
from hedgerow.model_selection import SequenceKFold, StratifiedSequenceKFold, train_test_split
from reference.estimators import ESTIMATORS, group_ids, refuses, small
from reference.linear import make_data, to_dicts

X, Y = make_data(n_sequences=11)
ROWS, LABELS, IDS = np.concatenate(X), np.concatenate(Y), group_ids(X)
NAMES = np.array([f"walk {number}" for number in IDS])
TABLE = pd.DataFrame(ROWS, columns=["a", "b", "c"]).assign(walk=NAMES)
FOLDS = [SequenceKFold, StratifiedSequenceKFold]


def dealt(folds, *data, **more):
    """The test parts; that the others are for training is checked on the way."""
    tests = []
    for train, test in folds.split(*data, **more):
        assert not set(train) & set(test)
        everything = np.sort(np.concatenate([train, test]))
        np.testing.assert_array_equal(everything, np.arange(len(everything)))
        tests.append(test.tolist())
    assert len(tests) == folds.get_n_splits()
    assert sorted(chain.from_iterable(tests)) == list(range(len(everything)))
    return tests


def sequences_of(rows):
    """Numbers of the sequences that some rows make up, each of them whole."""
    numbers = np.unique(IDS[rows])
    np.testing.assert_array_equal(np.flatnonzero(np.isin(IDS, numbers)), rows)
    return numbers.tolist()


@pytest.mark.parametrize("kind", FOLDS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_form_is_dealt_out_alike(kind, shuffle):
    more = {"shuffle": shuffle, "random_state": 3 if shuffle else None}
    folds, by_name = kind(4, **more), kind(4, group_column="walk", **more)
    by_number = kind(4, group_column=-1, **more)
    expected = dealt(folds, X, Y)
    assert sorted(map(len, expected)) == [2, 3, 3, 3]
    assert dealt(folds, to_dicts(X), Y) == expected
    with_ids = np.insert(ROWS, 3, IDS, axis=1)
    for found in (
        dealt(folds, ROWS, LABELS, groups=NAMES),
        dealt(folds, ROWS.tolist(), LABELS, groups=NAMES.tolist()),
        dealt(folds, sparse.csr_array(ROWS), LABELS, groups=pd.Series(NAMES)),
        dealt(folds, TABLE, LABELS, groups=TABLE["walk"]),
        dealt(by_name, TABLE, LABELS),
        dealt(by_name, pl.DataFrame(TABLE.to_dict("list")), LABELS),
        dealt(by_number, with_ids, LABELS),
        dealt(by_number, with_ids.tolist(), LABELS),
        dealt(by_number, sparse.csr_array(with_ids), LABELS),
    ):
        assert [sequences_of(rows) for rows in found] == expected


def test_without_shuffling_folds_are_runs_of_sequences():
    assert dealt(SequenceKFold(4), X) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10]]
    assert dealt(SequenceKFold(2), np.zeros((4, 3, 2))) == [[0, 1], [2, 3]]
    assert SequenceKFold().get_n_splits(X, Y, None) == 5


def test_the_same_seed_shuffles_alike():
    one, two, three = (SequenceKFold(3, shuffle=True, random_state=seed) for seed in (1, 1, 2))
    assert dealt(one, X) == dealt(two, X) != dealt(three, X)
    assert repr(one) == "SequenceKFold(group_column=None, n_splits=3, random_state=1, shuffle=True)"


def test_groups_of_sequences_stay_together():
    speakers = np.arange(11) % 4
    for test in dealt(SequenceKFold(2), X, groups=speakers):
        assert len({*speakers[test]} & {*np.delete(speakers, test)}) == 0
    rows = speakers[IDS]
    by_row = dealt(SequenceKFold(2, group_column="walk"), TABLE, groups=rows)
    assert [sequences_of(test) for test in by_row] == dealt(SequenceKFold(2), X, groups=speakers)


def test_strata():
    # A rare label in four of twelve sequences: each of four folds has one of them.
    y = [["a"] * 5 + (["b"] if number < 4 else ["a"]) for number in range(12)]
    given = [[["u"]] * 6] * 12
    for shuffle in (False, True):
        for test in dealt(StratifiedSequenceKFold(4, shuffle=shuffle), given, y):
            assert sum("b" in y[number] for number in test) == 1
    gaps = [[None, *labels[1:]] for labels in y]
    assert len(dealt(StratifiedSequenceKFold(4), given, gaps)) == 4


@pytest.mark.parametrize(("kind", "estimator"), [*zip(FOLDS, ESTIMATORS, strict=True)])
def test_in_the_tools_of_scikit_learn(kind, estimator):
    crf, folds = small(estimator, group_column="walk"), kind(2, group_column="walk")
    found = cross_validate(crf, TABLE, LABELS, cv=folds, return_train_score=True)
    by_list = cross_val_score(small(estimator), X, Y, cv=kind(2)).tolist()
    assert found["test_score"].tolist() == by_list
    assert cross_val_predict(crf, TABLE, LABELS, cv=folds).shape == LABELS.shape
    search = GridSearchCV(crf, {"reg_lambda": [1.0]}, cv=folds).fit(TABLE, LABELS)
    assert search.best_score_ == pytest.approx(np.mean(by_list))


def test_groups_are_routed_to_the_splitter():
    with sklearn.config_context(enable_metadata_routing=True):
        crf = LinearCRF(max_iter=5, tol=0).set_fit_request(groups=True)
        crf.set_score_request(groups=True)
        pipe = make_pipeline(StandardScaler(), crf)
        search = GridSearchCV(pipe, {"linearcrf__order": [1]}, cv=SequenceKFold(3))
        search.fit(ROWS, LABELS, groups=NAMES)
        assert search.best_score_ > 0.3
        assert cross_val_score(crf, X, Y, cv=SequenceKFold(3)).shape == (3,)


def test_train_test_split_of_a_list():
    X_train, X_test, y_train, y_test = train_test_split(X, Y, random_state=0)
    assert (len(X_train), len(X_test)) == (8, 3)
    assert list(map(len, X_train)) == list(map(len, y_train))
    assert list(map(len, X_test)) == list(map(len, y_test))
    again = train_test_split(X, Y, random_state=0)
    np.testing.assert_array_equal(np.concatenate(X_test), np.concatenate(again[1]))
    last = train_test_split(X, Y, test_size=2, train_size=3, shuffle=False)
    assert (last[2], last[3]) == (Y[:3], Y[3:5])


def test_train_test_split_of_tables():
    for table in (TABLE, pl.DataFrame(TABLE.to_dict("list"))):
        train, test, y_train, y_test = train_test_split(
            table, LABELS, group_column="walk", random_state=1
        )
        assert type(train) is type(test) is type(table)
        assert not set(train["walk"]) & set(test["walk"])
        assert (len(train), len(test)) == (len(y_train), len(y_test))
        crf = TreeCRF(n_rounds=2, group_column="walk").fit(train, y_train)
        assert 0 <= crf.score(test, y_test) <= 1
    parts = train_test_split(sparse.coo_array(ROWS), pd.Series(LABELS), groups=NAMES)
    assert [part.shape[0] for part in parts[::2]] == [len(parts[0].toarray())] * 3
    assert not set(parts[4]) & set(parts[5])


def test_train_test_split_by_labels():
    y = [["a", "b"] if number % 4 == 0 else ["a", "a"] for number in range(12)]
    for seed in range(3):
        _, _, train, test = train_test_split(
            [[["u"]] * 2] * 12, y, test_size=4, stratify=y, random_state=seed
        )
        assert (train.count(["a", "b"]), test.count(["a", "b"])) == (2, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_splits": 1}, "n_splits is 1; expected an integer of at least 2"),
        ({"shuffle": "yes"}, "shuffle is 'yes'; expected True or False"),
        ({"group_column": 1.5}, "group_column is 1.5; expected the name or the number"),
        ({"random_state": 3}, "random_state is 3, but nothing is drawn at random; pass shuffle="),
    ],
)
def test_bad_folds(options, message):
    refuses(ValueError, message, SequenceKFold, **options)


@pytest.mark.parametrize(
    ("folds", "given", "error", "message"),
    [
        (SequenceKFold(12), (X,), ValueError, "n_splits is 12, but X has 11 sequences; every"),
        (SequenceKFold(3), (X, Y, IDS[:11] % 2), ValueError, "but X has 2 groups; every fold"),
        (SequenceKFold(), (ROWS,), ValueError, "X is one flat table without ids of sequences"),
        (SequenceKFold(), (None,), TypeError, "X is of type NoneType; expected a list of 2-D"),
        (SequenceKFold(), ({"a": [1]},), TypeError, "X is of type dict; expected a list of 2-D"),
        (SequenceKFold(), (X, Y, [1]), ValueError, "1 id but X has 11 sequences; pass one id for"),
        (SequenceKFold(), (X, Y, [None] * 11), ValueError, "at sequence 0; every sequence needs"),
        (SequenceKFold(), (X, Y, "walk"), TypeError, "expected one id for every sequence"),
        (SequenceKFold(group_column=0), (np.ones(9),), ValueError, "X is 1-D with shape (9,)"),
        (SequenceKFold(group_column="w"), (TABLE,), ValueError, "group_column is 'w', but X has"),
        (
            SequenceKFold(group_column="w"),
            (TABLE, None, LABELS),
            ValueError,
            "pass X with the column of group ids, or set group_column=None and pass the argument",
        ),
        (
            SequenceKFold(group_column=0),
            (np.array([[0, 1], [1, 1], [0, 1]]),),
            ValueError,
            "group 0 occurs again at row 2 after it began at row 0; the rows of a group must be "
            "consecutive: sort X and y by column 0 first",
        ),
        (
            SequenceKFold(2, group_column="walk"),
            (TABLE, LABELS, np.arange(len(IDS))),
            ValueError,
            "groups has two ids within one sequence of group_column='walk', at rows 0 and 1; all",
        ),
        (StratifiedSequenceKFold(2), (X,), ValueError, "y is None, but StratifiedSequenceKFold"),
        (StratifiedSequenceKFold(2), (X, Y[1:]), ValueError, "y has 10 entries but X has 11 seq"),
    ],
)
def test_bad_data_for_folds(folds, given, error, message):
    refuses(error, message, lambda: list(folds.split(*given)))


def test_bad_splits():
    refuses(ValueError, "shuffle is 2; expected True or False", train_test_split, X, shuffle=2)
    refuses(ValueError, "group_column is []; expected", train_test_split, X, group_column=[])
    message = "argument 2 of train_test_split has 10 entries, but X has 11 sequences; pass one"
    refuses(ValueError, message, train_test_split, X, Y[1:])
    refuses(ValueError, "X is one flat table without ids", train_test_split, ROWS, LABELS)
    refuses(ValueError, "stratify has 10 entries but X", train_test_split, X, Y, stratify=Y[1:])
