"""Schemes: they allow exactly the labellings that chunks can have."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.labels import Labels, read_constraints
from reference.labellings import keeps, labellings

PREFIXES = {"BIO": "BI", "IOB1": "BI", "BILOU": "BILU", "BIOES": "BIES"}
# What a chunk looks like: alone, its first label, those within, its last.
CHUNK = {"BIO": "BBII", "IOB1": "IIII", "BILOU": "UBIL", "BIOES": "SBIE"}
CHUNKS = Labels(np.array(["B-NP", "B-VP", "I-NP", "I-VP", "O"]))


def refuses(message, labels, scheme):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_constraints(labels, constraints=scheme)


def label(prefix, kind):
    return f"{prefix}-{kind}" if kind else prefix


def encodings(scheme, types, length, before=None):
    """All ways to cut positions into chunks of these types, and how the scheme writes each."""
    if length == 0:
        yield ()
        return
    for rest in encodings(scheme, types, length - 1):
        yield ("O", *rest)
    alone, first, within, last = CHUNK[scheme]
    for kind, size in itertools.product(types, range(1, length + 1)):
        prefixes = alone if size == 1 else first + within * (size - 2) + last
        if scheme == "IOB1" and before == kind:
            prefixes = "B" + prefixes[1:]
        chunk = tuple(label(prefix, kind) for prefix in prefixes)
        for rest in encodings(scheme, types, length - size, kind):
            yield chunk + rest


@given(st.sampled_from(list(CHUNK)), st.sampled_from(["", "A", "AB"]), st.data())
def test_a_scheme_allows_what_chunks_can_look_like(scheme, types, data):
    types = ["", *types]
    every = ["O", *(label(*pair) for pair in itertools.product(PREFIXES[scheme], types))]
    names = sorted(data.draw(st.sets(st.sampled_from(every), min_size=1, max_size=6)))
    expected = [
        {labels for labels in encodings(scheme, types, length) if set(labels) <= set(names)}
        for length in (1, 2, 3, 4)
    ]
    labels = Labels(np.array(names))
    if not any(expected):
        refuses("relax the constraints", labels, scheme)
        return
    constraints = read_constraints(labels, constraints=scheme)
    for length, wanted in enumerate(expected, start=1):
        found = {
            tuple(names[code] for code in codes)
            for codes in labellings(len(names), length)
            if keeps(constraints, codes)
        }
        assert found == wanted


def test_bio_by_hand():
    constraints = read_constraints(CHUNKS, constraints="BIO")
    assert constraints.start.tolist() == [True, True, False, False, True]
    assert constraints.end.all()
    assert constraints.allowed.astype(int).tolist() == [
        [1, 1, 1, 0, 1],
        [1, 1, 0, 1, 1],
        [1, 1, 1, 0, 1],
        [1, 1, 0, 1, 1],
        [1, 1, 0, 0, 1],
    ]


def test_a_type_is_all_that_follows_the_first_hyphen():
    labels = Labels(np.array(["B-X-1", "B-X-2", "I-X-1"]))
    constraints = read_constraints(labels, constraints="BIO")
    assert constraints.allowed[:, 2].tolist() == [True, False, True]


@pytest.mark.parametrize("scheme", ["bio", "IOB", "", 3, ["BIO"]])
def test_unknown_schemes_are_named(scheme):
    message = f"constraints is {scheme!r}; expected 'BIO', 'IOB1', 'BILOU', 'BIOES' or None"
    refuses(message, CHUNKS, scheme)


@pytest.mark.parametrize(
    ("scheme", "classes", "odd"),
    [
        ("BIO", ["B-NP", "O", "PER", "X-NP"], "'PER', 'X-NP'; expected 'O', or one of B, I, alone"),
        ("BIO", ["B-", "O"], "'B-'"),
        ("BIO", ["B-NP", "O-NP"], "'O-NP'"),
        ("BIO", ["BI-NP", "O"], "'BI-NP'"),
        ("BIO", ["", "O"], "''"),
        ("BIO", ["-NP", "O"], "'-NP'"),
        ("BIO", ["L-NP", "O"], "'L-NP'"),
        ("BILOU", ["E-NP", "O"], "'E-NP'; expected 'O', or one of B, I, L, U, alone or with a"),
        ("BIOES", ["L-NP", "O"], "'L-NP'; expected 'O', or one of B, I, E, S, alone or with a"),
        ("IOB1", [0, 1], "0, 1; expected 'O', or one of B, I, alone or with a hyphen and a type"),
        ("IOB1", [False, True], "False, True; expected"),
        ("BIO", [f"X{n:02}" for n in range(12)], "'X00', 'X01', 'X02', 'X03', 'X04', 'X05'"),
    ],
)
def test_labels_that_do_not_fit_the_scheme_are_named(scheme, classes, odd):
    message = f"constraints={scheme!r} does not fit the labels {odd}"
    refuses(message, Labels(np.array(classes)), scheme)
