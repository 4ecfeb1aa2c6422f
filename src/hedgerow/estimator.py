"""Estimator: what LinearCRF and TreeCRF share, a scikit-learn shell around a model."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import ClassifierTags, Tags

from hedgerow import _core, persist
from hedgerow.checkpoint import Checkpoint, Identity, Record
from hedgerow.counting import count_of
from hedgerow.decoding import DECODERS, Decode, DecodeParameter, check_decode
from hedgerow.encode import check_group_column, encode_alike, has_group_column
from hedgerow.explain import Explanation
from hedgerow.fingerprint import fingerprint
from hedgerow.history import History
from hedgerow.labels import Grammar, Labels, Truth, check_missing_label, read_labels, read_truth
from hedgerow.labels.state import pack_grammar, unpack_grammar
from hedgerow.labels.tables import name_patterns, pair_table, pattern_table
from hedgerow.model import Inputs, Model
from hedgerow.model_json import export_model
from hedgerow.named_parameters import NamedParameters
from hedgerow.objectives import TrainingObjective
from hedgerow.parameters import check_choice, check_number, plain_parameters, read_random_state
from hedgerow.potentials import Potential
from hedgerow.progress import Progress
from hedgerow.seen_groups import SeenGroups, is_scoring, scoring
from hedgerow.sequences import Schema, Sequences
from hedgerow.shown import Shown, best_step
from hedgerow.state import State, expecting, history_from_json, history_to_json, require
from hedgerow.tables import Table
from hedgerow.threads import count_threads
from hedgerow.training.decoder import choose_decoder
from hedgerow.training.eval_metrics import EvalMetrics
from hedgerow.training.eval_sets import EvalSet, read_eval_sets
from hedgerow.training.labelled import Labelled
from hedgerow.training.loop import train
from hedgerow.training.state import TrainingState
from hedgerow.training.stopping import Stopping
from hedgerow.training.training_set import TrainingSet
from hedgerow.training.update import Update
from hedgerow.training.validation import validation_set
from hedgerow.trellis import Trellis, build_trellis
from hedgerow.weighting import read_sample_weight

__all__ = [
    "Estimator",
    "best_step",
    "check_fitted",
    "compare_codes",
    "read_codes",
    "read_inputs",
    "read_one",
    "with_plain_tables",
]

AnyEstimator = TypeVar("AnyEstimator", bound="Estimator")
Form = TypeVar("Form")

# How models were trained before there was a parameter: their files do not have it.
BEFORE = {"pattern_lambda": None, "eval_metric": None}


class Estimator(NamedParameters, Shown):
    """Base of the estimators: parameters in, a `hedgerow.model.Model` out."""

    decode: DecodeParameter
    group_column: str | int | None
    missing_label: Any
    n_jobs: int | None
    verbose: int
    learns: ClassVar[tuple[type[Potential], ...]]  # what is trained, and kept in model files
    loss_: float
    recipe_: dict[str, Any]  # how its files are read; only if it was trained on a file
    _seen_groups: SeenGroups | None = None  # of the training; a model file does not keep it

    def __sklearn_tags__(self) -> Tags:
        """What scikit-learn has to know of the input.

        Not that this is a classifier: for one, an integer ``cv`` would deal out single rows by
        their label, which tears sequences apart, and lists of sequences would be refused.
        """
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        return tags

    @abstractmethod
    def _pack(self) -> dict[str, Any]:
        """Metadata that only this kind of model has in its file."""

    @abstractmethod
    def _unpack(self, metadata: dict[str, Any]) -> None:
        """Read what `_pack` wrote into a model; raises `hedgerow.ModelFileError`."""

    def build_trellis(self, grammar: Grammar) -> Trellis:
        """How labels that depend on each other in this way are found; for subclasses to change."""
        return build_trellis(grammar)

    def given_potentials(self) -> tuple[Potential, ...]:
        """Potentials that add scores to those that are learnt; for subclasses to give.

        They are not kept in model files and checkpoints: the class and its parameters must say
        all about them.
        """
        return ()

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in order."""
        check_fitted(self)
        return self.model_.labels.classes

    @property
    def decode_(self) -> Decode:
        """How `predict` and all else that labels positions decodes, unless told otherwise."""
        check_fitted(self)
        return self.model_.decode

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        check_fitted(self)
        if self.model_.schema.kind != "columns":
            raise AttributeError("X had no columns, but attributes by name")
        return self.model_.schema.n_features

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns of X, if they have any."""
        check_fitted(self)
        names = self.model_.schema.names
        if self.model_.schema.kind != "columns" or names is None:
            raise AttributeError("the columns of X had no names")
        return np.array(names, dtype=np.object_)

    @property
    def label_patterns_(self) -> list[tuple[Any, ...]]:
        """The label patterns that have weights."""
        check_fitted(self)
        return name_patterns(self.model_.grammar.patterns, self.classes_)

    def patterns(self) -> Any:
        """Weights of label patterns, as a table: pattern, weight."""
        check_fitted(self)
        model = self.model_
        return self._give(pattern_table(model.grammar, model.pattern_weights, self.classes_))

    def transitions(self) -> Any:
        """Weights of label pairs, as a table: from, to, weight."""
        check_fitted(self)
        return self._give(self._transition_table())

    def _transition_table(self) -> Table:
        return pair_table(self.model_.grammar, self.model_.pattern_weights, self.classes_)

    def predict(
        self, X: Any, *, groups: Any = None, known: Any = None, decode: Decode | None = None
    ) -> Any:
        """Label every position.

        Parameters
        ----------
        X
            Sequences, in the form used to fit.
        groups
            For a flat X, the sequence of each row.
        known
            Labels that are known already, in the form of y, None where they are not. They come out
            as they went in, and the others are chosen in their light.
        decode
            "viterbi" gives the most probable labelling of each sequence as a whole, "marginal" the
            most probable label of each position, which makes the fewest errors on average. Under
            constraints the latter is the labelling, of those that are allowed, whose labels have
            the largest sum of probabilities. None: ``decode_``, the model's own.

        Returns
        -------
        list of arrays, or one array for a flat X
            Labels of the kind used to fit.
        """
        check_decode(decode)
        inputs = read_inputs(self, X, groups, known)
        codes = self.model_.predict(inputs, decode, n_threads=self._n_threads)
        return inputs.sequences.mirror(self.model_.labels.decode(codes))

    def predict_marginals(self, X: Any, *, groups: Any = None, known: Any = None) -> Any:
        """Probability of each label at each position, given the whole sequence.

        ``known`` holds labels that are known already, see `predict`.

        Returns
        -------
        list of (T, K) arrays, or one (N, K) array for a flat X
            Columns in the order of ``classes_``.
        """
        inputs = read_inputs(self, X, groups, known)
        marginals = self.model_.marginals(inputs, n_threads=self._n_threads)
        return inputs.sequences.mirror(marginals)

    def predict_proba(
        self, X: Any, *, groups: Any = None, known: Any = None
    ) -> NDArray[np.float64]:
        """Return `predict_marginals` as one (N, K) array, whatever the form of X."""
        inputs = read_inputs(self, X, groups, known)
        return self.model_.marginals(inputs, n_threads=self._n_threads)

    def predict_pattern_marginals(self, X: Any, *, groups: Any = None, known: Any = None) -> Any:
        """Probability that each label pattern ends at each position, given the whole sequence.

        ``known`` holds labels that are known already, see `predict`.

        Returns
        -------
        list of (T, P) arrays, or one (N, P) array for a flat X
            Columns in the order of ``label_patterns_``.
        """
        inputs = read_inputs(self, X, groups, known)
        marginals = self.model_.pattern_marginals(inputs, n_threads=self._n_threads)
        return inputs.sequences.mirror(marginals)

    def predict_k_best(
        self, X: Any, k: int, *, groups: Any = None, known: Any = None
    ) -> list[list[tuple[NDArray[Any], float]]]:
        """Find the k most probable labellings of each sequence.

        Takes memory in proportion to the length of a sequence times the number of states, about
        one for every label and every beginning of a label pattern.

        Parameters
        ----------
        X, groups, known
            See `predict`.
        k
            How many.

        Returns
        -------
        list of lists of (labels, log-probability)
            For each sequence up to k different labellings, the most probable first; fewer if there
            are no more.
        """
        check_number("k", k, minimum=1, integer=True)
        inputs = read_inputs(self, X, groups, known)
        return self.model_.k_best(inputs, int(k), n_threads=self._n_threads)

    def sample(
        self,
        X: Any,
        n: int = 1,
        *,
        random_state: Any = None,
        groups: Any = None,
        known: Any = None,
    ) -> Any:
        """Draw labellings at random, each as often as it is probable.

        Parameters
        ----------
        X, groups, known
            See `predict`.
        n
            How many labellings of each sequence.
        random_state
            A seed, a ``numpy.random.RandomState``, or None for other labellings every time.

        Returns
        -------
        list of (n, T) arrays, or one (n, N) array for a flat X
        """
        check_number("n", n, minimum=1, integer=True)
        inputs, random = read_inputs(self, X, groups, known), read_random_state(random_state)
        codes = self.model_.sample(inputs, int(n), random, n_threads=self._n_threads)
        drawn = inputs.sequences.mirror(self.model_.labels.decode(codes).T)
        return [labels.T for labels in drawn] if isinstance(drawn, list) else drawn.T

    def log_likelihood(self, X: Any, y: Any, *, groups: Any = None) -> NDArray[np.float64]:
        """Log probability of the labels y of each sequence, (S,).

        Where labels are missing it is that of the others, summed over all ways to fill in the
        missing ones. Labels that break a constraint have probability 0. Labels that did not occur
        in training are warned of, and taken to be missing.
        """
        inputs = read_inputs(self, X, groups)
        codes = compare_codes(self, y, inputs.sequences).known_codes
        return self.model_.log_likelihoods(inputs, codes, n_threads=self._n_threads)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: Any = None,
        decode: Decode | None = None,
    ) -> float:
        """Share of positions that `predict` labels right, of those whose label is not missing.

        ``sample_weight`` has a weight for each sequence, or for each row of a flat X; ``decode`` is
        that of `predict`. Labels that did not occur in training count as mistakes, and are warned
        of.
        """
        check_decode(decode)
        with scoring():
            inputs = read_inputs(self, X, groups)
        truth = compare_codes(self, y, inputs.sequences)
        codes, given = truth.codes, truth.given
        if not given.any():
            raise ValueError("every label of y is missing; score needs at least one")
        right = self.model_.predict(inputs, decode, n_threads=self._n_threads) == codes
        weights = read_sample_weight(sample_weight, inputs.sequences)
        by_position = weights.of_positions(inputs.sequences)
        if by_position is None:
            return float(np.mean(right[given]))
        if not by_position[given].any():
            raise ValueError(
                "sample_weight is zero wherever there is a label; at least one must count"
            )
        return float(np.average(right[given], weights=by_position[given]))

    def explain(
        self,
        x: Any,
        position: int,
        label: Any = None,
        against: Any = None,
        *,
        known: Any = None,
        decode: Decode | None = None,
    ) -> Explanation:
        """Explain why a position has its label: what speaks for it, and against another label.

        The log-odds of the two labels are split, without a remainder, into what each feature of the
        position and its window adds, what the transitions from and to the predicted neighbours
        add, and what comes from the neighbours not being certain.

        Parameters
        ----------
        x
            One sequence, in the form used to fit.
        position
            A position of it, counted from 0.
        label
            The label to explain; None: the one that `predict` gives.
        against
            The label to compare it with; None: the most probable other one.
        known
            Labels of the sequence that are known already, None where they are not.
        decode
            How the labels of the position and its neighbours are found, see `predict`.

        Returns
        -------
        Explanation
            ``print(...)`` shows it as text.
        """
        check_decode(decode)
        inputs = read_one(self, x, known)
        length = inputs.sequences.n_positions
        is_number = isinstance(position, Integral) and not isinstance(position, bool)
        if not (is_number and 0 <= position < length):
            raise ValueError(
                f"position is {position!r}, but x has {count_of(length, 'position')}; expected an "
                f"integer from 0 to {length - 1}"
            )
        found = self.model_.explain(
            inputs, int(position), label, against, decode, n_threads=self._n_threads
        )
        return replace(found, output=self._output)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which `hedgerow.load` reads.

        The file is written beside its place and moved there when it is whole. It has the
        permissions of the file that it takes the place of, if there is one. It keeps the parameters
        as plain values, such as lists for sets, arrays and Series. It cannot keep objects:
        ``objective`` and ``eval_metric``, unless they are names, ``random_state``, unless it is a
        number, and ``callbacks`` are None in a model that was loaded. Such a model predicts as the
        saved one did; to train it anew, set its objective first, ``set_params(objective=...)``.
        """
        check_fitted(self)
        persist.write(Path(path), type(self).__name__, self._to_state())

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write the model as JSON, for programs that are not hedgerow.

        It has the labels, the columns, the weights of label patterns, and the trees or the weights
        of attributes. :doc:`/guides/json` is the schema, and has a program of some thirty lines
        that computes scores from it. hedgerow itself reads what `save` writes.

        Parameters
        ----------
        path
            Where to write it; None: return the text.

        Returns
        -------
        str, or None if it was written to a file

        Examples
        --------
        >>> import json
        >>> from hedgerow import LinearCRF
        >>> crf = LinearCRF().fit([[["w=the"], ["w=man"]]], [["D", "N"]])
        >>> document = json.loads(crf.to_json())
        >>> document["labels"], [len(pattern["labels"]) for pattern in document["patterns"]]
        (['D', 'N'], [2, 2, 2, 2])
        """
        check_fitted(self)
        parameters = persist.pack_parameters(plain_parameters(self))
        document = export_model(self.model_, type(self).__name__, parameters)
        text = json.dumps(document, allow_nan=False)
        if path is None:
            return text
        persist.write_file(Path(path), text.encode())
        return None

    def _to_state(self) -> State:
        """Everything that a model file has to hold."""
        parts = [self.model_.potential(kind).pack() for kind in self.learns]
        metadata = {
            "parameters": persist.pack_parameters(plain_parameters(self)),
            "classes": persist.pack_classes(self.classes_),
            "schema": self.model_.schema.to_json(),
            **self._pack(),
            "decode": self.decode_,
            "history": history_to_json(self.history_),
        }
        tensors = persist.pack_index(self.model_.index) | pack_grammar(self.model_.grammar)
        for part in parts:
            tensors |= part.tensors
            metadata |= part.metadata
        if hasattr(self, "recipe_"):
            metadata["recipe"] = self.recipe_
        return State(tensors, metadata)

    @classmethod
    def from_state(cls: type[AnyEstimator], state: State) -> AnyEstimator:
        """Rebuild a fitted model; raises `hedgerow.ModelFileError`."""
        known = cls().get_params(deep=False)
        decode = persist.unpack_decode(state.metadata)
        before = BEFORE | {"decode": decode}
        crf = cls(**before | persist.unpack_parameters(state.metadata, known))
        labels = Labels(persist.unpack_classes(state.metadata))
        schema, index = persist.unpack_schema(state.metadata), persist.unpack_index(state)
        with expecting():
            check_choice("decode", crf.decode, ("auto", *DECODERS))
            check_group_column(crf.group_column)
            check_missing_label(crf.missing_label)
            count_threads(crf.n_jobs)
        crf.history_ = History(history_from_json(state.metadata))
        if "recipe" in state.metadata:
            crf.recipe_ = state.metadata["recipe"]
            require(isinstance(crf.recipe_, dict), "its recipe")
        grammar = unpack_grammar(state, len(labels.classes))
        potentials = [
            kind.unpack(state, schema=schema, index=index, grammar=grammar) for kind in cls.learns
        ]
        crf.model_ = Model(
            labels,
            schema,
            index,
            grammar,
            crf.build_trellis(grammar),
            (*potentials, *crf.given_potentials()),
            decode,
        )
        crf._unpack(state.metadata)
        return crf

    def _eval_sets(
        self, eval_set: Any, held: Labelled | None, data: TrainingSet, objective: TrainingObjective
    ) -> list[EvalSet[Sequences]]:
        """Data set aside to report on while training: given, or held out of the training data."""
        if held is not None:
            return [validation_set(held, data, objective)]
        return read_eval_sets(
            eval_set,
            data,
            lambda X, groups: self._read_alike(X, groups, data.schema, data.index),
            missing_label=self.missing_label,
            objective=objective,
        )

    def _record(
        self,
        checkpoint: Checkpoint | None,
        X: tuple[Any, ...],
        data: TrainingSet,
        eval_sets: Sequence[EvalSet[Sequences]],
        init: Estimator | None,
        free: Collection[str],
    ) -> AbstractContextManager[Record | None]:
        """Where to write the training state to, for a ``with``; None if not asked for.

        `X` is all that is learnt from but for the labels; the parameters `free` may differ from
        those of a training to go on with.
        """
        if checkpoint is None:
            return nullcontext()
        weights = data.targets.weights
        evaluated = tuple((each.name, each.targets.codes, each.sequences) for each in eval_sets)
        fingerprints = {
            "X": fingerprint(X, data.index),
            "y": fingerprint(data.labels.classes, data.targets.codes),
            "sample_weight": None if weights is None else fingerprint(weights),
            "eval_set": fingerprint(evaluated) if evaluated else None,
            "init": None if init is None else fingerprint(init._to_state()),
        }
        return Record(checkpoint, Identity.of(self, fingerprints, free))

    def _train(
        self: AnyEstimator,
        update: Update[Form],
        state: TrainingState,
        eval_sets: Sequence[EvalSet[Form]],
        stopping: Stopping,
        record: Record | None,
        data: TrainingSet,
        objective: TrainingObjective,
        *,
        n_steps: int,
        n_before: int = 0,
    ) -> AnyEstimator:
        """Train, `n_before` steps being there before; returns a shallow copy with its model.

        `fit` changes the copy in place of the estimator itself, until all is there.
        """
        metrics = EvalMetrics(stopping.metrics, data.labels.classes)
        eval_sets = [replace(each, metrics=metrics) for each in eval_sets]
        with Progress(n_steps, self.verbose, update.n_done - n_before) as progress:
            train(update, state, eval_sets, stopping, progress, record)
        fitted = object.__new__(type(self))
        fitted.__dict__.update(self.__dict__)
        fitted.__dict__.pop("recipe_", None)
        fitted.model_ = Model(
            data.labels,
            data.schema,
            data.index,
            data.grammar,
            data.trellis,
            (*update.potentials(), *self.given_potentials()),
            choose_decoder(self.decode, objective, update, eval_sets, data.targets),
        )
        fitted._seen_groups = data.seen_groups
        fitted.loss_ = update.loss
        fitted.history_ = History(state.history)
        return fitted

    @property
    def _n_threads(self) -> int:
        return count_threads(self.n_jobs)

    def _read_alike(
        self, X: Any, groups: Any, schema: Schema, index: _core.StringIndex
    ) -> Sequences:
        """Encode X and check it against what the model is being fitted on."""
        name, group_column = type(self).__name__, self.group_column
        sequences = encode_alike(X, groups, schema, index, group_column=group_column, name=name)
        self._check_values(sequences)
        return sequences

    def _check_values(self, sequences: Sequences) -> None:
        """Raise ValueError if X holds numbers that this kind of model cannot be trained on."""
        for kind in self.learns:
            kind.check_values(sequences, type(self).__name__)


def check_fitted(crf: Estimator) -> None:
    """Raise NotFittedError unless the estimator is fitted."""
    if not hasattr(crf, "model_"):
        raise NotFittedError(
            f"this {type(crf).__name__} is not fitted yet; call fit before using it"
        )


def with_plain_tables(crf: AnyEstimator) -> AnyEstimator:
    """The same model, whose tables are dicts of arrays, whatever its user works with."""
    plain = object.__new__(type(crf))
    plain.__dict__.update(crf.__dict__)
    return plain.set_output(transform="default")


def without_group_column(crf: AnyEstimator) -> AnyEstimator:
    """The same model for X without the column of group ids."""
    other = object.__new__(type(crf))
    other.__dict__.update(crf.__dict__, group_column=None)
    return other


def read_inputs(crf: Estimator, X: Any, groups: Any, known: Any = None) -> Inputs:
    """Encode X, and labels that are known, as a fitted estimator's methods take them."""
    check_fitted(crf)
    name, group_column = type(crf).__name__, crf.group_column
    sequences = crf.model_.read(X, groups, group_column=group_column, name=name)
    if (seen := crf._seen_groups) is not None:
        seen.warn_of_missing_groups(sequences, groups)
        if is_scoring():
            seen.warn_of_torn(sequences, "X")
    if known is None:
        return Inputs(sequences)
    return Inputs(sequences, read_codes(crf, known, sequences, "known"))


