"""Modes: how they are read, and which do not fit the facts."""

import pytest

from hedgerow.relational import Atoms
from hedgerow.relational.mode import Mode, check_modes, default_modes, read_modes

DATABASE = Atoms(
    [[[("word", "the"), ("first",)], [("word", "cat")]]], background=[("isa", "cat", "animal")]
).database


def test_reading():
    mode = Mode.parse(" my word ( +t , +-w,#c )")
    assert mode.predicate == "my word"
    assert [tuple(argument) for argument in mode.arguments] == [
        ("+", "t"),
        ("+-", "w"),
        ("#", "c"),
    ]
    assert str(mode) == "my word(+t,+-w,#c)"
    assert Mode.parse(mode) is mode
    assert Mode.parse("flag()").arguments == ()
    assert read_modes(["a(+t)", "a( +t )"]) == (Mode.parse("a(+t)"),)


@pytest.mark.parametrize(
    ("modes", "kind", "message"),
    [
        ("word(+t)", TypeError, r"modes is 'word\(\+t\)'; expected a list of strings such as"),
        ([], ValueError, "modes is empty; expected at least one"),
        ([3], TypeError, "modes holds 3 of type int; expected strings such as"),
        (["word"], ValueError, "mode 'word' cannot be read; expected a predicate and its arg"),
        (["word(t)"], ValueError, "argument 't' cannot be read; expected a sign and a type"),
        (["word(+t,)"], ValueError, "argument '' cannot be read"),
        (["word(#t,#w)"], ValueError, "'#t' asks for constants of type t, which is that of posit"),
    ],
)
def test_what_cannot_be_read(modes, kind, message):
    with pytest.raises(kind, match=message):
        read_modes(modes)


@pytest.mark.parametrize(
    ("modes", "message"),
    [
        (["wrd(+t,#w)"], "no fact of X has the predicate 'wrd'; did you mean word?"),
        (["x(+t,#w)"], "no fact of X has the predicate 'x'; its predicates are first, isa, word"),
        (
            ["word(#w)"],
            r"has 1 argument, but facts of word have 2, the position itself first: word\(t,c\)",
        ),
        (["isa(+t,#w)"], "argument 1 of isa is a constant, not of type t, in the facts of X"),
        (["word(+w,#w)"], "argument 1 of word is a position, of type t, in the facts of X"),
        (["next(+t,-w)"], r"argument 2 of next is a position, of type t, in the facts of X: next"),
        (
            ["word(+t,-w)", "isa(+c,-c)"],
            r"mode 'isa\(\+c,-c\)' can never be used: no usable mode introduces a "
            "variable of type 'c'; give another mode an argument -c, or correct the type",
        ),
    ],
)
def test_what_does_not_fit(modes, message):
    with pytest.raises(ValueError, match=message):
        check_modes(read_modes(modes), DATABASE)


def test_modes_that_bind_for_each_other():
    check_modes(read_modes(["isa(+w,-c)", "word(+t,-w)", "isa(+c,#k)", "prev(+t,-t)"]), DATABASE)


def test_default():
    assert list(map(str, default_modes(DATABASE))) == ["first(+t)", "word(+t,#constant)"]
    with pytest.raises(ValueError, match="no position of X has a fact, so there are no queries"):
        default_modes(Atoms([[[]]], background=[("a", "b")]).database)
