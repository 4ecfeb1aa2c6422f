"""Attributes of columns are never shared by two columns."""

import pandas as pd
import pytest

from hedgerow import LinearCRF
from reference.estimators import refuses

LABELS = ["A", "B", "A"]
FRAME = pd.DataFrame(
    {"c": ["x", "y", "d"], "c:d": ["e", "f", "g"], "c:n": [1.0, 2.0, 3.0], "c:": [0.0, 1, 2]}
)


def fit(frame):
    return LinearCRF(n_jobs=1).fit(frame, LABELS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"c": ["x", "y", "z"], "c:x": [1.0, 2.0, 3.0]},
            "column 'c' has the value 'x', whose attribute 'c:x' can also come from column 'c:x', "
            "so that both columns would share a weight; rename one of them",
        ),
        (
            {"a:b": ["c", "d", "e"], "a": ["u", "b:c", "w"]},
            "column 'a' has the value 'b:c', whose attribute 'a:b:c' can also come from column "
            "'a:b', so that",
        ),
        (  # what 'a:b' has elsewhere is not known here
            {"a:b": ["c", "d", "e"], "a": ["u", "b:f", "w"]},
            "column 'a' has the value 'b:f', whose attribute 'a:b:f' can also come from column",
        ),
    ],
)
def test_columns_whose_attributes_would_be_one(columns, message):
    refuses(ValueError, message, fit, pd.DataFrame(columns))


def test_names_that_only_look_alike():
    expected = ["c:n", "c:", "c:d", "c:x", "c:y", "c:d:e", "c:d:f", "c:d:g"]
    assert fit(FRAME).attributes_ == expected


@pytest.mark.parametrize("value", ["n", "", "d:e", "new"])
def test_new_values_do_not_take_the_weights_of_another_column(value):
    crf = fit(FRAME)
    new, nothing = (
        crf.predict_proba(FRAME.assign(c=[first, "y", "d"])).tolist() for first in (value, None)
    )
    assert new == nothing


def test_items_name_their_attributes_themselves():
    crf = LinearCRF(n_jobs=1).fit([[{"c": "x"}, {"c:x": 1.0}, {"c": {"x": 1.0}}]], [LABELS])
    assert crf.attributes_ == ["c:x"]