def read_codes(crf: Estimator, y: Any, sequences: Sequences, name: str = "y") -> NDArray[np.int32]:
    """Codes of labels, (N,), -1 where they are missing."""
    column = read_labels(y, sequences, name=name, missing_label=crf.missing_label)
    return crf.model_.labels.encode(column, sequences, name)


def compare_codes(crf: Estimator, y: Any, sequences: Sequences) -> Truth:
    """Labels to compare predictions with; those that the model does not know are warned of."""
    column = read_labels(y, sequences, missing_label=crf.missing_label)
    return read_truth(crf.model_.labels, column, sequences)


def read_one(crf: Estimator, x: Any, known: Any) -> Inputs:
    """Read one sequence, not wrapped in a list; it needs no column of group ids."""
    check_fitted(crf)
    column, n_features = crf.group_column, crf.model_.schema.n_features
    carries_group = column is not None and has_group_column(x, column, n_features)
    reader = crf if carries_group else without_group_column(crf)
    try:
        inputs = read_inputs(reader, [x], None, None if known is None else [known])
    except (TypeError, ValueError):
        sequences = _read_if_possible(crf, x)
        if sequences is None or sequences.flat:
            raise
    else:
        # A table that carries its own groups may have several.
        sequences = _read_if_possible(crf, x) if carries_group else None
        if sequences is None or sequences.n_sequences == 1:
            return inputs
    raise ValueError(
        f"x holds {count_of(sequences.n_sequences, 'sequence')} in a list or by groups, but one "
        "is expected; pass it alone, X[0] for example"
    )


def _read_if_possible(crf: Estimator, X: Any) -> Sequences | None:
    try:
        return read_inputs(crf, X, None).sequences
    except (TypeError, ValueError):
        return None
