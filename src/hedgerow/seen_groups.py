"""Seen groups: how training data were divided into sequences, and their ids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.counting import count_of
from hedgerow.data_warning import warn_user
from hedgerow.sequences import Sequences

__all__ = ["SeenGroups", "is_scoring", "scoring"]

# How many times as long as the longest training sequence a flat X may be and still count as one
# sequence.
MOST_TIMES = 2
# Number of groups that a warning lists.
MAX_SHOWN = 3

_is_scoring: ContextVar[bool] = ContextVar("is_scoring", default=False)


@contextmanager
def scoring() -> Iterator[None]:
    """Mark a ``with`` block in which labels are predicted in order to score them."""
    token = _is_scoring.set(True)
    try:
        yield
    finally:
        _is_scoring.reset(token)


def is_scoring() -> bool:
    """Whether labels are being predicted in order to score them: see `scoring`."""
    return _is_scoring.get()


@dataclass(frozen=True, eq=False)
class SeenGroups:
    """How training data were divided into sequences, and their ids; not saved.

    Attributes
    ----------
    is_cut : bool
        Whether X was flat and divided by groups.
    longest : int
        Number of positions of the longest sequence.
    names : (S,) uint64
        Digests of the names of the groups, sorted; empty if they have none. With the lengths, this
        is 16 bytes per group.
    lengths : (S,) int64
        Number of rows of each group.
    """

    is_cut: bool
    longest: int
    names: NDArray[np.uint64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, sequences: Sequences) -> SeenGroups:
        """Remember the sequences of training data."""
        is_cut, lengths = sequences.flat and sequences.n_sequences > 1, sequences.lengths
        names = _digests(sequences)
        order = np.argsort(names)
        return cls(is_cut, int(lengths.max()), names[order], lengths[order])

    def lacks_cut(self, sequences: Sequences, groups: Any) -> bool:
        """Whether training data had groups, but this flat X has none.

        ``groups`` is the argument that was passed with it.
        """
        given = groups is not None or sequences.ids is not None
        return self.is_cut and sequences.flat and not given

    def warn_of_missing_groups(self, sequences: Sequences, groups: Any) -> None:
        """Warn if an X without groups is too long to be one sequence."""
        n_rows = sequences.n_positions
        if self.lacks_cut(sequences, groups) and n_rows > MOST_TIMES * self.longest:
            warn_user(
                f"X is one flat table without groups, so all of its {n_rows:,} rows are one "
                "sequence, but fit was given groups, and no sequence had more than "
                f"{self.longest:,}; pass groups=... here too. If X is one sequence, pass [X]"
            )

    def warn_of_torn(self, sequences: Sequences, where: str) -> None:
        """Warn about groups of which some rows are in the training data, and others here.

        There is no warning if each has as many rows here as in training: then these are training
        data, whose score may be of interest.
        """
        names = _digests(sequences)
        if not (len(names) and len(self.names)):
            return
        places = np.searchsorted(self.names, names).clip(max=len(self.names) - 1)
        seen = self.names[places] == names
        if (seen & (self.lengths[places] != sequences.lengths)).any():
            assert sequences.ids is not None
            n_seen = int(seen.sum())
            ids = [repr(sequences.ids[s]) for s in np.flatnonzero(seen)[: MAX_SHOWN + 1].tolist()]
            shown = ", ".join([*ids[:MAX_SHOWN], *(["..."] if len(ids) > MAX_SHOWN else [])])
            warn_user(
                f"{n_seen:,} of the {count_of(len(seen), 'group')} of {where} "
                f"{'was' if n_seen == 1 else 'were'} in the training data too ({shown}), "
                f"{'' if n_seen == 1 else 'at least one of them '}with a different number of rows. "
                "If a sequence was divided into a part for training and a part for testing, scores "
                "are too high; keep sequences whole: use a splitter from hedgerow.model_selection, "
                "such as cv=SequenceKFold(group_column=...)"
            )


def _digests(sequences: Sequences) -> NDArray[np.uint64]:
    """Digests of the names of groups, (S,), empty if they have no names.

    They are the same in every process, unlike Python's hashes.
    """
    names = (_name(group).encode(errors="surrogatepass") for group in sequences.ids or ())
    return np.frombuffer(b"".join(blake2b(n, digest_size=8).digest() for n in names), np.uint64)


def _name(group: Any) -> str:
    """The name of a group; 1.0 is the same as 1."""
    return str(int(group) if isinstance(group, float) and group.is_integer() else group)
