"""Training: what `fit` does, from X and y to a model, and the training loop."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hedgerow import _core
from hedgerow.base_scores import check_base_scores_given, read_base_scores
from hedgerow.base_sequences import check_no_base
from hedgerow.checkpoint import Checkpoint, Identity, Record
from hedgerow.comm import ALONE, Comm
from hedgerow.data_warning import warn_user
from hedgerow.decoding import Decode
from hedgerow.encode import GivenParents, encode, encode_alike
from hedgerow.encode.suspects import warn_of_indices
from hedgerow.fingerprint import fingerprint, fingerprint_sequences
from hedgerow.history import History
from hedgerow.labels import Labels
from hedgerow.metrics.known_chunks import look_like_chunks
from hedgerow.model import Model
from hedgerow.potentials import GivenScores, Potential
from hedgerow.progress import Progress
from hedgerow.raw_data import RawData
from hedgerow.relational import Atoms, RelationalFeatures
from hedgerow.sequences import Sequences
from hedgerow.state import State
from hedgerow.threads import count_threads
from hedgerow.training.base_training import (
    BaseTraining,
    TrainableBase,
    check_labels_of_base,
    fingerprint_base,
)
from hedgerow.training.decoder import better_decoder, lead_of_marginals, proven_decoder
from hedgerow.training.eval_metrics import ALWAYS, EvalMetrics
from hedgerow.training.eval_sets import EvalSet, read_eval_sets
from hedgerow.training.label_parameters import LabelParameters
from hedgerow.training.labelled import Labelled, read_labelled
from hedgerow.training.shared_columns import share_columns
from hedgerow.training.shared_training import check_agreement, check_same_arguments, check_shareable
from hedgerow.training.state import TrainingState
from hedgerow.training.stopping import Stopping, StoppingParameters
from hedgerow.training.trainer import Trainer
from hedgerow.training.training_set import TrainingSet
from hedgerow.training.trial import try_decoders
from hedgerow.training.update import Update
from hedgerow.training.validation import hold_out, validation_set

__all__ = ["Trainable", "Training", "train"]

Form = TypeVar("Form")
AnyUpdate = TypeVar("AnyUpdate", bound=Update[Any])


class Trainable(LabelParameters, StoppingParameters, Protocol):
    """The parts of an estimator that training needs."""

    learns: ClassVar[tuple[type[Potential], ...]]  # what is trained, and kept in model files
    n_jobs: int | None
    random_state: Any
    ancestors: int
    queries: RelationalFeatures | None
    model_: Model

    def to_state(self) -> State:
        """The contents of a model file."""


@dataclass(frozen=True, eq=False)
class Training(Generic[Form, AnyUpdate]):
    """One training run.

    Attributes
    ----------
    crf : estimator
        The estimator, whose parameters have been checked.
    trainer : Trainer
        How this kind of model is trained.
    stopping : Stopping
        When training ends early.
    eval_set : Any
        Eval sets, as the user passed them.
    init : estimator or None
        An initial model.
    checkpoint : Checkpoint or None
        Where to write the training state.
    base : BaseTraining or None
        How the base model is obtained, if there is one.
    comm : Comm
        The workers that train the model together.
    """

    crf: Trainable
    trainer: Trainer[Form, AnyUpdate]
    stopping: Stopping
    eval_set: Any = None
    init: Trainable | None = None
    checkpoint: Checkpoint | None = None
    base: BaseTraining | None = None
    comm: Comm = ALONE

    def run(self, raw: RawData) -> dict[str, Any]:
        """Train a model; returns the attributes of the fitted estimator."""
        self.check_shareable(raw.X)
        warn_of_indices(raw.X, y=raw.y, groups=raw.groups, sample_weight=raw.sample_weight)
        given = {"eval_set": self.eval_set, "init": self.init, "checkpoint": self.checkpoint}
        beside = {"sample_weight": raw.sample_weight, "parents": raw.parents}
        check_same_arguments(given | beside | {"base_scores": raw.base_scores}, self.comm)
        with _core.ThreadPool():
            return self.fit(self.read(raw))

    def check_shareable(self, X: Any) -> None:
        """Raise ValueError, with several workers, for settings that need a single one."""
        check_shareable(self.crf, self.trainer.objective, X=X, comm=self.comm)

    def fit(self, labelled: Labelled) -> dict[str, Any]:
        """Train a model on data that have been read; returns the attributes of the estimator."""
        crf, trainer = self.crf, self.trainer
        labelled, held = self.divide(labelled)
        base = None
        if self.base is not None:
            base, labelled, held = self.base.fit(labelled, held)
        given = self._fingerprint_given(labelled.sequences, base)
        data = trainer.learn(labelled)
        decode = crf.decode
        if decode == "auto" and self.eval_set is None and held is None:
            decode = self._decoder_without_eval_set(labelled)
        del labelled
        eval_sets = self._eval_sets(held, data, base)
        del held
        with self._record(data, eval_sets, given) as record:
            prepared = [each.prepare(trainer.prepare) for each in eval_sets]
            del eval_sets
            state, update = self._begin(record, prepared)
            with Progress(trainer.n_steps, crf.verbose, update.n_done - trainer.n_before) as bar:
                train(update, state, prepared, self.stopping, bar, record, self.comm)
        if decode == "auto":
            decode = self._decoder_by(prepared[-1], update)
        model = Model(
            data.labels,
            data.schema,
            data.index,
            data.grammar,
            data.trellis,
            (*data.given, *update.potentials()),
            decode,
            None if base is None else base.model_,
            trainer.queries(update),
        )
        if (message := trainer.explain_end(update)) is not None:
            warn_user(message, ConvergenceWarning)
        return {
            "model_": model,
            "loss_": update.loss,
            "history_": History(state.history),
            "seen_groups_": data.seen_groups,
            **({} if base is None else {"base_": base}),
            **trainer.attributes(update, state),
        }

    def read(self, raw: RawData, labels: Labels | None = None) -> Labelled:
        """Read training data; y must not have labels other than the given ones, if any."""
        crf, extended = self.crf, self.trainer.extends
        if self.base is None:
            check_no_base(raw.X_base, type(crf).__name__)
        else:
            raw = raw.repeatable()
        if extended is None:
            index = _core.StringIndex()
            sequences, queries = self._encode(raw, index)
            self._check_values(sequences)
            sequences, index = share_columns(sequences, index, self.comm)
        else:
            index, labels, queries = extended.index, extended.labels, extended.queries
            sequences = self._encode_alike(raw, extended)
        _check_ancestors(crf, sequences)
        if self.base is not None and self.base.labels is not None:
            labels = self.base.labels
            check_labels_of_base(raw.y, sequences, labels, crf.missing_label, self.comm)
        if self.init is not None:
            name = f"the {type(crf).__name__} passed as init"
            _check_base_scores(raw, self.init.model_.potentials, name)
        labelled = read_labelled(
            crf,
            sequences,
            index,
            raw.y,
            raw.sample_weight,
            raw.base_scores,
            objective=self.trainer.objective,
            labels=labels,
            comm=self.comm,
        )
        labelled = replace(labelled, queries=queries)
        return labelled if self.base is None else self.base.read(raw, labelled)

    def _encode(
        self, raw: RawData, index: _core.StringIndex
    ) -> tuple[Sequences, RelationalFeatures | None]:
        """Encode X; for facts, with the queries that are found in them."""
        crf, X, facts, queries = self.crf, raw.X, None, None
        if crf.queries is not None or Atoms.are_in(X):
            queries = RelationalFeatures() if crf.queries is None else clone(crf.queries)
            X, facts = queries.learn(X)
        given = GivenParents(raw.parents, crf.parents_column, crf.parents_format)
        sequences = encode(
            X,
            raw.groups,
            index,
            group_column=crf.group_column,
            parents=given,
            n_threads=count_threads(crf.n_jobs),
        )
        return replace(sequences, facts=facts), queries

    def divide(self, labelled: Labelled) -> tuple[Labelled, Labelled | None]:
        """Split off held-out data."""
        learnt, held = hold_out(labelled, self.stopping.held_out, self.crf.random_state)
        if held is None or self.trainer.extends is not None:
            return learnt, held
        # As if what is held out had never been there.
        learnt = learnt.drop_unseen()
        sequences, index = share_columns(learnt.sequences, learnt.index, self.comm)
        return replace(learnt, sequences=sequences, index=index), held

    def _eval_sets(
        self, held: Labelled | None, data: TrainingSet, base: TrainableBase | None
    ) -> list[EvalSet[Sequences]]:
        """Eval sets: those passed by the user, or held-out training data."""
        objective = self.trainer.objective
        if held is not None:
            found = [validation_set(held, data, objective)]
        else:
            found = read_eval_sets(
                self.eval_set,
                data,
                lambda raw: self._read_alike(raw, data, base),
                missing_label=self.crf.missing_label,
                objective=objective,
            )
        metrics = EvalMetrics(self.stopping.metrics, data.labels.classes)
        return [replace(each, metrics=metrics) for each in found]

    def _decoder_without_eval_set(self, labelled: Labelled) -> Decode:
        """The decoder of the objective, or of chunks, or the better one in a trial."""
        if (decode := self.trainer.objective.decode) is not None:
            return decode
        if look_like_chunks(labelled.labels.classes):
            return "viterbi"  # which finds more whole chunks, even if it finds fewer labels
        n_threads = count_threads(self.crf.n_jobs)
        leads = try_decoders(self.trainer, labelled, self.crf.random_state, n_threads)
        return "marginal" if leads is None else proven_decoder(leads)

    def _decoder_by(self, eval_set: EvalSet[Form], update: AnyUpdate) -> Decode:
        """The decoder with the higher accuracy of the kept model on an eval set."""
        parts, n_threads = update.score_kept(eval_set.sequences), update.n_threads
        leads = lead_of_marginals(parts, eval_set.targets, n_threads=n_threads)
        return better_decoder(leads, self.trainer.objective.decode or "marginal")

    def _record(
        self,
        data: TrainingSet,
        eval_sets: Sequence[EvalSet[Sequences]],
        given: dict[str, str | None],
    ) -> AbstractContextManager[Record | None]:
        """Where to write the training state, for a ``with`` block.

        None if not requested; the first of several workers writes it.
        """
        if self.checkpoint is None:
            return nullcontext()
        targets, weights, comm = data.targets, data.targets.weights, self.comm

        def digest(by_position: NDArray[Any]) -> str:
            return fingerprint_sequences(targets.offsets, [by_position], None, comm)

        evaluated = tuple((each.name, each.targets.codes, each.sequences) for each in eval_sets)
        fingerprints = {
            "X": fingerprint(self.trainer.learnt_from(comm), data.index),
            "y": fingerprint(data.labels.classes, digest(targets.codes)),
            "sample_weight": None if weights is None else digest(weights),
            **given,
            "eval_set": fingerprint(evaluated) if evaluated else None,
            "init": None if self.init is None else fingerprint(self.init.to_state()),
        }
        if comm.rank > 0:
            return nullcontext()
        return Record(self.checkpoint, Identity.of(self.crf, fingerprints, self.trainer.free))

    def _fingerprint_given(
        self, sequences: Sequences, base: TrainableBase | None
    ) -> dict[str, str | None]:
        """Digests of potentials that are not learned, for a checkpoint."""
        if self.checkpoint is None:
            return {}
        scores, digest = sequences.base_scores, None
        if scores is not None:
            digest = fingerprint_sequences(sequences.offsets, [scores], None, self.comm)
        return {
            "base_scores": digest,
            "base": None if base is None else fingerprint_base(base, sequences.base, self.comm),
        }

    def _begin(
        self, record: Record | None, eval_sets: Sequence[EvalSet[Form]]
    ) -> tuple[TrainingState, AnyUpdate]:
        """Start from a checkpoint, from an initial model, or from scratch."""
        trainer = self.trainer
        if self.checkpoint is not None:
            found = self._resume(record)
            if found is not None:
                if record is not None:
                    for name in trainer.free:
                        n_done = found[1].n_done - trainer.n_before
                        record.check_limit(name, getattr(self.crf, name), n_done)
                return found
        metrics = (*ALWAYS, *(metric.name for metric in self.stopping.metrics))
        names = {*ALWAYS, *(f"{each.name}_{metric}" for each in eval_sets for metric in metrics)}
        history = {name: list(trainer.history[name]) for name in trainer.history if name in names}
        return TrainingState(history), trainer.begin()

    def _resume(self, record: Record | None) -> tuple[TrainingState, AnyUpdate] | None:
        """The checkpoint, read by the first worker; None if it does not exist yet."""
        comm, trainer = self.comm, self.trainer

        def unpack(state: State) -> tuple[TrainingState, AnyUpdate]:
            return TrainingState.unpack(state), trainer.resume(state)

        if record is None:
            state = comm.broadcast(None)
            return None if state is None else unpack(state)
        found = record.read(lambda state: unpack(comm.broadcast(state)))
        if found is None:
            comm.broadcast(None)
        return found

    def _read_alike(self, raw: RawData, data: TrainingSet, base: TrainableBase | None) -> Sequences:
        """Read all arguments but y, and check them against the training data."""
        _check_complete(raw, data, self.crf.parents_column)
        sequences = self._encode_alike(raw, data)
        _check_base_scores(raw, data.given, "the model")
        scores = read_base_scores(raw.base_scores, sequences, data.labels)
        sequences = replace(sequences, base_scores=scores)
        if self.base is None:
            check_no_base(raw.X_base, type(self.crf).__name__)
            return sequences
        assert base is not None
        return self.base.see(base, raw, sequences)

    def _encode_alike(self, raw: RawData, known: TrainingSet | Model) -> Sequences:
        """Encode X and check it against the training data."""
        crf, X, facts = self.crf, raw.X, None
        if known.queries is not None:
            X, facts = known.queries.read(X)
        sequences = encode_alike(
            X,
            raw.groups,
            known.schema,
            known.index,
            group_column=crf.group_column,
            parents=GivenParents(raw.parents, crf.parents_column, crf.parents_format),
            name=type(crf).__name__,
        )
        self._check_values(sequences)
        return replace(sequences, facts=facts)

    def _check_values(self, sequences: Sequences) -> None:
        """Raise ValueError if X contains numbers that this kind of model does not support."""
        n_threads = count_threads(self.crf.n_jobs)
        for kind in self.crf.learns:
            kind.check_values(sequences, type(self.crf).__name__, n_threads=n_threads)


def _check_base_scores(raw: RawData, potentials: Sequence[Potential], name: str) -> None:
    """Raise ValueError unless base scores are given if and only if they are needed."""
    expected = any(isinstance(potential, GivenScores) for potential in potentials)
    check_base_scores_given(raw.base_scores, expected=expected, name=name)


def _check_complete(raw: RawData, data: TrainingSet, parents_column: str | int | None) -> None:
    """Raise ValueError if an eval set lacks parents or base scores that `fit` was given."""
    takes_scores = any(isinstance(potential, GivenScores) for potential in data.given)
    lacks = {
        "parents": data.schema.has_parents and raw.parents is None and parents_column is None,
        "base_scores": takes_scores and raw.base_scores is None,
    }
    for name, is_lacking in lacks.items():
        if is_lacking:
            raise ValueError(
                f"X comes without {name}, but fit was given {name}; pass a dict, {{'X': X, 'y': y, "
                f"'{name}': {name}}}"
            )


def _check_ancestors(crf: Trainable, sequences: Sequences) -> None:
    """Raise ValueError if features of ancestors are requested, but there are no parents."""
    if crf.ancestors and not sequences.schema.has_parents:
        raise ValueError(
            f"ancestors is {crf.ancestors}, but X comes without parents; pass parents=... to fit, "
            "or name the column of X that holds them: parents_column=..."
        )


def train(
    update: Update[Form],
    state: TrainingState,
    eval_sets: Sequence[EvalSet[Form]],
    stopping: Stopping,
    progress: Progress,
    record: Record | None,
    comm: Comm = ALONE,
) -> None:
    """Advance until no step is left, or training is stopped.

    With early stopping, the best step on the last eval set is kept, otherwise the last one. The
    training state is written to `record` from time to time. The first of several workers calls the
    callbacks; after each step, an error is raised unless all workers have learned the same.
    """

    def evaluate() -> dict[str, float]:
        """Metrics on the eval sets; the last one determines the best step."""
        figures: dict[str, float] = {}
        for eval_set in eval_sets:
            scores = update.score(eval_set.sequences)
            figures |= eval_set.measure(scores, update.n_threads)
        if eval_sets:
            figure = figures[f"{eval_sets[-1].name}_{stopping.metric}"]
            state.compare(update.n_done, figure if stopping.metric == "loss" else -figure)
        return figures

    # What was learned before the first step, such as an initial model, may turn out to be the best.
    if update.has_learnt and state.best_step is None:
        evaluate()
    is_over = False
    while not (is_over or state.ended):
        is_over = not update.advance()
        if not is_over:
            figures = update.figures() | evaluate()
            state.note(figures)
            progress.update(figures)
            is_enough = _is_enough(state, update, stopping.patience)
            stops = comm.rank == 0 and stopping.call_back(update.n_done, figures)
            state.ended = comm.broadcast(stops) or is_enough
            check_agreement(update.pack, update.n_done, comm)
        if stopping.patience is None or state.best_step in (None, update.n_done):
            # Also if no step was taken: the loss may now be that of another objective.
            update.keep()
        if record is not None:
            last = is_over or state.ended
            record.note(update.n_done, lambda: state.pack() | update.pack(), last=last)


def _is_enough(state: TrainingState, update: Update[Form], patience: int | None) -> bool:
    """Whether too many steps have passed since the best one."""
    if patience is None or state.best_step is None:
        return False
    return update.n_done - max(state.best_step, update.n_warm) >= patience
