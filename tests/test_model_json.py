"""A model as JSON: the program in the guide computes the scores of the model."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from hedgerow import LinearCRF, ModelFileError, TreeCRF, load
from hedgerow.fitted import read_inputs
from hedgerow.potentials import Potential
from hedgerow.raw_data import RawData
from reference.estimators import small
from reference.pages import ROOT, read_blocks
from reference.tree_tables import KINDS, make_sequences

Y = [["a", "b", "a"], ["b", "a", "a", "b"]]
WORDS = [[{"w": "x", "n": 0.5}, {"w": "y"}, {"n": -2}], [{"w": "y"}, {}, {"w": "x"}, {"n": 1}]]


@pytest.fixture(scope="module")
def guide():
    """The functions of the guide."""
    names = {}
    for block in read_blocks(ROOT / "docs" / "guides" / "json.md"):
        if block.language == "python" and "def score" in block.text:
            exec(block.text, names)
    return names


def to_rows(x):
    """One sequence as dicts by column, of plain values."""
    if isinstance(x, list):
        return x
    if scipy.sparse.issparse(x):  # where NaN is missing, and what is not there is 0
        return pd.DataFrame(x.toarray()).rename(columns="x{}".format).to_dict(orient="records")
    frame = x if isinstance(x, pd.DataFrame) else pd.DataFrame(x).rename(columns="x{}".format)
    return frame.astype(object).where(frame.notna(), None).to_dict(orient="records")


def check_scores(guide, crf, x):
    model, rows = json.loads(crf.to_json()), to_rows(x)
    (part,) = crf.model_.scores(read_inputs(crf, RawData([x])).sequences, 1)
    found = [guide["label_scores"](model, rows, t) for t in range(len(rows))]
    np.testing.assert_allclose(found, part.nodes, rtol=0, atol=1e-12)
    rng = np.random.default_rng(0)
    one, other = rng.choice(crf.classes_, (2, len(rows))).tolist()
    expected = crf.log_likelihood([x], [one]) - crf.log_likelihood([x], [other])
    difference = guide["score"](model, rows, one) - guide["score"](model, rows, other)
    assert difference == pytest.approx(expected[0], abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_trees(guide, kind):
    X, y = make_sequences(kind)
    crf = TreeCRF(n_rounds=3, max_depth=4, min_child_weight=0.1, window=(2, 1), n_jobs=1)
    crf.fit(X[:-10], y[:-10])
    for x in X[-10:-7]:
        check_scores(guide, crf, x)
    kinds = {feature["kind"] for feature in json.loads(crf.to_json())["features"]}
    expected = {"frames": {"number", "category"}, "large text": {"number", "indicator"}}
    assert kinds == expected.get(kind, {"attribute"})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"order": 2},
        {"transition_attributes": True},
        {"pattern_attributes": True},
        {"pattern_attributes": "w", "order": 2},
    ],
)
def test_linear_weights(guide, more):
    crf = small(LinearCRF, **more).fit(WORDS, Y)
    for x in WORDS:
        check_scores(guide, crf, x)
    document = json.loads(crf.to_json())
    assert ("pair_attributes" in document) == ("transition_attributes" in more)
    assert ("pattern_attributes" in document) == ("pattern_attributes" in more)


def test_columns_of_a_linear_model(guide):
    X = [
        pd.DataFrame({"n": [1.0, 2, -1], "w": ["x", "y", None]}),
        pd.DataFrame({"n": [0.0] * 4, "w": list("yxxz")}),
    ]
    crf = small(LinearCRF).fit(X, Y)
    check_scores(guide, crf, X[0])
    assert json.loads(crf.to_json())["columns"] == [
        {"name": "n", "kind": "number"},
        {"name": "w", "kind": "text"},
    ]


def test_what_a_document_says(estimator, tmp_path):
    crf = small(estimator, forbidden=[("b", "b")], end_labels=["a", "b"], class_weight={"a": 2.0})
    crf.fit(WORDS, Y)
    text = crf.to_json()
    assert crf.to_json(tmp_path / "model.json") is None
    assert (tmp_path / "model.json").read_text(encoding="utf8") == text
    document = json.loads(text)
    assert (document["format"], document["version"]) == ("hedgerow-model", 1)
    assert (document["model"], document["labels"]) == (type(crf).__name__, ["a", "b"])
    assert document["decode"] == crf.decode_
    assert document["columns"] is None
    assert document["constraints"] == {
        "start": [0, 1],
        "end": [0, 1],
        "pairs": [[0, 0], [0, 1], [1, 0]],
    }
    weights = [pattern["weight"] for pattern in document["patterns"]]
    assert weights == crf.patterns()["weight"].tolist()
    assert document["parameters"]["class_weight"] == {"pairs": [["a", 2.0]]}


def test_weights_of_zero_are_left_out():
    crf = LinearCRF(reg_alpha=1e6, max_iter=5, n_jobs=1).fit(WORDS, Y)
    assert json.loads(crf.to_json())["attributes"] == {}


def test_a_split_by_what_is_missing(guide):
    x = np.array([[1.0], [np.nan], [1.0], [np.nan]])
    crf = small(TreeCRF).fit([x], [["a", "b", "a", "b"]])
    check_scores(guide, crf, x)
    nodes = json.loads(crf.to_json())["trees"][0]["nodes"]
    assert nodes[0]["present"] != nodes[0]["missing"]


def test_labels_that_are_no_text_and_odd_names():
    crf = small(LinearCRF).fit([[["é"], ['"\\']]], [[True, False]])
    assert json.loads(crf.to_json())["labels"] == [False, True]
    assert set(json.loads(crf.to_json())["attributes"]) == {"é", '"\\'}
    assert crf.to_json().isascii()


def test_a_potential_without_a_form_in_json(estimator):
    class Own(Potential):
        pass

    class WithOwn(estimator):
        def given_potentials(self):
            return (Own(),)

    crf = WithOwn(n_jobs=1).set_params(**small(estimator).get_params()).fit(WORDS, Y)
    with pytest.raises(NotImplementedError, match="Own cannot be written as JSON: it lacks the me"):
        crf.to_json()


def test_load_does_not_read_json(estimator, tmp_path):
    small(estimator).fit(WORDS, Y).to_json(tmp_path / "model.json")
    with pytest.raises(ModelFileError, match="the file is a model as JSON, which hedgerow cannot"):
        load(tmp_path / "model.json")
