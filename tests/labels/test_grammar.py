"""What a grammar knows: patterns, and what may follow what."""

import pickle

import numpy as np
import pytest

from hedgerow.labels import Constraints, Grammar, Labels, Patterns


def test_pairs_among_the_patterns():
    grammar = Grammar(3, Patterns.of([(0, 1, 2), (2, 1), (0, 0)]))
    codes, weights = grammar.pairs(np.array([1.0, 2.0, 3.0]))
    assert (codes.tolist(), weights.tolist()) == ([7, 0], [2.0, 3.0])


CODES, OFFSETS = np.array([0, 1, 0, 1, 2, -1, 2], np.int32), np.array([0, 5, 7])
ALLOWED = Constraints(np.tri(3, dtype=np.bool_), np.ones(3, np.bool_), np.ones(3, np.bool_))
SEEN = [(0, 1), (1, 0), (1, 2), (0, 1, 0), (0, 1, 2), (1, 0, 1)]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, list(Patterns.pairs(3))),
        ({"constraints": ALLOWED}, [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]),
        ({"min_pattern_count": 1}, [(0, 1), (1, 0), (1, 2)]),
        ({"order": 2}, SEEN),
        ({"order": 2, "min_pattern_count": 2}, [(0, 1)]),
        ({"order": 0}, []),
        ({"label_patterns": [("B", "A"), ("C", "A", "B")]}, [(1, 0), (2, 0, 1)]),
    ],
)
def test_learning_finds_the_patterns(wanted, expected):
    defaults = {
        "order": 1,
        "min_pattern_count": 0,
        "label_patterns": None,
        "constraints": None,
        "has_edges": False,
    }
    labels = Labels(np.array(["A", "B", "C"]))
    grammar = Grammar.learn(labels, CODES, OFFSETS, **(defaults | wanted))
    assert list(grammar.patterns) == expected
    assert grammar.n_labels == 3
    assert grammar.constraints is wanted.get("constraints")


def test_a_grammar_can_be_pickled():
    grammar = Grammar(3, Patterns.of([(0, 1), (1, 0, 2)]), ALLOWED)
    again = pickle.loads(pickle.dumps(grammar))
    assert list(again.patterns) == list(grammar.patterns)
    np.testing.assert_array_equal(again.constraints.allowed, ALLOWED.allowed)
