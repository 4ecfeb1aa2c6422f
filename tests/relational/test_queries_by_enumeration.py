"""Queries and where they hold, against all queries by enumeration."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.relational import Atoms, RelationalFeatures
from reference.relational_databases import MODES, databases, facts_of, found_by, usable_modes
from reference.relational_queries import enumerate_queries


@pytest.mark.parametrize(("depth", "n_modes"), [(1, 4), (2, 4), (3, 3)])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_all_queries_are_found_where_they_hold(depth, n_modes, data):
    sequences, background, own = data.draw(databases())
    drawn = data.draw(st.lists(st.sampled_from(MODES), min_size=1, max_size=n_modes, unique=True))
    X = Atoms(sequences, background=background, per_sequence=own)
    modes = usable_modes(drawn, X.database)
    limits = {
        "depth": depth,
        "window": data.draw(st.integers(0, 1 if depth < 3 else 0)),
        "max_variables": data.draw(st.integers(0, 3)),
        "min_count": data.draw(st.integers(1, 2)),
    }
    pairs = [(mode.predicate, [tuple(argument) for argument in mode.arguments]) for mode in modes]
    expected = enumerate_queries(pairs, *facts_of(sequences, background, own), **limits)
    features = RelationalFeatures(modes, **limits)
    if not expected:
        with pytest.raises(ValueError, match="no query of modes"):
            features.fit(X)
        return
    found = features.fit_transform(X)
    assert found_by(features, found) == expected
    assert list(features.transform(X)) == list(found)
