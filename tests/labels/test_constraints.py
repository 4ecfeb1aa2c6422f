"""Constraints: what they allow, by enumeration; every rule that makes no sense is named."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.encode import encode
from hedgerow.labels import Constraints, Labels, pin_known, read_constraints
from reference.labellings import first_dead_end, keeps, labellings

CHUNKS = Labels(np.array(["B-NP", "B-VP", "I-NP", "I-VP", "O"]))
LETTERS = Labels(np.array(["A", "B", "C"]))


def refuses(message, labels=LETTERS, **rules):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_constraints(labels, **rules)


def sequences_of(*lengths):
    return encode([np.zeros((length, 1)) for length in lengths])


def pairs_of(names):
    return st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), min_size=1)


@given(st.data())
def test_all_rules_hold_together(data):
    names = ["A", "B", "C"]
    some = st.lists(st.sampled_from(names), min_size=1)
    rules = {
        "allowed": data.draw(st.none() | pairs_of(names)),
        "forbidden": data.draw(st.none() | pairs_of(names)),
        "start_labels": data.draw(st.none() | some),
        "end_labels": data.draw(st.none() | some),
    }

    def fine(labels):
        pairs = list(itertools.pairwise(labels))
        return (
            (rules["allowed"] is None or all(pair in rules["allowed"] for pair in pairs))
            and (
                rules["forbidden"] is None or not any(pair in rules["forbidden"] for pair in pairs)
            )
            and (rules["start_labels"] is None or labels[0] in rules["start_labels"])
            and (rules["end_labels"] is None or labels[-1] in rules["end_labels"])
        )

    every = [codes for length in (1, 2, 3) for codes in labellings(3, length)]
    expected = [fine([names[code] for code in codes]) for codes in every]
    if all(rule is None for rule in rules.values()):
        assert read_constraints(LETTERS, **rules) is None
    elif not any(expected):
        refuses("relax the constraints", **rules)
    else:
        constraints = read_constraints(LETTERS, **rules)
        assert [keeps(constraints, codes) for codes in every] == expected


def test_a_scheme_and_other_rules_hold_together():
    constraints = read_constraints(
        CHUNKS,
        constraints="BIO",
        forbidden=[("O", "O")],
        start_labels="O",
        end_labels=["O", "I-VP"],
    )
    assert not constraints.allowed[4, 4]
    assert not constraints.allowed[4, 2]
    assert constraints.start.tolist() == [False, False, False, False, True]
    assert constraints.end.tolist() == [False, False, False, True, True]


def test_labels_may_be_integers_bools_and_numpy_scalars():
    numbers = Labels(np.array([3, 5]))
    constraints = read_constraints(numbers, allowed=np.array([[3, 5], [5, 5]]), start_labels=3)
    assert constraints.allowed.tolist() == [[False, True], [False, True]]
    assert constraints.start.tolist() == [True, False]
    constraints = read_constraints(numbers, forbidden={(np.int8(5), 3)}, end_labels=np.array([5]))
    assert constraints.allowed.tolist() == [[True, True], [False, True]]
    assert constraints.end.tolist() == [False, True]
    flags = Labels(np.array([False, True]))
    constraints = read_constraints(flags, forbidden=[(True, np.False_)], start_labels=np.True_)
    assert constraints.allowed.tolist() == [[True, True], [False, True]]
    assert constraints.start.tolist() == [False, True]
    constraints = read_constraints(LETTERS, end_labels=np.str_("A"))
    assert constraints.end.tolist() == [True, False, False]


def test_pairs_may_come_from_a_generator():
    constraints = read_constraints(LETTERS, allowed=map(tuple, ["AB", "BC"]))
    assert np.argwhere(constraints.allowed).tolist() == [[0, 1], [1, 2]]


def test_nothing_forbidden_is_a_rule_that_allows_all():
    constraints = read_constraints(LETTERS, forbidden=[])
    assert constraints.allowed.all()


@pytest.mark.parametrize("name", ["allowed", "forbidden"])
class TestPairs:
    @pytest.mark.parametrize("pairs", ["AB", b"AB", {"A": "B"}, 3])
    def test_no_list_of_pairs(self, name, pairs):
        message = f"{name} is {pairs!r}; expected a list of pairs (label before, label)"
        refuses(message, **{name: pairs})

    @pytest.mark.parametrize("pair", ["AB", ("A",), ("A", "B", "C"), 3, {"A", "B"}])
    def test_no_pair(self, name, pair):
        message = f"{name}[1] is {pair!r}; expected a pair (label before, label)"
        refuses(message, **{name: [("A", "B"), pair]})

    @pytest.mark.parametrize("unknown", ["X", 1, None, True, ["A"], 0.5])
    @pytest.mark.parametrize("side", [0, 1])
    def test_an_unknown_label(self, name, unknown, side):
        pair = ("A", unknown) if side else (unknown, "A")
        message = f"{name} has the unknown label {unknown!r}; known labels: 'A', 'B', 'C'"
        refuses(message, **{name: [pair]})

    def test_true_is_not_one(self, name):
        refuses(f"{name} has the unknown label True", Labels(np.arange(3)), **{name: [(0, True)]})


@pytest.mark.parametrize("name", ["start_labels", "end_labels"])
class TestSets:
    @pytest.mark.parametrize("unknown", ["X", "AB", 1, 0.5, None])
    def test_an_unknown_label(self, name, unknown):
        message = f"{name} has the unknown label {unknown!r}; known labels: 'A', 'B', 'C'"
        refuses(message, **{name: ["A", unknown]})
        if unknown is not None:
            refuses(message, **{name: unknown})

    @pytest.mark.parametrize("members", [{"A": 1}, b"A"])
    def test_no_set_of_labels(self, name, members):
        message = f"{name} is {members!r}; expected a label or a list of labels"
        refuses(message, **{name: members})

    def test_an_empty_set(self, name):
        refuses(f"{name} is empty, which forbids every sequence", **{name: []})


AWAY_FROM_B = [("A", "A"), ("B", "A"), ("B", "C")]


@pytest.mark.parametrize(
    ("classes", "rules", "message"),
    [
        ("ABC", {"allowed": []}, "allowed is empty, which forbids every pair of labels; list the"),
        (
            ["I-X"],
            {"constraints": "BIO"},
            "no label may begin a sequence under constraints='BIO'; known labels: 'I-X'; relax",
        ),
        (
            CHUNKS.classes,
            {"constraints": "BIO", "start_labels": ["I-NP", "I-VP"]},
            "no label may begin a sequence under constraints='BIO' and the parameter "
            "'start_labels'; known labels: 'B-NP'",
        ),
        ("BI", {"constraints": "BILOU"}, "no label may end a sequence under constraints='BILOU'"),
        (
            "ABC",
            {"allowed": AWAY_FROM_B, "start_labels": "A", "end_labels": ["B", "C"]},
            "no sequence can be labelled under the parameter 'allowed' and the parameter "
            "'start_labels' and the parameter 'end_labels': the labels that may end one ('B', 'C') "
            "cannot be reached from those that may start one ('A'); relax the constraints",
        ),
    ],
)
def test_rules_that_leave_nothing(classes, rules, message):
    refuses(message, Labels(np.array(list(classes))), **rules)


BIO = {"constraints": "BIO"}
NO_WAY = "up to y[1][2] cannot be labelled: no labels that agree with the known ones satisfy "


@pytest.mark.parametrize(
    ("rules", "codes", "message"),
    [
        (BIO, [[4, 4], [4, 2]], "y[1][1] is 'I-NP' after 'O', which constraints='BIO' forbids"),
        (BIO, [[0, 3], [4, 2]], "y[0][1] is 'I-VP' after 'B-NP', which constraints='BIO' forbids"),
        (BIO, [[0, 2], [2, 2]], "y[1][0] is 'I-NP' at the beginning of a sequence, which constrai"),
        (
            BIO | {"end_labels": "O"},
            [[4, 0], [0, 4]],
            "y[0][1] is 'B-NP' at the end of a sequence, which the parameter 'end_labels' forbids",
        ),
        (
            BIO | {"start_labels": "O"},
            [[4, 0], [0, 4]],
            "y[1][0] is 'B-NP' at the beginning of a sequence, which the parameter 'start_labels'",
        ),
        (
            BIO | {"forbidden": [("O", "O")]},
            [[-1, 0], [4, 4]],
            "y[1][1] is 'O' after 'O', which the parameter 'forbidden' forbids; correct the labels",
        ),
        (
            {"allowed": [("O", "O")]},
            [[-1, 4], [0, 4]],
            "y[1][1] is 'O' after 'B-NP', which the parameter 'allowed' forbids; correct the",
        ),
        (
            # O, two labels at will and I-VP can be B-NP B-VP; with one at will there is no way.
            BIO | {"forbidden": [("O", "B-VP")]},
            [[4, -1, -1, 3], [4, -1, 3]],
            f"{NO_WAY}constraints='BIO' and the parameter 'forbidden'; correct the labels or relax",
        ),
        (~np.eye(5, dtype=bool), [[0], [0, 1, 1]], "y[1][2] is 'B-VP' after 'B-VP', which a const"),
        (np.eye(5, dtype=bool), [[0], [0, -1, 1]], f"{NO_WAY}the constraints; correct"),
    ],
)
def test_labels_that_break_a_rule_are_named(rules, codes, message):
    if isinstance(rules, dict):
        constraints = read_constraints(CHUNKS, **rules)
    else:  # made by hand
        constraints = Constraints(rules, *np.ones((2, 5), bool))
    sequences = sequences_of(*map(len, codes))
    for name in ("y", "known"):
        with pytest.raises(ValueError, match=re.escape(message.replace("y[", f"{name}["))):
            constraints.check(np.concatenate(codes), sequences, CHUNKS, name)


@st.composite
def problems(draw):
    """Constraints at random, some sequences, and codes with -1 for unknown labels."""
    n_labels = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    share = draw(st.sampled_from([0.2, 0.5, 0.8, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = rng.random((n_labels + 2, n_labels)) < share
    codes = rng.integers(-1, n_labels, sum(lengths), dtype=np.int32)
    return Constraints(table[2:], table[0], table[1]), lengths, codes


@settings(deadline=None)
@given(problems(), st.integers(0, 3))
def test_constraints_are_what_an_enumeration_says(problem, n_empty):
    constraints, lengths, codes = problem
    check_dead_end(constraints, lengths, codes)
    check_scores(constraints, [*lengths, *[0] * n_empty], codes)


def check_dead_end(constraints, lengths, codes):
    """The first one is found, and labels are refused if and only if nothing completes them."""
    labels = Labels(np.arange(len(constraints.end)))
    dead_end = first_dead_end(constraints, lengths, codes)
    assert constraints.find_dead_end(codes, np.cumsum([0, *lengths])) == dead_end
    if dead_end is None:
        constraints.check(codes, sequences_of(*lengths), labels)
        return
    place = (
        "a constraint forbids|satisfy the constraints"
        if (codes < 0).any()
        else re.escape("y[{}][{}] is".format(*dead_end))
    )
    with pytest.raises(ValueError, match=place):
        constraints.check(codes, sequences_of(*lengths), labels)


def check_scores(constraints, lengths, codes):
    """Those of forbidden and of other labels become minus infinity."""
    offsets = np.cumsum([0, *lengths])
    n_labels = len(constraints.end)
    nodes = np.arange(len(codes) * n_labels, dtype=float).reshape(-1, n_labels)
    restricted, pinned = nodes.copy(), nodes.copy()
    constraints.restrict(restricted, offsets)
    pin_known(pinned, codes)
    for begin, length in zip(offsets, lengths, strict=False):
        for t, k in itertools.product(range(length), range(n_labels)):
            free = (t > 0 or constraints.start[k]) and (t < length - 1 or constraints.end[k])
            assert restricted[begin + t, k] == (nodes[begin + t, k] if free else -np.inf)
    for position, code in enumerate(codes):
        for k in range(n_labels):
            free = code in (-1, k)
            assert pinned[position, k] == (nodes[position, k] if free else -np.inf)


def test_empty_sequences_have_no_dead_end():
    nothing = np.zeros(2, bool)
    constraints = Constraints(np.zeros((2, 2), bool), nothing, nothing)
    assert constraints.find_dead_end(np.empty(0, np.int32), np.array([0, 0, 0])) is None
    assert constraints.find_dead_end(np.array([1]), np.array([0, 0, 1])) == (1, 0)
