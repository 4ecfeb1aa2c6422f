"""Attributes of columns: no two columns share one."""

import re

import pandas as pd
import pytest

from hedgerow import LinearCRF

LABELS = ["A", "B", "A"]


def fit(frame):
    return LinearCRF(n_jobs=1).fit(frame, LABELS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"c": ["x", "y", "z"], "c:x": [1.0, 2.0, 3.0]},
            "column 'c' has the value 'x', whose attribute 'c:x' can also be one of column 'c:x', "
            "and they would share their weights; rename one of the two columns",
        ),
        (
            {"a:b": ["c", "d", "e"], "a": ["u", "b:c", "w"]},
            "column 'a' has the value 'b:c', whose attribute 'a:b:c' can also be one of column "
            "'a:b', and they",
        ),
        (  # what 'a:b' has elsewhere is not known here
            {"a:b": ["c", "d", "e"], "a": ["u", "b:f", "w"]},
            "column 'a' has the value 'b:f', whose attribute 'a:b:f' can also be one of column",
        ),
    ],
)
def test_columns_whose_attributes_would_be_one(columns, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fit(pd.DataFrame(columns))


def test_names_that_only_look_alike():
    frame = pd.DataFrame(
        {"c": ["x", "y", "d"], "c:d": ["e", "f", "g"], "c:n": [1.0, 2.0, 3.0], "c:": [0.0, 1, 2]}
    )
    expected = ["c:n", "c:", "c:d", "c:x", "c:y", "c:d:e", "c:d:f", "c:d:g"]
    assert fit(frame).attributes_ == expected


@pytest.mark.parametrize("value", ["n", "", "d:e", "new"])
def test_new_values_do_not_take_the_weights_of_another_column(value):
    frame = pd.DataFrame(
        {"c": ["x", "y", "z"], "c:d": ["e", "f", "g"], "c:n": [1.0, 2.0, 3.0], "c:": [0.0, 1, 2]}
    )
    crf = fit(frame)
    new = pd.concat([frame.iloc[:1].assign(c=value), frame.iloc[1:]])
    nothing = pd.concat([frame.iloc[:1].assign(c=None), frame.iloc[1:]])
    assert crf.predict_proba(new).tolist() == crf.predict_proba(nothing).tolist()


def test_items_name_their_attributes_themselves():
    crf = LinearCRF(n_jobs=1).fit([[{"c": "x"}, {"c:x": 1.0}, {"c": {"x": 1.0}}]], [LABELS])
    assert crf.attributes_ == ["c:x"]
