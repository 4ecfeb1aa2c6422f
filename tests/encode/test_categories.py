"""Categories: equal numbers are one category; a column of another type gives a warning."""

import decimal
import fractions
import re
import warnings

import numpy as np
import pytest

from hedgerow.encode.categories import (
    category_of,
    kind_of_values,
    number_categories,
    other_spellings,
)
from hedgerow.sequences import Categorical


@pytest.mark.parametrize(
    ("value", "category"),
    [
        (1, "1"),
        (1.0, "1.0"),
        (-0.0, "0.0"),
        (np.float32("-0"), "0.0"),
        (np.float32(0.1), "0.1"),
        (np.float32(1e10), "10000000000.0"),
        (1e16, "1e+16"),
        (decimal.Decimal(1), "1"),
        (decimal.Decimal("1.0"), "1.0"),
        (decimal.Decimal("1.00"), "1"),
        (decimal.Decimal("-0"), "0"),
        (decimal.Decimal("1E+2"), "100"),
        (decimal.Decimal("1.50"), "1.5"),
        (decimal.Decimal("0.1"), "0.1"),  # no float equals it
        (fractions.Fraction(1, 2), "0.5"),
        (float("inf"), "inf"),
        (True, "True"),
        ("1.00", "1.00"),
    ],
)
def test_text_of_categories(value, category):
    assert category_of(value) == category


@pytest.mark.parametrize(
    ("value", "spellings"),
    [
        (1, ("1.0",)),
        (1.0, ("1",)),
        (np.int64(-3), ("-3.0",)),
        (np.float32(2), ("2",)),
        (decimal.Decimal("1.00"), ("1.00", "1.0")),
        (-0.0, ("-0.0", "0")),
        (decimal.Decimal("1.50"), ("1.50",)),
        (1.5, ()),
        (2**53 + 1, ()),
        (1e16, ("10000000000000000",)),
        (10**400, ()),
        (float("inf"), ()),
        (True, ()),
        (np.True_, ()),
        ("1", ()),
        (None, ()),
    ],
)
def test_spellings(value, spellings):
    assert other_spellings(value) == spellings


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, decimal.Decimal(3)], "numbers"),
        ([True, np.False_], "bools"),
        ([True, 1], "text"),
        (["1", 1], "text"),
        ([], "text"),
    ],
)
def test_kinds(values, kind):
    assert kind_of_values(values) == kind


def find(values, known):
    """Numbers of values among known categories, and what is warned of."""
    categories = sorted(map(category_of, values))
    spellings = {category_of(value): other_spellings(value) for value in values}
    column = Categorical("c", np.zeros(0, np.int32), categories, kind_of_values(values), spellings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        places = {category: place for place, category in enumerate(known)}
        numbers = number_categories(column, lambda name: places.get(name, -1), lambda: known)
    return numbers.tolist(), [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("values", "known", "numbers"),
    [
        ([1.0, 2.0, 3.0], ["1", "2"], [0, 1, -1, -1]),
        ([1, 2], ["1.0", "2.0"], [0, 1, -1]),
        (["1", "2"], ["1", "2"], [0, 1, -1]),
        ([decimal.Decimal("2.00")], ["1", "2"], [1, -1]),
        ([decimal.Decimal("2.00")], ["1.00", "2.00"], [1, -1]),  # of an older model file
        ([1.0], ["1", "1.0"], [1, -1]),  # what is written alike comes first
        ([True], ["False", "True"], [1, -1]),
    ],
)
def test_equal_numbers_are_one_category(values, known, numbers):
    assert find(values, known) == (numbers, [])


WORDS = ["0", "1", "2", "3", "4", "apple"]


@pytest.mark.parametrize(
    ("values", "known"),
    [
        ([7, 8], ["1", "2"]),
        (["7"], ["1", "2"]),
        (["1987"], WORDS),
        (["pear"], WORDS),
        (["True"], WORDS),
        ([False], ["True"]),
        (["False"], ["True"]),
        ([1.5], ["1", "2"]),
        ([], ["1"]),
        (["x"], []),
    ],
)
def test_new_values_of_the_same_kind_are_unknown(values, known):
    assert find(values, known) == ([-1] * (len(values) + 1), [])


@pytest.mark.parametrize(
    ("values", "known"),
    [
        ([7, 8], WORDS),
        ([1, 0], ["False", "True"]),
        ([True, False], ["0", "1"]),
        (["true", "false"], ["False", "True"]),
        (["red"], ["1", "2"]),
        (["1.0"], ["1", "2"]),
        ([1067], ["01067", "10115"]),
        ([True], WORDS),
    ],
)
def test_values_of_another_kind_are_warned_of(values, known):
    numbers, messages = find(values, known)
    assert set(numbers) == {-1}
    example, shown = sorted(map(str, values))[0], ", ".join(map(repr, known[:5]))
    message = (
        f"column 'c' has only categories that did not occur in training, such as {example!r}, so "
        f"all of them are treated as missing; the model was fitted on {shown}"
    )
    assert len(messages) == 1
    assert re.match(re.escape(message), messages[0])
    assert messages[0].endswith("; use the same values as in training")
    assert find([*values, known[0]], known)[1] == []  # one of them is known
