"""Eval sets: held-out data to evaluate a model during training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from hedgerow.counting import count_of
from hedgerow.decoding import Decode
from hedgerow.exact_sums import exact_sum
from hedgerow.labels import LabelColumn, Truth, read_labels, read_truth
from hedgerow.objectives import Targets, TrainingObjective
from hedgerow.raw_data import RawData
from hedgerow.sequences import Sequences
from hedgerow.training.eval_metrics import EvalMetrics
from hedgerow.training.training_set import TrainingSet
from hedgerow.trellis import Scores

__all__ = ["EvalSet", "eval_figures", "name_eval_sets", "read_eval_sets"]

Form = TypeVar("Form")
OtherForm = TypeVar("OtherForm")

EXPECTED = (
    "expected (X, y), or (X, y, groups) for a flat X, or a dict such as {'X': X, 'y': y, "
    "'base_scores': scores}; a list of such sets, or a dict of them by name"
)
SEVERAL = "a list of tuples, [(X, y), (X, y)]"


@dataclass(frozen=True, eq=False)
class EvalSet(Generic[Form]):
    """Some labelled sequences.

    Attributes
    ----------
    name : str
        The prefix of its names in ``history_``.
    sequences : Form
        X, in the form that can be scored.
    targets : Targets
        The labels.
    objective : TrainingObjective
        The objective.
    decode : {"viterbi", "marginal"}
        The decoder of its accuracy and its metrics.
    truth : Truth or None
        The labels, if some of them did not occur in training; these are missing in `targets`.
    metrics : EvalMetrics or None
        Additional metrics.
    """

    name: str
    sequences: Form
    targets: Targets
    objective: TrainingObjective
    decode: Decode
    truth: Truth | None = None
    metrics: EvalMetrics | None = None

    def prepare(self, prepare: Callable[[Form], OtherForm]) -> EvalSet[OtherForm]:
        """The same eval set with X in another form."""
        return EvalSet(
            self.name,
            prepare(self.sequences),
            self.targets,
            self.objective,
            self.decode,
            self.truth,
            self.metrics,
        )

    def measure(self, parts: Iterable[Scores], n_threads: int) -> dict[str, float]:
        """Mean loss of the labelled positions, accuracy, and other metrics.

        ``parts`` are the scores of all sequences, in one or more runs of consecutive ones. If the
        targets have weights, so do loss and accuracy.
        """
        targets = self.targets
        loss, codes = self.objective.evaluate(
            iter(parts), targets, decode=self.decode, n_threads=n_threads
        )
        true = targets.codes if self.truth is None else self.truth.codes
        right, given = codes == true, true >= 0
        n_right, n_given = (
            float(np.sum(flags))
            if targets.weights is None
            else exact_sum(targets.weights[flags], targets.comm)
            for flags in (right, given)
        )
        figures = {"loss": loss / targets.total_weight, "accuracy": n_right / n_given}
        if self.metrics is not None:
            strange = None if self.truth is None else self.truth.strange
            figures |= self.metrics.measure(true, codes, targets.offsets, strange)
        return {f"{self.name}_{metric}": figure for metric, figure in figures.items()}


def name_eval_sets(eval_set: Any) -> dict[str, RawData]:
    """The parameter ``eval_set``, by name.

    One set is called eval, those of a list eval_0, eval_1 and so on.
    """
    if eval_set is None:
        return {}
    if RawData.looks_like(eval_set):
        sets = {"eval": eval_set}
    elif isinstance(eval_set, Mapping):
        sets = {_check_name(name): item for name, item in eval_set.items()}
    elif isinstance(eval_set, list) and all(map(_is_set, eval_set)):
        names = ["eval"] if len(eval_set) == 1 else [f"eval_{i}" for i in range(len(eval_set))]
        sets = dict(zip(names, eval_set, strict=True))
    else:
        sets = {"eval": eval_set}
    if not sets:
        raise ValueError(f"eval_set is {eval_set!r}; {EXPECTED}")
    return {name: _read_set(name, item) for name, item in sets.items()}


def _is_set(item: Any) -> bool:
    """Whether an entry of a list is an eval set, not an X or a y."""
    return isinstance(item, tuple) or RawData.looks_like(item)


def _read_set(name: str, item: Any) -> RawData:
    if RawData.looks_like(item):
        return RawData(**item)
    if isinstance(item, Mapping):
        keys = ", ".join(map(repr, item))
        raise ValueError(f"{_place(name)} is a dict with the keys {keys}; {EXPECTED}")
    if not isinstance(item, (tuple, list)) or len(item) not in (2, 3):
        size = f" of length {len(item)}" if isinstance(item, (tuple, list)) else ""
        raise ValueError(f"{_place(name)} is of type {type(item).__name__}{size}; {EXPECTED}")
    return RawData(*item)


def eval_figures(history: Mapping[str, list[float]]) -> dict[str, tuple[str, str]]:
    """Name of the eval set and of the metric, for each entry of ``history_`` that has them."""
    sets = [
        key.removesuffix("_loss")
        for key in history
        if key.endswith("_loss") and f"{key.removesuffix('_loss')}_accuracy" in history
    ]
    found = {}
    for key in history:
        owners = [name for name in sets if key.startswith(f"{name}_")]
        if owners:
            owner = max(owners, key=len)
            found[key] = (owner, key.removeprefix(f"{owner}_"))
    return found


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isprintable() or not name:
        raise ValueError(f"eval_set has the name {name!r}; expected a non-empty, printable string")
    return name


def _place(name: str) -> str:
    """The name of a set in a message."""
    return "eval_set" if name == "eval" else f"eval_set ({name})"


def _may_be_several(raw: RawData) -> bool:
    """Whether what was read as X, y and groups looks like several sets."""
    parts = [raw.X, raw.y] if raw.groups is None else [raw.X, raw.y, raw.groups]
    return all(isinstance(part, (tuple, list)) and len(part) in (2, 3) for part in parts)


def read_eval_sets(
    eval_set: Any,
    data: TrainingSet,
    read: Callable[[RawData], Sequences],
    *,
    missing_label: Any,
    objective: TrainingObjective,
) -> list[EvalSet[Sequences]]:
    """Check the argument ``eval_set``.

    Parameters
    ----------
    eval_set
        As the user passed it, or None.
    data
        What the model is trained on.
    read
        Turns X and the other arguments except y into sequences, and checks them against the
        training data.
    missing_label
        A label that marks unknown labels.
    objective
        The objective.
    """
    found = []
    for name, raw in name_eval_sets(eval_set).items():
        try:
            sequences = read(raw)
            if data.seen_groups.lacks_cut(sequences, raw.groups):
                raise ValueError(
                    f"X is one flat table of {count_of(sequences.n_positions, 'row')} without "
                    "groups, but fit was given groups; pass (X, y, groups). If X is one sequence, "
                    "pass ([X], [y])"
                )
            data.seen_groups.warn_of_torn(sequences, _place(name))
            column = read_labels(raw.y, sequences, missing_label=missing_label)
            truth = _read_truth(data, column, sequences, objective, _place(name))
            codes = truth.known_codes
            if data.grammar.constraints is not None:
                data.grammar.constraints.check(codes, sequences, data.labels)
        except (TypeError, ValueError) as error:
            message = f"in {_place(name)}: {error}"
            if _may_be_several(raw):
                message += f". If these are several sets, pass them as {SEVERAL}"
            raise type(error)(message) from error
        targets = Targets(sequences.offsets, codes, data.trellis, parents=sequences.parents)
        strange = truth if len(truth.strange) > 0 else None
        found.append(EvalSet(name, sequences, targets, objective, data.decode, strange))
    return found


def _read_truth(
    data: TrainingSet,
    column: LabelColumn,
    sequences: Sequences,
    objective: TrainingObjective,
    where: str,
) -> Truth:
    """The true labels; raises ValueError unless the model knows at least one of them."""
    if objective.needs_all_labels:
        column.require_all(sequences, objective.needs_all_labels)
        codes = data.labels.encode(column, sequences)
        return Truth(codes, data.labels.classes[:0], len(data.labels.classes))
    truth = read_truth(data.labels, column, sequences, where=where)
    if not truth.given.any():
        raise ValueError("every label of y is missing; at least one is needed")
    if not (truth.known_codes >= 0).any():
        raise ValueError(
            f"none of the labels of y, such as {truth.strange.tolist()[0]!r}, occurred in "
            f"training; at least one of these is needed: {data.labels.shown()}"
        )
    return truth
