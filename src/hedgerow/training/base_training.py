"""Base training: the base model on top of which another model is trained.

A base overfits the sequences that it was trained on, which leaves too little for the trees to
learn. With folds, the scores of a training sequence come from models that were not trained on it
(cross-fitting); the base that is kept is trained on all sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hedgerow import _core
from hedgerow.base_sequences import check_same_positions, data_of_base, of_base
from hedgerow.comm import Comm
from hedgerow.data_warning import collect_warnings
from hedgerow.encode import GivenParents
from hedgerow.exact_sums import count_all
from hedgerow.fingerprint import fingerprint, fingerprint_sequences
from hedgerow.identity import digest_categories, draw_uniforms
from hedgerow.labels import Labels, read_labels
from hedgerow.model import Model
from hedgerow.potentials import BaseModel
from hedgerow.potentials.scoring import prepare
from hedgerow.raw_data import RawData
from hedgerow.relational import RelationalFeatures
from hedgerow.relational.facts import Facts
from hedgerow.sequences import FoldScores, Sequences
from hedgerow.state import State
from hedgerow.threads import count_threads
from hedgerow.training.labelled import Labelled
from hedgerow.training.shared_columns import share_columns
from hedgerow.training.validation import fixed_seed, take_sequences

__all__ = ["BaseTraining", "TrainableBase", "check_labels_of_base", "fingerprint_base"]

AnyBase = TypeVar("AnyBase", bound="TrainableBase")

# Added to the seed for the random numbers that decide which sequences are in which fold.
FOLDS = 1


class TrainableBase(Protocol):
    """The methods that an estimator needs to be a base."""

    model_: Model
    n_jobs: int | None
    queries: RelationalFeatures | None

    def read_labelled(self, raw: RawData, labels: Labels, comm: Comm) -> Labelled:
        """Read training data; y must not have labels other than ``labels``."""

    def fit_labelled(self: AnyBase, labelled: Labelled) -> AnyBase:
        """Train on labelled data."""

    def to_state(self) -> State:
        """The contents of a model file."""


@dataclass(frozen=True, eq=False)
class BaseTraining:
    """How the base of a training run is obtained.

    Attributes
    ----------
    fitted : estimator or None
        The base, if it is already fitted.
    unfitted : estimator or None
        The estimator to train: the base, if it is not fitted, and a clone for each fold.
    n_folds : int
        Number of folds; 0: scores of training sequences are those of the base itself.
    random_state : Any
        Parameter of the estimator, see `fixed_seed`.
    group_column, parents : str, int or None, GivenParents
        The column of groups, and how parents are given, as for the estimator.
    n_jobs : int or None
        Number of threads.
    """

    fitted: TrainableBase | None
    unfitted: TrainableBase | None
    n_folds: int
    random_state: Any = None
    group_column: str | int | None = None
    parents: GivenParents = field(default_factory=GivenParents)
    n_jobs: int | None = None

    @property
    def labels(self) -> Labels | None:
        """The classes, if the base is already fitted."""
        return None if self.fitted is None else self.fitted.model_.labels

    def read(self, raw: RawData, labelled: Labelled) -> Labelled:
        """Read the features of training data that the base uses."""
        if self.fitted is not None:
            labelled = replace(labelled, sequences=self.see(self.fitted, raw, labelled.sequences))
        if self.unfitted is None or (self.fitted is not None and not self.n_folds):
            return labelled
        reader = clone(self.unfitted)
        if raw.X_base is None and reader.queries is None and labelled.queries is not None:
            reader.queries = clone(labelled.queries)
        own, _ = data_of_base(raw, labelled.sequences, self.group_column, self.parents)
        with of_base(raw.X_base):
            base = reader.read_labelled(own, labelled.labels, labelled.comm)
        check_same_positions(base.sequences, labelled.sequences)
        return replace(labelled, base=base)

    def see(self, base: TrainableBase, raw: RawData, sequences: Sequences) -> Sequences:
        """Read the features of some data that a fitted base uses."""
        return base.model_.read_base(
            sequences,
            raw,
            group_column=self.group_column,
            parents=replace(self.parents, values=raw.parents),
            n_threads=count_threads(self.n_jobs),
        )

    def fit(
        self, learnt: Labelled, held: Labelled | None
    ) -> tuple[TrainableBase, Labelled, Labelled | None]:
        """The base, the training data with its scores, and the held-out data."""
        base = self.fitted
        if base is None:
            assert self.unfitted is not None
            base = self._train(clone(self.unfitted), _own(learnt, renew=held is not None))
        given = base.model_.as_base()
        scores = self._cross_fit(learnt, given) if self.n_folds else None
        learnt = _give(learnt, base.model_, given, scores)
        return base, learnt, None if held is None else _give(held, base.model_, given)

    def _train(self, crf: AnyBase, labelled: Labelled) -> AnyBase:
        """Train a model, with this estimator's number of threads unless it has its own."""
        n_jobs = crf.n_jobs
        crf.n_jobs = self.n_jobs if n_jobs is None else n_jobs
        crf.fit_labelled(labelled)
        crf.n_jobs = n_jobs
        return crf

    def _cross_fit(self, learnt: Labelled, given: BaseModel) -> FoldScores:
        """Scores of all sequences, each by a model that was trained on the other folds.

        Edges have the same shape as those of the base that is kept.
        """
        assert learnt.base is not None
        assert self.unfitted is not None
        labelled, n_threads = learnt.base, count_threads(self.n_jobs)
        shape, n_positions = given.edge_shape, labelled.sequences.n_positions
        nodes = np.zeros((n_positions, given.trellis.n_labels))
        edges = None if shape is None else np.zeros((n_positions, *shape))
        identities = labelled.identify(n_threads, replace(learnt, base=None).identify(n_threads))
        uniforms = draw_uniforms(identities, FOLDS + fixed_seed(self.random_state))
        for is_tested in _deal(labelled, self.n_folds, uniforms):
            crf = clone(self.unfitted).set_params(decode="viterbi", callbacks=None, verbose=0)
            with collect_warnings():  # the base that is kept issues all warnings
                self._train(crf, _own_part(labelled, ~is_tested))
            tested = _renumber(take_sequences(labelled, is_tested), crf.model_)
            model = crf.model_.as_base()
            (add,) = prepare([model], _seen_alone(tested), given.trellis, shape, n_threads)
            assert add is not None
            rows = np.repeat(is_tested, labelled.sequences.lengths)
            own_nodes = np.zeros((tested.n_positions, nodes.shape[1]))
            own_edges = None if shape is None else np.zeros((tested.n_positions, *shape))
            add(0, tested.n_sequences, own_nodes, own_edges)
            nodes[rows] = own_nodes
            if edges is not None:
                edges[rows] = own_edges
        return FoldScores(nodes, edges)


