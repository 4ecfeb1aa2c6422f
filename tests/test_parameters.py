import re

import numpy as np
import pandas as pd
import pytest

from hedgerow import TreeCRF
from hedgerow.parameters import (
    changed_parameters,
    check_choice,
    check_number,
    check_prefix,
    read_random_state,
)


@pytest.mark.parametrize("value", [0, 0.0, 1, 2.5, np.float32(0.5), np.int8(3), 10**20])
def test_numbers(value):
    check_number("strength", value, minimum=0)


@pytest.mark.parametrize("value", [1, 5, np.int64(1), np.uint8(200)])
def test_integers(value):
    check_number("count", value, minimum=1, integer=True)


@pytest.mark.parametrize(
    "value", [-1, -1e-300, np.nan, np.inf, -np.inf, "1", None, True, np.True_, 1j, [1], np.ones(1)]
)
def test_what_is_no_number(value):
    message = f"strength is {value!r}; expected a finite number of at least 0"
    with pytest.raises(ValueError, match=re.escape(message)):
        check_number("strength", value, minimum=0)


@pytest.mark.parametrize("value", [0, -3, 1.0, np.float64(2), False, "3", None, np.nan])
def test_what_is_no_integer(value):
    message = f"count is {value!r}; expected an integer of at least 1"
    with pytest.raises(ValueError, match=re.escape(message)):
        check_number("count", value, minimum=1, integer=True)


def test_choices():
    check_choice("colour", "red", ("red", "green", None))
    check_choice("colour", None, ("red", "green", None))
    for wrong in ("blue", "Red", 0, np.array([1, 2]), pd.NA):
        message = f"colour is {wrong!r}; expected 'red' or 'green' or None"
        with pytest.raises(ValueError, match=re.escape(message)):
            check_choice("colour", wrong, ("red", "green", None))


def test_changed_parameters():
    crf = TreeCRF(n_rounds=5, window=(0, 1), max_depth=6)
    assert changed_parameters(crf) == {"n_rounds": 5, "window": (0, 1)}


@pytest.mark.parametrize("wrong", [1.0, "1", -1, 2**32, [1], pd.NA, object])
def test_what_is_no_random_state(wrong):
    message = f"random_state is {wrong!r}; expected an integer from 0 to 2**32 - 1"
    with pytest.raises(ValueError, match=re.escape(message)):
        read_random_state(wrong)
    with pytest.raises(ValueError, match=re.escape(message)):
        TreeCRF(random_state=wrong).fit([[[1.0]]], [["a"]])


def test_prefixes():
    for right in (True, np.False_, "B", np.str_("B")):
        check_prefix("attributes", right)
    for wrong in ("", 1, None, pd.NA, np.ones(2)):
        message = f"attributes is {wrong!r}; expected True, False, or a prefix of attribute names"
        with pytest.raises(ValueError, match=re.escape(message)):
            check_prefix("attributes", wrong)
