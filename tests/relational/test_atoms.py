"""Atoms: reading, choosing sequences, and mistakes."""

import pickle

import numpy as np
import pandas as pd
import pytest

from hedgerow import LinearCRF
from hedgerow.relational import At, Atoms


def facts(atoms):
    """All facts, as texts and numbers of positions."""
    data = atoms.database
    return {
        (
            int(scope),
            name,
            *(
                int(a) if is_one else data.constants[a]
                for a, is_one in zip(row, relation.is_position, strict=True)
            ),
        )
        for name, relation in data.relations.items()
        for row, scope in zip(relation.arguments, relation.scopes, strict=True)
    }


X = Atoms(
    [[{("w", "a")}, [("w", "b"), ("to", At(0))]], [[("w", 3), ("w", 3.0), ("w", "3")], [], []]],
    background=[("is", "a", True), ("is", "b", 0.5)],
    per_sequence=[[], [("near", At(0), At(2)), ("is", "a", "True"), ("is", "c", "c")]],
)


def test_facts():
    assert facts(X) == {
        (0, "w", 0, "a"),
        (0, "w", 1, "b"),
        (0, "to", 1, 0),
        (1, "w", 2, "3"),
        (1, "near", 2, 4),
        (1, "is", "c", "c"),
        (-1, "is", "a", "True"),
        (-1, "is", "b", "0.5"),
    }
    assert repr(X) == "Atoms: 2 sequences, 5 positions, 8 facts: w/2, to/2, near/2, is/2"
    assert X.database.n_facts == 8


def test_choosing():
    assert [len(sequence) for sequence in X] == [2, 3]
    assert repr(X[1]).startswith("sequence 1 of Atoms: 2 sequences")
    for chosen in (X[np.array([1, 0])], Atoms.of([X[1], X[0]])):
        assert facts(chosen) == {
            (0, "w", 0, "3"),
            (0, "near", 0, 2),
            (0, "is", "c", "c"),
            (1, "w", 3, "a"),
            (1, "w", 4, "b"),
            (1, "to", 4, 3),
            (-1, "is", "a", "True"),
            (-1, "is", "b", "0.5"),
        }
    assert facts(X[1:]) == facts(pickle.loads(pickle.dumps(X))[[1]])
    assert Atoms.of(X) is X
    assert facts(Atoms.of(X[:1][np.array([0, 0])])) >= {(1, "w", 2, "a")}
    assert [part.tolist() for part in X.cut(list("abcde"))] == [["a", "b"], ["c", "d", "e"]]


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Atoms([]), ValueError, "X is empty; expected at least one sequence"),
        (lambda: Atoms([[]]), ValueError, r"X\[0\] is empty; a sequence needs at least one pos"),
        (lambda: Atoms(["ab"]), TypeError, r"X\[0\] is 'ab'; expected a sequence, a list of pos"),
        (lambda: Atoms([["ab"]]), TypeError, r"X\[0\]\[0\] is 'ab'; expected a set or a list of"),
        (lambda: Atoms([[["ab"]]]), TypeError, r"X\[0\]\[0\] holds 'ab'; expected an atom, a tup"),
        (lambda: Atoms([[[(3, "a")]]]), TypeError, r"holds \(3, 'a'\); expected an atom"),
        (
            lambda: Atoms([[[("w", None)]]]),
            ValueError,
            r"\('w', None\) at X\[0\]\[0\] has a missing value; leave the fact out",
        ),
        (
            lambda: Atoms([[[("w", b"a")]]]),
            TypeError,
            r"has the argument b'a' of type bytes; expected a string, a number, or At\(position\)",
        ),
        (
            lambda: Atoms([[[("w", "a")], [("w", "a", "b")]]]),
            ValueError,
            r"\('w', 'a', 'b'\) at X\[0\]\[1\] is of the form w\(t,c,c\), but \('w', 'a'\) at "
            r"X\[0\]\[0\] of the form w\(t,c\), .*rename one predicate",
        ),
        (
            lambda: Atoms([[[("to", At(2))], []]]),
            ValueError,
            r"at X\[0\]\[0\] names position 2, but the sequence has 2 positions; expected At\(0\) "
            r"to At\(1\)",
        ),
        (
            lambda: Atoms([[[("to", At(-1))]]]),
            ValueError,
            r"names position -1, but the sequence has 1 position; expected At\(0\)$",
        ),
        (
            lambda: Atoms([[[]]], background=[("to", At(0))]),
            ValueError,
            "of background names a position, but holds for all sequences; put it at a position",
        ),
        (
            lambda: Atoms([[[("w", "\ud800")]]]),
            ValueError,
            r"facts hold text that is not valid Unicode, '.ud800'; decode it with the right enc",
        ),
        (
            lambda: Atoms([[[]]], per_sequence=3),
            TypeError,
            "per_sequence is 3; expected a list with the atoms of each sequence",
        ),
        (
            lambda: Atoms([[[]]], per_sequence=[]),
            ValueError,
            "per_sequence has facts of 0 sequences, but X has 1; pass one list of atoms for every",
        ),
        (lambda: Atoms.of(3), TypeError, "X is 3; expected Atoms, or a list of sequences"),
        (lambda: Atoms.of(pd.DataFrame()), TypeError, "X is a DataFrame; expected Atoms: Atoms.fr"),
        (lambda: Atoms.of([X[0], Atoms([[[]]])[0]]), ValueError, "X mixes sequences of several"),
        (lambda: Atoms.of([[[]], X[0]]), ValueError, "X mixes sequences of several Atoms"),
        (
            lambda: X.cut(["a", "b", "c"]),
            ValueError,
            "the column has 3 values, but the sequences have 5 positions",
        ),
        (
            lambda: LinearCRF().fit([[["a"], ["b"]]], [["a", "b"]]).predict(X),
            TypeError,
            r"X\[0\] is an AtomSequence, which holds facts, but the model was not fitted on facts",
        ),
    ],
)
def test_mistakes(make, kind, message):
    with pytest.raises(kind, match=message):
        make()