def check_labels_of_base(
    y: Any, sequences: Sequences, labels: Labels, missing_label: Any, comm: Comm
) -> None:
    """Raise ValueError if y has labels that a fitted base does not know."""
    own, _ = Labels.learn(read_labels(y, sequences, missing_label=missing_label), comm)
    if (labels.find(own.classes) < 0).any():
        raise ValueError(
            f"y has the labels {own.shown()}, but base was fitted on the labels "
            f"{labels.shown()}; fit the base on data that have all of them, or pass one that is "
            "not fitted: sklearn.base.clone(base)"
        )


def fingerprint_base(base: TrainableBase, seen: Sequences | None, comm: Comm) -> str:
    """A digest of a base and its features, the same however workers divide the sequences."""
    parts: list[Any] = [base.to_state().tensors]
    while seen is not None:
        arrays = [seen.dense, seen.parents, seen.base_scores, *digest_categories(seen)]
        if seen.fold_scores is not None:
            arrays += [seen.fold_scores.nodes, seen.fold_scores.edges]
        entries, sparse = None, seen.sparse
        if sparse is not None:
            # A worker whose values are all 1 may not store them, although others do.
            values = np.ones(len(sparse.indices)) if sparse.values is None else sparse.values
            entries = sparse.indptr, (sparse.indices, values)
        given = [array for array in arrays if array is not None]
        parts += [fingerprint_sequences(seen.offsets, given, entries, comm), seen.facts]
        seen = seen.base
    return fingerprint(*parts)


