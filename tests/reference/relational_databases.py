"""Small random databases, and the queries found in them in the format of the oracle."""

from hypothesis import strategies as st

from hedgerow.relational import At
from hedgerow.relational.mode import Mode
from hedgerow.relational.plan import queries_of
from hedgerow.relational.shape import NEAR, VARIABLE
from reference.relational_queries import canonical, holds

MODES = [
    *("a(+t,#c)", "a(+t,-c)", "a(+t,+-c)", "a(-t,+c)", "link(+t,-t)", "link(+t,+t)", "link(-t,+t)"),
    *("is(+c,#c)", "is(+c,-c)", "is(+c,+c)", "is(-c,+c)", "is(-c,#c)", "first(+t)"),
    *("next(+t,-t)", "prev(+t,-t)", "two(+t,#c,#c)", "two(+t,-c,+-c)"),
]
TEXTS = st.sampled_from(["u", "v", "w"])


@st.composite
def databases(draw):
    """Sequences, background facts, and facts of each sequence."""
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


def text(constant):
    """A constant as it is compared: whole numbers without a point."""
    return constant if isinstance(constant, str) else f"{constant:.15g}"


def facts_of(sequences, background, own):
    """Facts in the format of the oracle, and the sequence of each position."""
    facts, sequence_of = set(), []
    for number, sequence in enumerate(sequences):
        first = len(sequence_of)
        sequence_of += [number] * len(sequence)
        for position, atoms in enumerate(sequence, first):
            for name, *arguments in atoms:
                read = (first + a.position if isinstance(a, At) else text(a) for a in arguments)
                facts.add((number, name, (position, *read)))
            if position > first:
                facts.add((number, "next", (position - 1, position)))
                facts.add((number, "prev", (position, position - 1)))
        facts |= {(number, name, tuple(arguments)) for name, *arguments in own[number]}
    facts |= {(None, name, tuple(arguments)) for name, *arguments in background}
    return sorted(facts, key=repr), sequence_of


def usable_modes(texts, database):
    """The modes whose predicates occur and whose variables can be bound; at least one."""
    known = {*database.relations, "next", "prev"}
    modes = [mode for mode in map(Mode.parse, texts) if mode.predicate in known]
    usable = []
    for _ in modes:  # in each pass another one may become bound
        bound = {"t"}.union(*(mode.binds for mode in usable))
        usable = [mode for mode in modes if mode.needs <= bound]
    return tuple(usable) or (Mode.parse("next(+t,-t)"),)


def listed_queries(features):
    """Queries in the format of the oracle, in order."""
    kinds = {NEAR: "near", VARIABLE: "variable"}
    return [
        tuple(
            (
                predicate,
                tuple(
                    (kinds[kind], what) if kind in kinds else ("constant", constants[what])
                    for kind, what in terms
                ),
            )
            for predicate, terms in shape.literals
        )
        for _, (shape, constants) in sorted(queries_of(features.steps_), key=lambda q: q[0])
    ]


def found_by(features, X):
    """Queries in canonical form, by number, and where they hold."""
    names = dict(
        zip(
            features.get_feature_names_out(),
            map(canonical, listed_queries(features)),
            strict=True,
        )
    )
    assert len(names) == len(set(names.values())) == features.n_queries_
    where = {query: set() for query in names.values()}
    for position, attributes in enumerate(row for sequence in X for row in sequence):
        assert len(set(attributes)) == len(attributes)
        for name in attributes:
            where[names[name]].add(position)
    return where


def as_attributes(crf, xs):
    """Sequences of facts as dicts of the queries that hold, by enumeration; others unchanged.

    The queries are those of a model, or of its base model.
    """
    if crf.queries is None:
        return xs
    models = [crf, crf.base_] if hasattr(crf, "base_") else [crf]
    named = {}
    for features in (model.queries_ for model in models):
        names = features.get_feature_names_out()
        named |= zip(names, listed_queries(features), strict=True)
    return [describe(x, named) for x in xs]


def describe(x, named):
    """One sequence of facts as dicts of the queries that hold, by name."""
    facts, sequence_of = facts_of([x], [], [[]])
    return [
        {name: 1.0 for name, query in named.items() if holds(query, t, facts, sequence_of)}
        for t in range(len(x))
    ]
