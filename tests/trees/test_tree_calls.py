"""Invalid calls of the tree kernels are refused with a clear error."""

import numpy as np
import pytest

from hedgerow import _core

INT32, UINT8, FLOAT32 = np.int32, np.uint8, np.float32

# Three positions of two sequences; two dense columns of 3 and 2 bins, two attributes of 2 and 4.
BINS = {
    "dense": np.array([[1, 2], [3, 0], [2, 1]], UINT8),
    "entry_offsets": np.array([0, 2, 2, 3]),
    "attributes": np.array([0, 1, 1], INT32),
    "attribute_bins": np.array([2, 4, 0], UINT8),
    "n_bins": np.array([3, 2, 2, 4], INT32),
    "default_bins": np.array([1, 2], UINT8),
    "categorical": np.zeros(4, UINT8),
    "offsets": np.array([0, 1, 3]),
}
NO_ENTRIES = {"entry_offsets": None, "attributes": None, "attribute_bins": None}
SWAPPED = {"attributes": np.array([1, 0, 1], INT32), "attribute_bins": np.array([4, 2, 0], UINT8)}
REPEATED = {"attributes": np.array([1, 1, 1], INT32), "attribute_bins": np.array([4, 3, 0], UINT8)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offsets": np.array([0, 1])}, "offsets must run from 0 to the number of positions"),
        ({"offsets": np.array([1, 3])}, "offsets must run from 0 to the number of positions"),
        ({"offsets": np.empty(0, np.int64)}, "offsets must run from 0 to the number of"),
        ({"offsets": np.array([0, 2, 1, 3])}, "offsets must not decrease"),
        ({"parents": np.zeros(2, INT32)}, "parents must have an entry for each position"),
        ({"parents": np.array([-1, 0, 3], INT32)}, "a parent lies outside its sequence"),
        ({"parents": np.array([-1, -2, 0], INT32)}, "a parent lies outside its sequence"),
        ({"n_bins": np.array([3, 2, 2], INT32)}, "n_bins and categorical must have an entry"),
        ({"categorical": np.zeros(3, UINT8)}, "n_bins and categorical must have an entry"),
        ({"default_bins": np.array([1], UINT8)}, "n_bins and categorical must have an entry"),
        (NO_ENTRIES, "attributes need entry_offsets, attributes and attribute_bins"),
        ({"entry_offsets": None}, "attributes need entry_offsets, attributes and attribute_bins"),
        ({"attributes": None}, "attributes need entry_offsets, attributes and attribute_bins"),
        ({"attribute_bins": None}, "attributes need entry_offsets, attributes and attribute_bins"),
        ({"n_bins": np.array([3, 0, 2, 4], INT32)}, "a column needs 1 to 255 bins"),
        ({"n_bins": np.array([3, 2, 2, 256], INT32)}, "a column needs 1 to 255 bins"),
        ({"default_bins": np.array([3, 2], UINT8)}, "a default bin is out of range"),
        ({"dense": np.array([[1, 3], [3, 0], [2, 1]], UINT8)}, "a bin is larger than its column's"),
        ({"entry_offsets": np.array([0, 2, 3])}, "entries do not fit the positions"),
        ({"attribute_bins": np.array([2, 4], UINT8)}, "entries do not fit the positions"),
        ({"entry_offsets": np.array([1, 2, 2, 3])}, "entry offsets must run from 0 to the"),
        ({"entry_offsets": np.array([0, 2, 2, 2])}, "entry offsets must run from 0 to the"),
        ({"entry_offsets": np.array([0, 2, 1, 3])}, "entry offsets must not decrease"),
        ({"entry_offsets": np.array([0, 9, 9, 3])}, "entry offsets must not decrease"),
        ({"entry_offsets": np.array([0, -(2**62), 0, 3])}, "entry offsets must not decrease"),
        ({"attributes": np.array([0, 2, 1], INT32)}, "an attribute is out of range"),
        ({"attributes": np.array([-1, 1, 1], INT32)}, "an attribute is out of range"),
        (SWAPPED, "attributes must be in ascending order within a position"),
        (REPEATED, "attributes must be in ascending order within a position"),
        ({"attribute_bins": np.array([3, 4, 0], UINT8)}, "a bin that is out of range, or the def"),
        ({"attribute_bins": np.array([1, 4, 0], UINT8)}, "a bin that is out of range, or the def"),
    ],
)
def test_bins(changes, message):
    _core.Bins(**BINS)
    with pytest.raises(ValueError, match=message):
        _core.Bins(**(BINS | changes))


@pytest.mark.parametrize(("before", "after"), [(-1, 0), (0, -1), (256, 0), (0, 256)])
def test_windows(before, after):
    with pytest.raises(ValueError, match="a window reaches 0 to 255 positions to either side"):
        _core.TreeData(_core.Bins(**BINS), before, after)


