"""Oracle of relational queries: all queries that modes allow, by enumeration, and matching.

A query is a tuple of literals, a literal a predicate and a tuple of terms, a term ("near", offset),
("variable", number) or ("constant", text). Facts are tuples of a sequence (None: all), a predicate
and its arguments: positions are integers, constants are texts.
"""

from itertools import permutations, product


def holds(query, position, facts, sequence_of):
    """Whether all literals are facts for some values of the variables (theta-subsumption)."""
    sequence = sequence_of[position]

    def value(term, bound):
        kind, what = term
        if kind == "constant":
            return what
        if kind == "variable":
            return bound.get(what)
        inside = 0 <= position + what < len(sequence_of)
        return position + what if inside and sequence_of[position + what] == sequence else -1

    def match(literals, bound):
        if not literals:
            return True
        (predicate, terms), *rest = literals
        for scope, name, arguments in facts:
            if name != predicate or scope not in (None, sequence):
                continue
            extended = dict(bound)
            for term, argument in zip(terms, arguments, strict=True):
                known = value(term, extended)
                if known is None:
                    extended[term[1]] = argument
                elif known != argument:
                    break
            else:
                if match(rest, extended):
                    return True
        return False

    return match(list(query), {})


def canonical(query):
    """The same for all queries that differ in the order of literals and names of variables."""

    def rename(literals):
        names = {}
        return [
            (
                predicate,
                [
                    ("variable", names.setdefault(t, len(names))) if t[0] == "variable" else t
                    for t in terms
                ],
            )
            for predicate, terms in literals
        ]

    return min(repr(rename(order)) for order in permutations(query))


def is_connected(query):
    """Whether all literals are connected by shared variables."""
    variables = [{term for term in terms if term[0] == "variable"} for _, terms in query]
    reached, todo = {0}, [0]
    while todo:
        one = todo.pop()
        for other in range(len(query)):
            if other not in reached and variables[one] & variables[other]:
                reached.add(other)
                todo.append(other)
    return len(reached) == len(query)


def is_reduced(query):
    """Whether no substitution of variables maps the query to a part of it."""
    literals = set(query)
    if len(literals) < len(query):
        return False
    for images in product(literals, repeat=len(query)):
        bound = {}
        fits = all(
            one[0] == two[0]
            and all(
                (bound.setdefault(a, b) == b) if a[0] == "variable" else a == b
                for a, b in zip(one[1], two[1], strict=True)
            )
            for one, two in zip(query, images, strict=True)
        )
        if fits and set(images) < literals:
            return False
    return True


def enumerate_queries(modes, facts, sequence_of, *, depth, window, max_variables, min_count):
    """All queries of a language, in canonical form, and the positions at which each holds.

    Modes are pairs of a predicate and a list of (sign, type).
    """
    found = {}

    def extend(query, types):
        for predicate, arguments in modes:
            constants = sorted(
                {
                    a
                    for _, name, args in facts
                    if name == predicate
                    for a in args
                    if isinstance(a, str)
                }
            )
            choices = []
            for sign, kind in arguments:
                options = []
                if "+" in sign:
                    options += [("variable", n) for n, t in enumerate(types) if t == kind]
                    if kind == "t":
                        options += [("near", offset) for offset in range(-window, window + 1)]
                if "-" in sign:
                    options.append(("new", kind))
                if sign == "#":
                    options += [("constant", text) for text in constants]
                choices.append(options)
            for terms in product(*choices):
                more, named = list(types), []
                for term in terms:
                    named.append(("variable", len(more)) if term[0] == "new" else term)
                    more += [term[1]] if term[0] == "new" else []
                visit((*query, (predicate, tuple(named))), more)

    def visit(query, types):
        if len(types) > max_variables or len(set(query)) < len(query):
            return
        where = {t for t in range(len(sequence_of)) if holds(query, t, facts, sequence_of)}
        if len(where) < min_count:
            return
        if is_connected(query) and is_reduced(query):
            found[canonical(query)] = where
        if len(query) < depth:
            extend(query, types)

    extend((), [])
    return found
