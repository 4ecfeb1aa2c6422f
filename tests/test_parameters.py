"""Parameters: what is refused, and the plain values that what is accepted stands for."""

import enum
from collections import Counter, OrderedDict, deque
from fractions import Fraction
from functools import partial
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from hedgerow import Checkpoint, TreeCRF, load
from hedgerow.objectives import Pointwise
from hedgerow.parameters import (
    changed_parameters,
    check_choice,
    check_number,
    check_prefix,
    plain_parameters,
    plain_value,
    read_random_state,
)
from reference.estimators import refuses
from reference.trainings import X, Y, saved


def check_colour(name, value):
    check_choice(name, value, ("red", "green", None))


@pytest.mark.parametrize(
    ("check", "right", "wrong", "expected"),
    [
        (
            partial(check_number, minimum=0),
            [0, 0.0, 1, 2.5, np.float32(0.5), np.int8(3), 10**20],
            [-1, -1e-300, np.nan, np.inf, -np.inf, "1", None, True, np.True_, 1j, [1], np.ones(1)],
            "a finite number of at least 0",
        ),
        (
            partial(check_number, minimum=1, integer=True),
            [1, 5, np.int64(1), np.uint8(200)],
            [0, -3, 1.0, np.float64(2), False, "3", None, np.nan],
            "an integer of at least 1",
        ),
        (
            partial(check_number, minimum=2, maximum=9, integer=True),
            [2, 9],
            [1, 10, 2.0],
            "an integer from 2 to 9",
        ),
        (
            partial(check_number, above=0),
            [1e-300, 1, 10**20],
            [-1, 0, -0.0, np.inf, np.nan, None],
            "a finite number greater than 0",
        ),
        (
            partial(check_number, above=0, maximum=1e6),
            [0.5, 1, 1e6, np.float16(0.5)],
            [-1, 0, 1e7, np.inf, np.nan, None, True],
            "a number greater than 0 and at most 1e+06",
        ),
        (
            check_colour,
            ["red", None],
            ["blue", "Red", 0, ["red"], np.array(["red", "red"]), pd.NA],
            "'red', 'green' or None",
        ),
        (
            check_prefix,
            [True, False, np.True_, "B"],
            ["", 2, None, pd.NA, np.array([True, False])],
            "True, False, or a prefix",
        ),
    ],
    ids=["number", "integer", "range", "above", "share", "choice", "prefix"],
)
def test_checks(check, right, wrong, expected):
    for value in right:
        check("it", value)
    for value in wrong:
        refuses(ValueError, f"it is {value!r}; expected {expected}", check, "it", value)


@pytest.mark.parametrize("wrong", [1.0, "1", -1, 2**32, [1], pd.NA, object])
def test_what_is_no_random_state(wrong):
    message = f"random_state is {wrong!r}; expected an integer from 0 to 2**32 - 1"
    refuses(ValueError, message, read_random_state, wrong)
    refuses(ValueError, message, TreeCRF(random_state=wrong).fit, [[[1.0]]], [["a"]])


def test_changed_parameters():
    crf = TreeCRF(n_rounds=5, window=(0, 1), max_bins=np.int64(255), start_labels={"b", "a"})
    assert changed_parameters(crf) == {"n_rounds": 5, "window": [0, 1], "start_labels": ["a", "b"]}
    assert repr(changed_parameters(TreeCRF(objective=Pointwise()))) == "{'objective': Pointwise()}"


# Plain values.


class Label(str, enum.Enum):
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


