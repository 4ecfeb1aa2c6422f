"""Grammars in model files; damaged ones are in test_damaged_files.py."""

import re

import numpy as np
import pytest

from hedgerow import ModelFileError, _core
from hedgerow.labels import Constraints, Grammar, Patterns
from hedgerow.labels.state import pack_grammar, unpack_grammar
from hedgerow.potentials import PatternWeights
from hedgerow.sequences import Schema
from hedgerow.state import State

RULES = Constraints(~np.eye(3, dtype=bool), np.array([True, True, False]), np.ones(3, bool))


@pytest.mark.parametrize("patterns", [[], [(0, 1)], [(2, 2), (0, 1), (1, 0, 2, 1)]])
@pytest.mark.parametrize("constraints", [None, RULES], ids=["free", "constrained"])
@pytest.mark.parametrize("has_edges", [False, True])
def test_what_is_packed_comes_back(patterns, constraints, has_edges):
    grammar = Grammar(3, Patterns.of(patterns), constraints, has_edges)
    edges = {"edges.offsets": np.zeros(1)} if has_edges else {}
    same = unpack_grammar(State(pack_grammar(grammar) | edges, {}), 3)
    assert same.n_labels == 3
    assert same.has_edges is has_edges
    assert list(same.patterns) == patterns
    if constraints is None:
        assert same.constraints is None
    else:
        for name in ("allowed", "start", "end"):
            found = getattr(same.constraints, name)
            np.testing.assert_array_equal(found, getattr(constraints, name))


def test_all_pairs_in_a_square_as_format_1_has_them():
    square = np.arange(9.0).reshape(3, 3)
    state = State({"pairs.weights": square}, {})
    grammar = unpack_grammar(state, 3)
    context = {"schema": Schema("items", 0, None, ()), "index": _core.StringIndex()}
    weights = PatternWeights.unpack(state, grammar=grammar, **context).weights
    assert {pair: square[pair] for pair in grammar.patterns} == dict(
        zip(grammar.patterns, weights, strict=True)
    )
    assert len(weights) == 9
    with pytest.raises(ModelFileError, match=re.escape("pairs.weights has the wrong shape")):
        PatternWeights.unpack(state, grammar=unpack_grammar(state, 2), **context)
