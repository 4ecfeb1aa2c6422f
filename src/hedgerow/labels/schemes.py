"""Schemes: chunk labels such as B-NP, and their allowed order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.labels.classes import Labels, shorten


@dataclass(frozen=True)
class Scheme:
    """A chunk labelling scheme, defined by the roles of its prefixes.

    Attributes
    ----------
    prefixes : str
        All prefixes; ``O`` is outside of chunks and has no type.
    continuing : str
        Prefixes that need a ``B`` or ``I`` of the same type directly before.
    unfinished : str
        Prefixes that need one of `continuing`, of the same type, directly after.
    """

    prefixes: str
    continuing: str
    unfinished: str


SCHEMES = {
    "BIO": Scheme("BIO", continuing="I", unfinished=""),
    "IOB1": Scheme("BIO", continuing="B", unfinished=""),
    "BILOU": Scheme("BILOU", continuing="IL", unfinished="BI"),
    "BIOES": Scheme("BIOES", continuing="IE", unfinished="BI"),
}


def follow_scheme(
    name: str, labels: Labels
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Compute what a scheme allows.

    Parameters
    ----------
    name : str
        A key of `SCHEMES`.
    labels : Labels
        K labels: ``O``, a prefix, or a prefix, a hyphen and a type.

    Returns
    -------
    allowed : (K, K) bool
        Whether a label may follow another, [label before, label].
    start, end : (K,) bool
        Whether a label may begin a sequence, and end it.
    """
    scheme = SCHEMES[name]
    classes = labels.classes.tolist()
    odd = [label for label in classes if not _fits(label, scheme)]
    if odd:
        raise ValueError(
            f"constraints={name!r} does not fit the labels {shorten(odd)}; expected 'O', or one of "
            f"{', '.join(scheme.prefixes.replace('O', ''))}, alone or with a hyphen and a type, as "
            "in 'B-NP'"
        )
    prefixes, _, types = zip(*(label.partition("-") for label in classes), strict=True)
    kind = np.unique(types, return_inverse=True)[1]
    joinable, continuing, unfinished = (
        np.array([prefix in members for prefix in prefixes])
        for members in ("BI", scheme.continuing, scheme.unfinished)
    )
    goes_on = joinable[:, None] & continuing & (kind[:, None] == kind)
    allowed = goes_on | ~(continuing | unfinished[:, None])
    return allowed, ~continuing, ~unfinished


def _fits(label: object, scheme: Scheme) -> bool:
    if not isinstance(label, str):
        return False
    prefix, hyphen, kind = label.partition("-")
    if len(prefix) != 1 or prefix not in scheme.prefixes:
        return False
    return not hyphen or (prefix != "O" and kind != "")