class Pairs:
    """Something that can be read again and again."""

    def __iter__(self):
        return iter([("a", "b")])


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        *((value, value) for value in (None, True, 3, 2.5, "text", 10**30)),
        (np.True_, True),
        (np.uint8(3), 3),
        (np.float16(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.str_("a"), "a"),
        (np.array("a"), "a"),
        (np.array(7), 7),
        (np.ma.array(["b", "a"], mask=[False, True]), ["b", None]),
        (Label.A, "a"),
        (Number.ONE, 1),
        (Fraction(1, 4), 0.25),
        ([], []),
        ((), []),
        (set(), []),
        ({}, {}),
        ({"b", "a"}, ["a", "b"]),
        ({10, 9, -1}, [-1, 9, 10]),
        (
            frozenset({("b", "a"), ("a", "b", "c"), ("a", "b")}),
            [["a", "b"], ["a", "b", "c"], ["b", "a"]],
        ),
        ({True, "a", 7, None, 0.5}, [None, True, 0.5, 7, "a"]),
        ({np.str_("a"), "b"}, ["a", "b"]),
        ({"b": 1, "a": 2}.keys(), ["a", "b"]),
        ({1: "b", 0: "a"}.values(), ["b", "a"]),
        ({"b": 1, "a": 2}.items(), [["a", 2], ["b", 1]]),
        (range(3), [0, 1, 2]),
        (deque("ba"), ["b", "a"]),
        (Pairs(), [["a", "b"]]),
        (np.array([["b", "a"], ["c", "c"]]), [["b", "a"], ["c", "c"]]),
        (np.array([True, False]), [True, False]),
        ([("a", np.str_("b")), np.array(["c"])], [["a", "b"], ["c"]]),
        (pd.Series(["b", "a"]), ["b", "a"]),
        (pd.Series([3, 1], dtype="Int64"), [3, 1]),
        (pd.Series(["b", "a"], dtype="category"), ["b", "a"]),
        (pd.Series([("b", "a"), ["c", "d"]]), [["b", "a"], ["c", "d"]]),
        (pd.Index(["b", "a"]), ["b", "a"]),
        (pd.MultiIndex.from_tuples([("b", "a")]), [["b", "a"]]),
        (pl.Series(["b", "a"]), ["b", "a"]),
        (pl.Series([["b", "a"], ["c"]]), [["b", "a"], ["c"]]),
        (pa.chunked_array([["b"], ["a"]]), ["b", "a"]),
        ({"b": np.float32(2), "a": 1}, {"a": 1, "b": 2.0}),
        (OrderedDict([(np.int64(2), 1), (1, 0.5)]), {1: 0.5, 2: 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Counter("aab"), {"a": 2, "b": 1}),
    ],
)
def test_plain_values(value, plain):
    found = plain_value("it", value)
    assert repr(found) == repr(plain)  # of the same types, and dicts in the same order
    assert repr(plain_value("it", found)) == repr(plain)


