"""Truth: labels to compare predictions with, including labels that a model does not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.counting import count_of
from hedgerow.data_warning import warn_user
from hedgerow.labels.classes import Labels, shorten
from hedgerow.labels.column import LabelColumn, family_of_dtype, place
from hedgerow.sequences import Sequences


@dataclass(frozen=True, eq=False)
class Truth:
    """True labels of N positions.

    Attributes
    ----------
    codes : (N,) int32
        Code of each label, -1 where it is missing. Labels that the model does not know have codes
        too, from K on: they never equal a prediction.
    strange : (M,) array
        The labels of the codes from K on.
    n_labels : int
        Number of labels that the model knows, K.
    """

    codes: NDArray[np.int32]
    strange: NDArray[Any]
    n_labels: int

    @property
    def given(self) -> NDArray[np.bool_]:
        """Which positions have a label, (N,)."""
        return self.codes >= 0

    @property
    def known_codes(self) -> NDArray[np.int32]:
        """Codes of the labels that the model knows, (N,), -1 elsewhere.

        A label that the model does not know would make the likelihood 0.
        """
        return np.where(self.codes < self.n_labels, self.codes, np.int32(-1))


def read_truth(
    labels: Labels, column: LabelColumn, sequences: Sequences, name: str = "y", where: str = "y"
) -> Truth:
    """Convert the true labels to codes; warns about labels that the model does not know.

    Parameters
    ----------
    labels : Labels
        The classes of the model.
    column : LabelColumn
        Labels of N positions, as `read_labels` gives them.
    sequences : Sequences
        The positions of the labels, for messages.
    name, where : str
        Name of the argument, and what the labels belong to, in messages.
    """
    n_labels = len(labels.classes)
    if family_of_dtype(column.values.dtype) != family_of_dtype(labels.classes.dtype):
        codes = labels.encode(column, sequences, name)  # integers instead of strings
        return Truth(codes, labels.classes[:0], n_labels)
    codes, unknown = labels.match(column)
    if not unknown.any():
        return Truth(codes, labels.classes[:0], n_labels)
    strange, numbers = np.unique(column.values[unknown], return_inverse=True)
    codes[unknown] = n_labels + numbers
    strange = strange.astype(np.str_) if strange.dtype == np.object_ else strange
    first = place(sequences, int(unknown.argmax()), name)
    warn_of_strange(where, strange.tolist(), int(unknown.sum()), f", first at {first}")
    return Truth(codes, strange, n_labels)


def warn_of_strange(where: str, strange: list[Any], n_positions: int, first: str = "") -> None:
    """Warn about labels that did not occur in training."""
    warn_user(
        f"{where} has labels that did not occur in training: {shorten(strange)}, at "
        f"{count_of(n_positions, 'position')}{first}; the model cannot predict them, so they "
        "count as mistakes, and are left out of losses and likelihoods"
    )
