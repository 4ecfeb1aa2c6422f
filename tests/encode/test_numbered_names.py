"""Sequences of attribute names that are kept as numbers."""

import pickle

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF, _core
from hedgerow.encode import encode
from hedgerow.encode.numbered_names import NumberedNames

X = [[["a", "b", "a"], []], [["c"]], [["b"], ["c", "d"]]]
Y = [["u", "v"], ["u"], ["v", "u"]]


def as_lists(sequences):
    return [[list(names) for names in sequence] for sequence in sequences]


@pytest.fixture
def joined():
    first = NumberedNames(X[:2])
    return NumberedNames.joined([first, NumberedNames(X[2:], first)])


def test_it_is_a_list_of_sequences(joined):
    assert as_lists(joined) == X
    assert as_lists(joined[1:]) == X[1:]
    assert joined[-1] == [("b",), ("c", "d")]
    assert as_lists(pickle.loads(pickle.dumps(joined))) == X


@pytest.mark.parametrize("grow", [True, False])
def test_it_is_encoded_as_the_lists_are(joined, grow):
    found, expected = _core.StringIndex(), _core.StringIndex()
    for index in (found, expected):
        index.add("d")
        index.add("a")
    one, other = encode(joined, None, found, grow), encode(X, None, expected, grow)
    assert found.names() == expected.names()
    assert one.offsets.tolist() == other.offsets.tolist()
    assert one.sparse.indptr.tolist() == other.sparse.indptr.tolist()
    assert one.sparse.indices.tolist() == other.sparse.indices.tolist()
    assert one.sparse.values is None
    assert one.sparse.n_columns == other.sparse.n_columns


@pytest.mark.parametrize("crf", [LinearCRF(max_iter=2, tol=0), TreeCRF(n_rounds=1)])
def test_models_learn_the_same(joined, crf):
    found = crf.fit(joined, Y).predict_marginals(joined)
    expected = crf.fit(X, Y).predict_marginals(X)
    assert np.concatenate(found).tolist() == np.concatenate(expected).tolist()


def test_what_goes_with_flat_input_only_is_refused(joined):
    with pytest.raises(ValueError, match=r"groups is for one flat X, but X is a list of sequen"):
        LinearCRF().fit(joined, Y, groups=[0, 0, 1, 2, 2])
    with pytest.raises(ValueError, match=r"group_column is 'day', but X holds dicts or attribute"):
        LinearCRF(group_column="day").fit(joined, Y)