@pytest.mark.parametrize("ancestors", [-1, 256])
def test_ancestors(ancestors):
    with pytest.raises(ValueError, match="ancestors must be from 0 to 255"):
        _core.TreeData(_core.Bins(**BINS), 0, 0, ancestors)


EXAMPLES = {
    "gradients": np.full((3, 2), 0.5),
    "curvatures": np.ones((3, 2), FLOAT32),
    "trim": 0.0,
    "scales": np.ones(3),
    "selected": np.ones(3, UINT8),
    "negative_ratio": 1.0,
    "codes": np.array([0, 1, -1], INT32),
    "key": 0,
    "n_threads": 1,
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"curvatures": np.ones((2, 2), FLOAT32)},
            "curvatures must have an entry for each position",
        ),
        (
            {"curvatures": np.ones((3, 3), FLOAT32)},
            "curvatures must have an entry for each position",
        ),
        ({"scales": np.ones(4)}, "scales must have an entry for each position"),
        ({"selected": np.ones(4, UINT8)}, "selected must have an entry for each position"),
        ({"share": 0.0}, "a share of the examples must be above 0"),
        ({"codes": None}, "a negative ratio needs codes"),
        ({"codes": np.zeros(2, INT32)}, "codes must have an entry for each position"),
        ({"codes": np.array([0, 2, 0], INT32)}, "a label code is out of range"),
        ({"observed": np.array([0, 2, 0], INT32)}, "a label code is out of range"),
    ],
)
def test_examples(changes, message):
    _core.Examples(**EXAMPLES)
    with pytest.raises(ValueError, match=message):
        _core.Examples(**(EXAMPLES | changes))


@pytest.mark.parametrize("name", ["gradients", "curvatures"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_derivatives_that_are_not_finite(name, value):
    changes = {name: EXAMPLES[name].copy()}
    changes[name][1, 1] = value
    data = _core.TreeData(_core.Bins(**BINS), 0, 0)
    with pytest.raises(ValueError, match="derivatives must be finite, and curvatures not negative"):
        grow(data, _core.Examples(**(EXAMPLES | changes)))


LISTS = {
    "offsets": np.array([0, 1, 3]),
    "positions": np.array([0, 0, 2], INT32),
    "gradients": np.ones(3, FLOAT32),
    "curvatures": np.ones(3, FLOAT32),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offsets": np.array([0, 1])}, "offsets must run from 0 to the number of positions"),
        ({"offsets": np.array([0, 4, 3])}, "offsets must not decrease"),
        ({"gradients": np.ones(2, FLOAT32)}, "an entry for each position"),
        ({"curvatures": np.ones(2, FLOAT32)}, "an entry for each position"),
        ({"positions": np.array([0, -1, 2], INT32)}, "a position is negative"),
        ({"positions": np.array([0, 2, 2], INT32)}, "examples must be in ascending order"),
        ({"positions": np.array([0, 0, 3], INT32)}, "an example has no position"),
        ({"gradients": np.array([0, np.nan, 2], FLOAT32)}, "derivatives must be finite"),
        ({"gradients": np.array([0, np.inf, 2], FLOAT32)}, "derivatives must be finite"),
        ({"curvatures": np.array([0, np.inf, 2], FLOAT32)}, "derivatives must be finite"),
        ({"curvatures": np.array([0, -1, 2], FLOAT32)}, "and curvatures not negative"),
    ],
)
def test_lists_of_examples(changes, message):
    for reach in (0, 255):  # the widest window
        data = _core.TreeData(_core.Bins(**BINS), reach, reach)
        grow(data, _core.Examples.of_lists(**LISTS))
    with pytest.raises(ValueError, match=message):
        grow(data, _core.Examples.of_lists(**(LISTS | changes)))


@pytest.mark.parametrize("output", [-1, 2])
def test_outputs(output):
    with pytest.raises(ValueError, match="the output is out of range"):
        _core.Examples.of_lists(**LISTS).of_output(output)


RULES = {
    "max_leaves": 4,
    "max_depth": 9,
    "min_child_weight": 0.0,
    "min_split_gain": 0.0,
    "reg_lambda": 1.0,
    "max_step": 1.0,
    "learning_rate": 1.0,
}


def grow(data, examples):
    return _core.grow_trees(data, examples, _core.GrowthRules(**RULES), 0, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(
            ({"max_leaves": n}, "max_leaves is out of range")
            for n in (0, -1, 2**15 + 1, 2**30 + 1, 2**31 - 1)
        ),
        ({"max_depth": -1}, "max_depth is negative"),
    ],
)
def test_rules(changes, message):
    _core.GrowthRules(**(RULES | {"max_leaves": 2**15}))
    with pytest.raises(ValueError, match=message):
        _core.GrowthRules(**(RULES | changes))
