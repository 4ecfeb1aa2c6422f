"""Small random databases, and what was found in them in the form of the oracle."""

from hypothesis import strategies as st

from hedgerow.relational import At
from hedgerow.relational.mode import Mode
from hedgerow.relational.plan import queries_of
from hedgerow.relational.shape import NEAR, VARIABLE
from reference.relational_queries import canonical

MODES = [
    *("a(+t,#c)", "a(+t,-c)", "a(+t,+-c)", "a(-t,+c)", "link(+t,-t)", "link(+t,+t)", "link(-t,+t)"),
    *("is(+c,#c)", "is(+c,-c)", "is(+c,+c)", "is(-c,+c)", "is(-c,#c)", "first(+t)"),
    *("next(+t,-t)", "prev(+t,-t)", "two(+t,#c,#c)", "two(+t,-c,+-c)"),
]
TEXTS = st.sampled_from(["u", "v", "w"])


@st.composite
def databases(draw):
    """Sequences, facts of all of them, and facts of each."""
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    sequences, own = [], []
    for length in lengths:
        at = st.builds(At, st.integers(0, length - 1))
        atom = st.one_of(
            st.tuples(st.just("a"), TEXTS),
            st.tuples(st.just("link"), at),
            st.tuples(st.just("first")),
            st.tuples(st.just("two"), TEXTS, TEXTS),
        )
        sequences.append([draw(st.lists(atom, max_size=3)) for _ in range(length)])
        own.append(draw(st.lists(st.tuples(st.just("is"), TEXTS, TEXTS), max_size=2)))
    background = draw(st.lists(st.tuples(st.just("is"), TEXTS, TEXTS), max_size=3))
    return sequences, background, own


def facts_of(sequences, background, own):
    """Facts as the oracle has them, and the sequence of each position."""
    facts, sequence_of = set(), []
    for number, sequence in enumerate(sequences):
        first = len(sequence_of)
        sequence_of += [number] * len(sequence)
        for position, atoms in enumerate(sequence, first):
            for name, *arguments in atoms:
                read = (first + a.position if isinstance(a, At) else a for a in arguments)
                facts.add((number, name, (position, *read)))
            if position > first:
                facts.add((number, "next", (position - 1, position)))
                facts.add((number, "prev", (position, position - 1)))
        facts |= {(number, name, tuple(arguments)) for name, *arguments in own[number]}
    facts |= {(None, name, tuple(arguments)) for name, *arguments in background}
    return sorted(facts, key=repr), sequence_of


def usable_modes(texts, database):
    """Those of some modes whose predicates occur and whose variables can be bound; at least one."""
    known = {*database.relations, "next", "prev"}
    modes = [mode for mode in map(Mode.parse, texts) if mode.predicate in known]
    usable = []
    for _ in modes:  # each time round another one may be bound
        bound = {"t"}.union(*(mode.binds for mode in usable))
        usable = [mode for mode in modes if mode.needs <= bound]
    return tuple(usable) or (Mode.parse("next(+t,-t)"),)


def found_by(features, X):
    """Queries in the oracle's form, by number, and where they hold."""
    kinds = {NEAR: "near", VARIABLE: "variable"}
    names = {}
    for number, (shape, constants) in sorted(queries_of(features.steps_), key=lambda q: q[0]):
        query = tuple(
            (
                predicate,
                tuple(
                    (kinds[kind], what) if kind in kinds else ("constant", constants[what])
                    for kind, what in terms
                ),
            )
            for predicate, terms in shape.literals
        )
        names[features.get_feature_names_out()[number]] = canonical(query)
    assert len(names) == len(set(names.values())) == features.n_queries_
    where = {query: set() for query in names.values()}
    for position, attributes in enumerate(row for sequence in X for row in sequence):
        assert len(set(attributes)) == len(attributes)
        for name in attributes:
            where[names[name]].add(position)
    return where
