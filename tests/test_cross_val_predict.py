"""Every sequence is predicted by a model that was not trained on it."""

import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hedgerow import LinearCRF
from hedgerow.model_selection import SequenceKFold, cross_val_predict
from hedgerow.preprocessing import SequenceTransformer
from reference.estimators import group_ids, small
from reference.linear import make_data

X, Y = make_data(n_sequences=9)
ROWS, LABELS, IDS = np.concatenate(X), np.concatenate(Y), group_ids(X)
TABLE = pd.DataFrame(ROWS, columns=["a", "b", "c"]).assign(walk=IDS)
FOLDS = SequenceKFold(3, shuffle=True, random_state=0)


@pytest.mark.parametrize("method", ["predict", "predict_marginals"])
def test_lists(estimator, method):
    found = cross_val_predict(small(estimator), X, Y, cv=FOLDS, method=method)
    assert [len(part) for part in found] == list(map(len, X))
    for train, test in FOLDS.split(X):
        crf = small(estimator).fit([X[i] for i in train], [Y[i] for i in train])
        expected = getattr(crf, method)([X[i] for i in test])
        for place, part in zip(test, expected, strict=True):
            np.testing.assert_array_equal(found[place], part)


def test_tables(estimator):
    expected = np.concatenate(cross_val_predict(small(estimator), X, Y, cv=3))
    by_groups = cross_val_predict(small(estimator), ROWS, LABELS, groups=IDS, cv=3)
    np.testing.assert_array_equal(by_groups, expected)
    crf = small(estimator, group_column="walk")
    np.testing.assert_array_equal(cross_val_predict(crf, TABLE, LABELS, cv=3), expected)
    folds = list(SequenceKFold(3, group_column="walk").split(TABLE))
    same = model_selection.cross_val_predict(crf, TABLE, LABELS, cv=folds)
    np.testing.assert_array_equal(cross_val_predict(crf, TABLE, LABELS, cv=folds), same)
    scaler = SequenceTransformer(StandardScaler(), group_column="walk")
    pipe = make_pipeline(scaler, crf)
    assert cross_val_predict(pipe, TABLE, LABELS, cv=3).shape == (len(ROWS),)


def test_a_label_that_a_fold_has_not_seen():
    rare = [["new"] * len(X[0]), *Y[1:]]
    found = cross_val_predict(small(LinearCRF), X, rare, cv=3, method="predict_marginals")
    assert {part.shape[1] for part in found} == {len({label for part in rare for label in part})}
    place = sorted({label for part in rare for label in part}).index("new")
    assert not found[0][:, place].any()
    np.testing.assert_allclose(found[0].sum(axis=1), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "score"}, "method is 'score'; expected 'predict' or 'predict_marginals'"),
        ({"cv": [(range(1, 9), [0])]}, "item 1 of X is in 0 test sets of cv; every item must be"),
        ({"cv": [([1], range(9)), ([1], [0])]}, "item 0 of X is in 2 test sets of cv; every item"),
    ],
)
def test_mistakes(estimator, options, message):
    with pytest.raises(ValueError, match=message):
        cross_val_predict(small(estimator), X, Y, **options)
