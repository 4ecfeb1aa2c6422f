"""Tables of facts: the same facts as atoms, from frames of any library."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hedgerow.relational import At, Atoms
from relational.test_atoms import facts

EVENTS = {
    "day": ["mo", "mo", "tu"],
    "id": [10, 11, 12],
    "ls": ["a.tex", None, "b.mp3"],
    "after": [None, 10, None],
    "size": [1.0, 2.5, 3.0],
}
TABLES = {
    "ext": {"file": ["a.tex", "b.mp3", None], "ending": ["tex", "mp3", "pdf"]},
    "opened": {"id": [11, 11, 99, 12], "by": ["ann", "bob", "ann", "ann"]},
    "owner": {"day": ["mo", "tu", "su"], "who": ["ann", "bob", "bob"]},
    "near": {"id": [10, 11], "other": [11, 10]},
}
LIBRARIES = [pd.DataFrame, pl.DataFrame, pa.table]
EXPECTED = Atoms(
    [
        [
            [("ls", "a.tex"), ("size", 1), ("near", At(1))],
            [
                ("size", 2.5),
                ("after", At(0)),
                ("near", At(0)),
                ("opened", "ann"),
                ("opened", "bob"),
            ],
        ],
        [[("ls", "b.mp3"), ("size", 3), ("opened", "ann")]],
    ],
    background=[("ext", "a.tex", "tex"), ("ext", "b.mp3", "mp3")],
    per_sequence=[[("owner", "ann")], [("owner", "bob")]],
)


def read(make=pd.DataFrame, *, events=EVENTS, tables=TABLES, **parameters):
    parameters = {"sequence": "day", "key": "id", "references": ["after", "other"]} | parameters
    return Atoms.from_tables(make(events), {n: make(t) for n, t in tables.items()}, **parameters)


@pytest.mark.parametrize("make", LIBRARIES)
def test_facts(make):
    atoms = read(make)
    assert facts(atoms) == facts(EXPECTED)
    ranks = {name: relation.ranks.tolist() for name, relation in atoms.database.relations.items()}
    assert ranks["ls"] == [0, 6]  # by position, and then by column
    assert ranks["size"] == [2, 5, 8]


def test_one_sequence_without_tables():
    atoms = Atoms.from_tables(pd.DataFrame({"w": ["a", "b"]}))
    assert facts(atoms) == facts(Atoms([[[("w", "a")], [("w", "b")]]]))


def test_keys_that_sequences_share():
    events = EVENTS | {"id": [0, 1, 0], "after": [None, 0, None]}
    table = {"day": ["mo", "tu", "su"], "id": [0, 0, 0], "by": ["ann", "bob", "bob"]}
    atoms = read(events=events, tables={"opened": table}, references=["after"])
    assert facts(atoms) >= {(0, "opened", 0, "ann"), (1, "opened", 2, "bob"), (0, "after", 1, 0)}
    del table["day"]
    with pytest.raises(ValueError, match="has the key 0, which events of several sequences have;"):
        read(events=events, tables={"opened": table}, references=["after"])


@pytest.mark.parametrize(
    ("parameters", "kind", "message"),
    [
        ({"sequence": "dya"}, ValueError, "sequence is 'dya', but events has no such column; did"),
        ({"key": "x"}, ValueError, "key is 'x', but events has no such column; it has day, id, ls"),
        (
            {"key": None},
            ValueError,
            "references lists the column 'after', whose values are keys of",
        ),
        (
            {"references": ["oter"]},
            ValueError,
            "references lists the column 'oter', which no table has",
        ),
        ({"events": {"day": [], "id": []}}, ValueError, "events has no rows; expected one for eac"),
        (
            {"events": EVENTS | {"day": [1, 2, 1]}},
            ValueError,
            "group 1 occurs again at row 2 .* must be consecutive: sort all rows by group first",
        ),
        (
            {"events": EVENTS | {"id": [1, 1, 2]}},
            ValueError,
            "column 'id' of events has the key 1 twice in one sequence, at rows 0 and 1; keys",
        ),
        (
            {"events": EVENTS | {"id": [1, None, 2]}},
            ValueError,
            "'id' of events has no key at row 1",
        ),
        (
            {"tables": {"size": {"a": [1]}}, "references": []},
            ValueError,
            r"tables\['size'\] and a column of events are both called 'size'",
        ),
        (
            {"tables": {"opened": {"id": [98, 99], "by": ["a", "b"]}}, "references": []},
            ValueError,
            r"no row of tables\['opened'\] is a fact about these events: all have a missing value,",
        ),
        (
            {"tables": {"near": {"id": [10], "other": [12]}}},
            ValueError,
            r"row 0 of column 'other' of tables\['near'\] names an event of a different sequence",
        ),
    ],
)
def test_mistakes(parameters, kind, message):
    with pytest.raises(kind, match=message):
        read(**parameters)


def test_no_tables():
    lists = pd.DataFrame({"id": [[1]], "w": ["a"]})
    with pytest.raises(TypeError, match="column 'id' of events contains lists, dicts or other ob"):
        Atoms.from_tables(lists)
    with pytest.raises(TypeError, match="column 'id' of events contains lists, dicts or other ob"):
        Atoms.from_tables(lists, key="id")
    events = pd.DataFrame({"k": [1], "w": ["a"]})
    with pytest.raises(TypeError, match=r"'k' of tables\['b'\] contains lists, dicts or other ob"):
        Atoms.from_tables(events, {"b": pd.DataFrame({"k": [[1]]})}, key="k")
    with pytest.raises(TypeError, match="tables is of type list; expected a dict of DataFrames by"):
        Atoms.from_tables(events, [])
    with pytest.raises(TypeError, match="references is 3; expected a list of names of columns"):
        Atoms.from_tables(events, references=3)
    with pytest.raises(TypeError, match="events is of type list; expected a DataFrame of pandas"):
        Atoms.from_tables([1, 2])
    with pytest.raises(TypeError, match=r"tables\['a'\] is of type dict; expected a DataFrame"):
        Atoms.from_tables(pd.DataFrame({"w": ["a"]}), {"a": {}})
