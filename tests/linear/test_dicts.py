"""What the values of a dict mean."""

from functools import reduce

import numpy as np
import pytest

from hedgerow import LinearCRF
from reference.estimators import refuses

Y = [["a", "b"], ["b"]]
DEEP = reduce(lambda inner, _: {"a": inner}, range(200), {})


def fit(X, y=Y):
    return LinearCRF(max_iter=3, tol=0).fit(X, y)


def assert_same(first, second):
    """Both models have the same weights, up to rounding."""
    assert first.attributes_ == second.attributes_
    for table in ("weights", "transition_weights"):
        one, two = getattr(first, table)(), getattr(second, table)()
        np.testing.assert_allclose(one["weight"], two["weight"], atol=1e-9)


@pytest.mark.parametrize(
    ("position", "attributes"),
    [
        ({"n": 2.5}, ["n"]),
        ({"n": 3}, ["n"]),
        ({"n": True}, ["n"]),
        ({"word": "cat"}, ["word:cat"]),
        ({"word": ""}, ["word:"]),
        ({"word": "a:b"}, ["word:a:b"]),
        ({"suffixes": ["at", "t"]}, ["suffixes:at", "suffixes:t"]),
        ({"suffixes": ("at", "t")}, ["suffixes:at", "suffixes:t"]),
        ({"suffixes": {"t", "at"}}, ["suffixes:at", "suffixes:t"]),
        ({"suffixes": frozenset({"t", "at"})}, ["suffixes:at", "suffixes:t"]),
        ({"before": {"word": "the", "n": 2}}, ["before:word:the", "before:n"]),
        ({"a": {"b": {"c": ["d"]}}}, ["a:b:c:d"]),
        ({"mot": "été", "字": "漢"}, ["mot:été", "字:漢"]),
        (["plain", "strings"], ["plain", "strings"]),
        ({"set"}, ["set"]),
        ({}, []),
        ([], []),
        ({"none": [], "nothing": {}}, []),
    ],
)
def test_names_of_attributes(position, attributes):
    crf = fit([[position, {"other": 1}], [{"other": 1}]])
    assert crf.attributes_ == ["other", *sorted(attributes)]  # which occurs twice


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"word": "cat"}, {"word": np.str_("cat")}),
        ({"word": "cat"}, {"word": ["cat"]}),
        ({"word": "cat"}, {"word": {"cat": 1}}),
        ({"word": "cat"}, ["word:cat"]),
        ({"n": 2}, ["n", "n"]),
        ({"w:x": 3}, {"w": ["x", "x"], "w:x": 1}),
        ({"n": 0.5}, {"n": 0.5, "zero": 0, "false": False, "nothing": 0.0}),
    ],
)
def test_two_ways_to_say_the_same(one, other):
    rest = {"rest": 1, "n": -0.5}
    first, second = (LinearCRF().fit([[item, rest], [rest]], Y) for item in (one, other))
    assert_same(first, second)
    np.testing.assert_allclose(
        first.predict_proba([[one, rest]]), second.predict_proba([[other, rest]]), atol=1e-9
    )


def test_attributes_that_are_unknown_are_ignored():
    X = [[{"n": 1.5}, {"w": "x"}], [{"w": "y"}]]
    crf = fit(X)
    more = [[{"n": 1.5, "new": 7.0}, {"w": ["x", "unseen"]}], [{"w": "y", "more": {"of": "it"}}]]
    np.testing.assert_array_equal(crf.predict_proba(more), crf.predict_proba(X))
    assert crf.attributes_ == ["n", "w:x", "w:y"]


def test_positions_without_known_attributes_have_the_weights_of_the_labels_alone():
    crf = fit([[{"n": 1.5}, {"w": "x"}], [{"w": "y"}]])
    bias = crf.weights()["weight"][crf.weights()["attribute"] == "(bias)"]
    expected = np.exp(bias) / np.exp(bias).sum()
    for item in ({}, {"unknown": 1}, [], {"n": 0}):
        np.testing.assert_allclose(crf.predict_proba([[item]]), [expected], rtol=1e-12)