ONCE = r"which can be read only once, and fit may be called again; expected a list"
EXPECTED = r"expected numbers, strings, bools or None, or a list, tuple, set, array, Series or dict"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((label for label in "ab"), f"it is of type generator, {ONCE}"),
        (iter(["a"]), f"it is of type list_iterator, {ONCE}"),
        (map(str, "ab"), f"it is of type map, {ONCE}"),
        ([("a", "b"), zip("ab", "ab", strict=True)], rf"it\[1\] is of type zip, {ONCE}"),
        (b"ab", f"it is of type bytes; {EXPECTED}"),
        (bytearray(b"ab"), f"it is of type bytearray; {EXPECTED}"),
        (1j, f"it is of type complex; {EXPECTED}"),
        (print, f"it is of type builtin_function_or_method; {EXPECTED}"),
        (Pairs, f"it is of type type; {EXPECTED}"),
        (np.datetime64(1, "s"), f"it is of type datetime64; {EXPECTED}"),
        (["a", object()], rf"it\[1\] is of type object; {EXPECTED}"),
        ([["a", b"b"]], rf"it\[0\]\[1\] is of type bytes; {EXPECTED}"),
        ({b"x", 1j, "a"}, f"an element of it is of type complex; {EXPECTED}"),
        (pd.DataFrame({"a": [1]}), f"it is of type DataFrame; {EXPECTED}"),
        (pl.LazyFrame({"a": [1]}), f"it is of type LazyFrame; {EXPECTED}"),
        ([{"a", "b"}], r"it\[0\] is of type set, whose elements have no order; expected a tuple"),
        ({frozenset("ab")}, r"an element of it is of type frozenset, whose elements have no order"),
        ([{"a": 1}], r"it\[0\] is of type dict, whose elements have no order; expected a tuple"),
        (
            {("a", "b"): 1},
            r"it has the key \('a', 'b'\) of type tuple; expected a string, a number",
        ),
        ({b"x": 1, 1j: 2, "a": 1}, r"it has the key 1j of type complex; expected a string"),
        ({"a": print}, rf"it\['a'\] is of type builtin_function_or_method; {EXPECTED}"),
    ],
)
def test_what_has_no_plain_value(value, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        plain_value("it", value)


def test_objects_among_parameters():
    crf = TreeCRF(
        objective=Pointwise(), callbacks=[print], random_state=np.random.RandomState(0), n_rounds=3
    )
    plain = plain_parameters(crf)
    assert plain == TreeCRF(n_rounds=3).get_params() | {"objective": None}
    assert plain_parameters(TreeCRF(random_state=np.int64(3)))["random_state"] == 3


# In a training.

FORMS = {
    "list": lambda values: values,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "keys": lambda values: dict.fromkeys(values).keys(),
    "Series": pd.Series,
    "object array": lambda values: pd.Series(values).to_numpy(),
    "Index": lambda values: pd.Index(values, tupleize_cols=False),
    "polars": lambda values: pl.Series([list(v) if isinstance(v, tuple) else v for v in values]),
    "deque": deque,
}
PARAMETERS = {
    "label_patterns": [(0, 0), (0, 1), (1, 2, 1), (2, 0)],
    "forbidden": [(2, 2)],
    "start_labels": [0, 1, 2],
    "end_labels": [0, 1, 2],
}
LABELS = [[*(label % 2 for label in labels[1:]), 2] for labels in Y]  # no 2 comes after a 2


def test_every_form_of_parameters_gives_the_same_file(make, tmp_path):
    files, checkpoint = {}, Checkpoint(tmp_path / "kept")
    for name, form in FORMS.items():
        parameters = {key: form(values) for key, values in PARAMETERS.items()}
        crf = make(**parameters)
        assert all(getattr(crf, key) is value for key, value in parameters.items())
        files[name] = saved(crf.fit(X, LABELS, checkpoint=checkpoint), tmp_path)
        assert all(getattr(crf, key) is value for key, value in parameters.items())
        loaded = load(files[name])
        assert loaded.get_params() == plain_parameters(crf)
        # Python cannot copy the keys of a dict, and scikit-learn cannot clone what it cannot copy.
        for other in (crf, clone(loaded), *([] if name == "keys" else [clone(crf)])):
            assert saved(other.fit(X, LABELS), tmp_path) == files[name]
        with pytest.raises(ValueError, match=r"2 after 2, which the parameter 'forbidden' forbids"):
            clone(loaded).fit([*X, np.zeros((2, 3))], [*LABELS, [2, 2]])
    assert len(set(files.values())) == 1


@pytest.mark.parametrize("name", ["label_patterns", "allowed", "forbidden", "start_labels"])
def test_parameters_without_plain_values_are_refused(make, name):
    for wrong, message in (
        (iter([(0, 1)]), f"{name} is of type list_iterator, {ONCE}"),
        ([(0, object())], rf"{name}\[0\]\[1\] is of type object; {EXPECTED}"),
        ([{0, 1}], rf"{name}\[0\] is of type set, whose elements have no order"),
        ({(0, 1): 1}, rf"{name} has the key \(0, 1\) of type tuple"),
    ):
        with pytest.raises(TypeError, match=message):
            make(**{name: wrong}).fit(X, Y)


def test_nothing_is_not_the_same_as_none(make, tmp_path):
    none, nothing = make().fit(X, Y), make(label_patterns=[], forbidden=()).fit(X, Y)
    assert len(none.label_patterns_) == 9
    assert nothing.label_patterns_ == []
    loaded = load(saved(nothing, tmp_path))
    assert (loaded.label_patterns, loaded.forbidden, loaded.allowed) == ([], [], None)
    assert saved(clone(loaded).fit(X, Y), tmp_path) == saved(nothing, tmp_path)
    with pytest.raises(ValueError, match=r"allowed is empty, which forbids every pair of labels"):
        make(allowed=pd.Series([], dtype=object)).fit(X, Y)


@pytest.mark.parametrize("form", [dict, OrderedDict, MappingProxyType, pd.Series])
def test_forms_of_class_weight(make, form, tmp_path):
    crf = make(class_weight=form({np.int64(2): np.float32(2), 0: 1}))
    if form is pd.Series:
        with pytest.raises(ValueError, match=r"class_weight is of type Series; expected a dict"):
            crf.fit(X, Y)
        return
    file = saved(crf.fit(X, Y), tmp_path)
    assert file == saved(make(class_weight={0: 1, 2: 2.0}).fit(X, Y), tmp_path)
    assert load(file).class_weight == {0: 1, 2: 2.0}


def test_a_fraction_is_kept(make, tmp_path):
    crf = make(reg_lambda=Fraction(1, 4)).fit(X, Y)
    assert load(saved(crf, tmp_path)).reg_lambda == 0.25
