"""Cut frames: the same as a list of frames."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hedgerow.encode import encode
from hedgerow.encode.cut_frame import CutFrame

COLUMNS = {"x": [1.0, 2.0, 3.0, 4.0], "t": ["a", "b", "a", "c"]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_the_same_as_a_list_of_frames(make):
    frames = CutFrame(make(COLUMNS), [0, 1, 4])
    assert [len(frame) for frame in frames] == [1, 3]
    assert isinstance(frames[-1], type(make(COLUMNS)))
    one, other = encode(frames), encode(list(frames))
    assert one.offsets.tolist() == other.offsets.tolist() == [0, 1, 4]
    assert (one.schema, one.flat) == (other.schema, other.flat)
    np.testing.assert_array_equal(one.dense, other.dense)
    assert one.categorical[0].codes.tolist() == other.categorical[0].codes.tolist()


def test_joined_and_sliced():
    frames = CutFrame(pd.DataFrame(COLUMNS), [0, 1, 4])
    both = CutFrame.joined([frames, frames])
    assert both.offsets.tolist() == [0, 1, 4, 5, 8]
    assert [len(frame) for frame in both[1:3]] == [3, 1]
    with pytest.raises(IndexError):
        both[4]


def test_groups_do_not_go_with_it():
    frames = CutFrame(pd.DataFrame(COLUMNS), [0, 1, 4])
    with pytest.raises(ValueError, match="groups is for one flat X, but X is a list"):
        encode(frames, groups=[1, 1, 1, 1])