def test_values_multiply_weights():
    crf = fit([[{"n": 1.5}, {"n": -1.0}], [{"n": 0.5}]])
    table = crf.weights()
    weight, bias = (
        dict(zip(table["label"][rows], table["weight"][rows], strict=True))
        for rows in (table["attribute"] == "n", table["attribute"] == "(bias)")
    )
    for value in (-3.0, 0.25, 10.0):
        prob = crf.predict_proba([[{"n": value}]])[0]
        scores = {label: bias[label] + value * weight.get(label, 0.0) for label in "ab"}
        assert np.log(prob[0] / prob[1]) == pytest.approx(scores["a"] - scores["b"])


@pytest.mark.parametrize(
    ("position", "message"),
    [
        ({"n": None}, "has a value of type NoneType for 'n'; expected a number up to 1e100, a"),
        ({"n": object()}, "has a value of type object for 'n'; expected a number"),
        ({"n": 10**400}, "has a value of type int for 'n'; expected a number up to 1e100"),
        ({"n": -1e200}, "has a number beyond 1e100 as the value"),
        ({"n": b"bytes"}, "has a value of type bytes for 'n'; expected a number"),
        ({"a": {"b": None}}, "has a value of type NoneType for 'a:b'; expected a number"),
        ({"n": np.nan}, "has NaN as the value of 'n'; leave it out where it is missing"),
        ({"n": np.float32("nan")}, "has NaN as the value of 'n'; leave it out where it is missing"),
        ({"n": np.inf}, "has an infinite number as the value of 'n'"),
        ({"n": -np.inf}, "has an infinite number as the value of 'n'"),
        ({"a": {"b": np.nan}}, "has NaN as the value of 'a:b'"),
        ({1: "x"}, "has a key of type int; attribute names must be strings"),
        ({"a": {None: 1}}, "has a key of type NoneType; attribute names must be strings"),
        (["x", 1], "has a value of type int in a list of attributes; expected strings"),
        ({"a": ["x", None]}, "has a value of type NoneType in a list of attributes; expected str"),
        ({"a": {"x", 2}}, "has a value of type int in a list of attributes; expected strings"),
        (
            {"a", None, 1j, b"x", 2},
            "has a value of type NoneType in a list of attributes; expected",
        ),
        ({"word": "\ud800"}, "has a string that is not valid"),
        ({"\ud800": 1}, "has a string that is not valid"),
        (["\ud800"], "has a string that is not valid"),
        (DEEP, "nests dicts deeper than 100 levels"),
        (None, "is of type NoneType; expected a dict, or a list of attribute strings"),
        (5, "is of type int; expected a dict, or a list of attribute strings"),
        ("word", "is of type str; expected a dict, or a list of attribute strings"),
    ],
)
def test_wrong_values_are_errors_that_name_the_place(position, message):
    good = [[{"n": 1}, {"n": 2}], [{"n": 3}]]
    bad = [[{"n": 1}], [{"n": 2}, position]]
    message, labels, crf = f"X[1][1] {message}", [["a"], ["b", "a"]], fit(good)
    refuses(ValueError, message, fit, bad, labels)
    refuses(ValueError, message, crf.predict, bad)
    refuses(ValueError, message, crf.fit, good, Y, eval_set=(bad, labels))


def test_the_order_of_keys_changes_nothing():
    one = fit([[{"p": 1, "q": 2}, {"q": 1}], [{"p": 1}]])
    two = fit([[{"q": 2, "p": 1}, {"q": 1}], [{"p": 1}]])
    assert one.attributes_ == two.attributes_ == ["p", "q"]
    assert one.loss_ == two.loss_
    X = [[{"q": 1.0, "p": 3.0}, {}]]
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