def _give(
    labelled: Labelled, model: Model, given: BaseModel, scores: FoldScores | None = None
) -> Labelled:
    """Add the base to the given potentials, and its features to the sequences."""
    seen = labelled.sequences.base
    if seen is None:
        assert labelled.base is not None
        seen = _renumber(labelled.base, model)
    sequences = replace(labelled.sequences, base=replace(seen, fold_scores=scores))
    return replace(labelled, sequences=sequences, base=None, given=(given, *labelled.given))


def _renumber(labelled: Labelled, model: Model) -> Sequences:
    """Sequences with the attribute numbers of a model, and those of its base."""
    sequences = labelled.renumber(model.index).sequences
    if model.queries is not None:  # trees may have extended the queries that are attributes
        assert isinstance(sequences.facts, Facts)
        sequences = replace(sequences, sparse=model.queries.rows(sequences.facts, model.index))
    if labelled.base is None:
        return sequences
    assert model.base is not None
    return replace(sequences, base=_renumber(labelled.base, model.base))


def _seen_alone(seen: Sequences) -> Sequences:
    """Sequences that have only the features of the base."""
    return replace(seen, base=seen)


def _own(labelled: Labelled, *, renew: bool) -> Labelled:
    """The training data of the base; with ``renew``, only attributes that occur have numbers."""
    assert labelled.base is not None
    return _fresh(labelled.base) if renew else labelled.base


def _own_part(labelled: Labelled, chosen: NDArray[np.bool_]) -> Labelled:
    return _fresh(take_sequences(labelled, chosen))


def _fresh(labelled: Labelled) -> Labelled:
    """The same data with new numbers of attributes and categories."""
    if labelled.sequences.schema.kind == "items":
        labelled = labelled.drop_unseen()
    else:
        sequences, _ = share_columns(labelled.sequences, labelled.index, labelled.comm)
        labelled = replace(labelled, sequences=sequences, index=_core.StringIndex())
    return labelled if labelled.base is None else replace(labelled, base=_fresh(labelled.base))


def _deal(
    labelled: Labelled, n_folds: int, own: NDArray[np.float64]
) -> Iterator[NDArray[np.bool_]]:
    """The test sequences of each fold, (S,), with equal numbers of labelled sequences.

    ``own`` are the random numbers of this worker's sequences, (S,).
    """
    offsets = labelled.sequences.offsets
    counted = np.flatnonzero(labelled.counts())
    counts = np.diff(np.searchsorted(counted, offsets)) > 0
    n_counted = count_all(int(counts.sum()), labelled.comm)
    if n_counted < 2:
        raise ValueError(
            f"base_folds is {n_folds}, but the number of training sequences with labels is "
            f"{n_counted}, too few to train a base on some and score others; divide long "
            "sequences, or set base_folds=0"
        )
    parts = labelled.comm.gather((own, counts))
    uniforms, do_count = map(np.concatenate, zip(*parts, strict=True))
    folds = np.empty(len(uniforms), np.int64)
    for numbers in (np.flatnonzero(do_count), np.flatnonzero(~do_count)):
        order = numbers[np.argsort(uniforms[numbers], kind="stable")]
        folds[order] = np.arange(len(numbers)) % min(n_folds, n_counted)
    first = sum(len(part[0]) for part in parts[: labelled.comm.rank])
    mine = folds[first : first + len(own)]
    for fold in range(min(n_folds, n_counted)):
        yield mine == fold
