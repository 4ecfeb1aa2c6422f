"""Constraints: which label may follow which, which may begin a sequence and which may end it.

In tree-shaped graphs a label follows the label of its parent; roots begin a sequence, and leaves
end it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.graph import find_leaves, find_roots, leaves_first, positions_before
from hedgerow.labels.classes import Labels, shorten
from hedgerow.labels.column import place
from hedgerow.labels.schemes import SCHEMES, follow_scheme
from hedgerow.parameters import check_choice
from hedgerow.sequences import Sequences

RELAX = "correct the labels or relax the constraints"


@dataclass(frozen=True, eq=False)
class Constraints:
    """Which labellings of K labels are allowed.

    Attributes
    ----------
    allowed : (K, K) bool
        Whether a label may follow another, [label before, label].
    start : (K,) bool
        Whether a label may begin a sequence.
    end : (K,) bool
        Whether a label may end a sequence.
    rules : tuple of (str, Constraints)
        The user's rules, each with its name for messages; together they form these constraints.

    Examples
    --------
    >>> import numpy as np
    >>> labels = Labels(np.array(["B", "I", "O"]))
    >>> constraints = read_constraints(labels, constraints="BIO")
    >>> constraints.allowed.astype(int).tolist(), constraints.start.tolist()
    ([[1, 1, 1], [1, 1, 1], [1, 0, 1]], [True, False, True])
    """

    allowed: NDArray[np.bool_]
    start: NDArray[np.bool_]
    end: NDArray[np.bool_]
    rules: tuple[tuple[str, Constraints], ...] = field(default=(), repr=False)

    def check(
        self, codes: NDArray[np.int32], sequences: Sequences, labels: Labels, name: str = "y"
    ) -> None:
        """Raise ValueError if labels violate a rule, or cannot be completed without violating one.

        Parameters
        ----------
        codes : (N,) int32
            The labels, -1 where unknown.
        sequences : Sequences
            Their positions.
        labels : Labels
            The classes.
        name : str
            What the user calls the labels, for messages.
        """
        broken = self._broken(codes, sequences)
        if broken.any():
            position = int(broken.argmax())
            what = self._explain(codes, position, sequences, labels)
            raise ValueError(f"{place(sequences, position, name)} is {what}; {RELAX}")
        if not (codes < 0).any():
            return
        dead_end = self.find_dead_end(codes, sequences.offsets, sequences.parents)
        if dead_end is not None:
            position = int(sequences.offsets[dead_end[0]]) + dead_end[1]
            part = "sequence up to" if sequences.parents is None else "subtree at"
            raise ValueError(
                f"the {part} {place(sequences, position, name)} cannot be labelled: no labels that "
                f"agree with the known ones satisfy {self._names()}; {RELAX}"
            )

    def _broken(self, codes: NDArray[np.int32], sequences: Sequences) -> NDArray[np.bool_]:
        """Whether the label of a position is known and forbidden there, (N,)."""
        offsets, parents = sequences.offsets, sequences.parents
        roots, leaves = find_roots(offsets, parents), find_leaves(offsets, parents)
        known, before = codes >= 0, positions_before(offsets, parents)
        # An unknown label, -1, looks up the last one; `known` masks the result.
        broken = ~self.allowed[codes[before], codes] & known[before]
        broken[roots] = ~self.start[codes[roots]]
        broken[leaves] |= ~self.end[codes[leaves]]
        return broken & known

    def _explain(
        self, codes: NDArray[np.int32], position: int, sequences: Sequences, labels: Labels
    ) -> str:
        """Describe the violation: ``'I-NP' after 'O', which constraints='BIO' forbids``."""
        sequence, place_in_sequence = sequences.locate(position)
        parent = place_in_sequence - 1
        at_first, after, at_last = (
            "at the beginning of a sequence",
            "after",
            "at the end of a sequence",
        )
        if sequences.parents is not None:
            parent = int(sequences.parents[position])
            at_first, after, at_last = "at a root", "below a parent with the label", "at a leaf"
        is_first = parent < 0
        code, before = int(codes[position]), int(codes[sequences.offsets[sequence] + parent])
        name, name_before = labels.classes[[code, before]].tolist()
        permits: Callable[[Constraints], np.bool_]
        if is_first and not self.start[code]:
            where, permits = at_first, lambda rule: rule.start[code]
        elif not is_first and before >= 0 and not self.allowed[before, code]:
            where, permits = f"{after} {name_before!r}", lambda rule: rule.allowed[before, code]
        else:
            where, permits = at_last, lambda rule: rule.end[code]
        culprits = (text for text, rule in self.rules if not permits(rule))
        return f"{name!r} {where}, which {next(culprits, 'a constraint')} forbids"

    def find_dead_end(
        self,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        parents: NDArray[np.int32] | None = None,
    ) -> tuple[int, int] | None:
        """Find the first position where a sequence has no allowed labelling any more.

        Parameters
        ----------
        codes : (N,) int32
            The labels, -1 where any label is allowed.
        offsets : (S + 1,) int64
            Bounds of the sequences.
        parents : (N,) int32 or None
            Where in its sequence the parent of each position is, -1 for a root; None for chains.

        Returns
        -------
        sequence, position : int, or None
            The first position, counted within its sequence, up to which no labelling satisfies the
            constraints and `codes`; in tree-shaped graphs, the first position whose subtree cannot
            be labelled, leaves first. None if all sequences can be labelled.
        """
        if parents is not None:
            return self._find_dead_subtree(codes, offsets, parents)
        # A set of labels is an int with one bit per label. Few sets occur, and the set that may
        # follow each is computed once.
        follow = _FollowingSets(self.allowed)
        start, end = _to_bits(self.start), _to_bits(self.end)
        n_labels = len(self.start)
        sets = [1 << code for code in range(n_labels)]
        sets.append((1 << n_labels) - 1)  # sets[-1]: an unknown label may be any
        known = [sets[code] for code in codes.tolist()]
        for sequence, (begin, stop) in enumerate(pairwise(offsets.tolist())):
            possible = start
            for position in range(begin, stop):
                # R_t = {k : j -> k is allowed for a j in R_{t-1}} & known_t
                possible &= known[position]
                if position == stop - 1:
                    possible &= end
                if not possible:
                    return sequence, position - begin
                possible = follow[possible]
        return None

    def _find_dead_subtree(
        self, codes: NDArray[np.int32], offsets: NDArray[np.int64], parents: NDArray[np.int32]
    ) -> tuple[int, int] | None:
        # R_t = known_t & {j : j -> k is allowed for a k in R_c} for every child c of t; the second
        # part is put together in `possible` while the children are visited, before t itself.
        precede = _FollowingSets(self.allowed.T)
        n_labels, before = len(self.start), positions_before(offsets, parents)
        is_leaf = np.zeros(len(codes), np.bool_)
        is_leaf[find_leaves(offsets, parents)] = True
        start, end, every = _to_bits(self.start), _to_bits(self.end), (1 << n_labels) - 1
        possible = [end if leaf else every for leaf in is_leaf.tolist()]
        for position in leaves_first(before).tolist():
            code, parent = int(codes[position]), int(before[position])
            labels = possible[position] & (1 << code if code >= 0 else every)
            if parent < 0:
                labels &= start
            else:
                possible[parent] &= precede[labels]
            if not labels:
                sequence = int(np.searchsorted(offsets, position, side="right")) - 1
                return sequence, position - int(offsets[sequence])
        return None

    def restrict(
        self,
        nodes: NDArray[np.float64],
        offsets: NDArray[np.int64],
        parents: NDArray[np.int32] | None = None,
    ) -> None:
        """Set the scores of labels that may not begin or end a sequence to -inf, in place.

        Parameters
        ----------
        nodes : (N, K) float64
            Scores of labels at positions.
        offsets : (S + 1,) int64
            Bounds of the sequences.
        parents : (N,) int32 or None
            Where in its sequence the parent of each position is, -1 for a root; None for chains.
        """
        nodes[np.ix_(find_roots(offsets, parents), ~self.start)] = -np.inf
        nodes[np.ix_(find_leaves(offsets, parents), ~self.end)] = -np.inf

    def _names(self) -> str:
        return " and ".join(name for name, _ in self.rules) or "the constraints"


def pin_known(nodes: NDArray[np.float64], codes: NDArray[np.int32]) -> None:
    """Set the scores of all labels but the known one to -inf, in place.

    Parameters
    ----------
    nodes : (N, K) float64
        Scores of labels at positions.
    codes : (N,) int32
        Known labels; -1 leaves a position unchanged.
    """
    known = np.flatnonzero(codes >= 0)
    scores = nodes[known, codes[known]]
    nodes[known] = -np.inf
    nodes[known, codes[known]] = scores


class _FollowingSets(dict[int, int]):
    """For a set of labels, those that may follow one of them; sets are bits of an int."""

    def __init__(self, allowed: NDArray[np.bool_]) -> None:
        super().__init__()
        self._rows = [_to_bits(row) for row in allowed]

    def __missing__(self, labels: int) -> int:
        following = 0
        for code, row in enumerate(self._rows):
            if labels >> code & 1:
                following |= row
        self[labels] = following
        return following


def _to_bits(flags: NDArray[np.bool_]) -> int:
    return sum(1 << int(code) for code in np.flatnonzero(flags))


def read_constraints(
    labels: Labels,
    *,
    constraints: str | None = None,
    allowed: Any = None,
    forbidden: Any = None,
    start_labels: Any = None,
    end_labels: Any = None,
) -> Constraints | None:
    """Turn the user's rules into constraints that satisfy all of them.

    Parameters
    ----------
    labels : Labels
        The classes.
    constraints : {"BIO", "IOB1", "BILOU", "BIOES"}, optional
        A scheme of chunk labels: a prefix, or a prefix, a hyphen and a type; or ``O``. "BIO": a
        chunk is B and then any number of I. "IOB1": a chunk is a run of I; the first label is B
        when a chunk of the same type comes directly before. "BILOU": a chunk is U, or B, any
        number of I, and L. "BIOES": the same with S for U and E for L.
    allowed, forbidden : iterable of (label before, label), optional
        `allowed`: the only pairs that may occur; `forbidden`: pairs that may not occur.
    start_labels, end_labels : label or iterable of labels, optional
        The labels that may begin, and that may end, a sequence.

    Returns
    -------
    constraints : Constraints or None
        None if no rule is given.
    """
    check_choice("constraints", constraints, (*SCHEMES, None))
    n_labels = len(labels.classes)
    pairs, each = np.ones((n_labels, n_labels), np.bool_), np.ones(n_labels, np.bool_)
    rules: list[tuple[str, Constraints]] = []
    if constraints is not None:
        rules.append(
            (f"constraints={constraints!r}", Constraints(*follow_scheme(constraints, labels)))
        )
    if allowed is not None:
        flags = _read_pairs("allowed", allowed, labels)
        if not flags.any():
            raise ValueError(
                "allowed is empty, which forbids every pair of labels; list the pairs that may "
                "occur, or pass None to allow all"
            )
        rules.append(("the parameter 'allowed'", Constraints(flags, each, each)))
    if forbidden is not None:
        flags = ~_read_pairs("forbidden", forbidden, labels)
        rules.append(("the parameter 'forbidden'", Constraints(flags, each, each)))
    if start_labels is not None:
        flags = _read_set("start_labels", start_labels, labels)
        rules.append(("the parameter 'start_labels'", Constraints(pairs, flags, each)))
    if end_labels is not None:
        flags = _read_set("end_labels", end_labels, labels)
        rules.append(("the parameter 'end_labels'", Constraints(pairs, each, flags)))
    if not rules:
        return None
    whole = Constraints(
        np.logical_and.reduce([rule.allowed for _, rule in rules]),
        np.logical_and.reduce([rule.start for _, rule in rules]),
        np.logical_and.reduce([rule.end for _, rule in rules]),
        tuple(rules),
    )
    _check_satisfiable(whole, labels)
    return whole


def _read_pairs(name: str, pairs: Any, labels: Labels) -> NDArray[np.bool_]:
    """Flags, (K, K), of the pairs listed."""
    expected = "a list of pairs (label before, label)"
    if isinstance(pairs, str | bytes | Mapping) or not isinstance(pairs, Iterable):
        raise ValueError(f"{name} is {pairs!r}; expected {expected}")
    before, after = [], []
    for number, pair in enumerate(pairs):
        if not isinstance(pair, list | tuple | np.ndarray) or len(pair) != 2:
            shown = tuple(pair) if isinstance(pair, list) else pair  # as expected
            raise ValueError(
                f"{name}[{number}] is {shown!r}; expected a pair (label before, label)"
            )
        before.append(pair[0])
        after.append(pair[1])
    flags = np.zeros((len(labels.classes), len(labels.classes)), np.bool_)
    flags[labels.read_codes(before, name), labels.read_codes(after, name)] = True
    return flags


def _read_set(name: str, members: Any, labels: Labels) -> NDArray[np.bool_]:
    """Flags, (K,), of the labels listed."""
    if isinstance(members, bytes | Mapping):
        raise ValueError(f"{name} is {members!r}; expected a label or a list of labels")
    if isinstance(members, str) or not isinstance(members, Iterable):
        members = [members]
    codes = labels.read_codes(list(members), name)
    if not codes:
        raise ValueError(
            f"{name} is empty, which forbids every sequence; name at least one label, or pass "
            "None to allow all"
        )
    flags = np.zeros(len(labels.classes), np.bool_)
    flags[codes] = True
    return flags


def _check_satisfiable(constraints: Constraints, labels: Labels) -> None:
    """Raise ValueError unless there is a sequence, of some length, that can be labelled."""
    names = constraints._names()
    for flags, verb in ((constraints.start, "begin"), (constraints.end, "end")):
        if not flags.any():
            raise ValueError(
                f"no label may {verb} a sequence under {names}; known labels: {labels.shown()}; "
                "relax the constraints"
            )
    reached = constraints.start
    while not (reached & constraints.end).any():
        further = reached | constraints.allowed[reached].any(axis=0)
        if (further == reached).all():
            first, last = (
                shorten(labels.classes[flags].tolist())
                for flags in (constraints.start, constraints.end)
            )
            raise ValueError(
                f"no sequence can be labelled under {names}: the labels that may end one "
                f"({last}) cannot be reached from those that may start one ({first}); relax the "
                "constraints"
            )
        reached = further
