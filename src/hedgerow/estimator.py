"""What every CRF keeps of its training, but for scores: classes, columns, and label patterns."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import ClassifierTags, Tags

from hedgerow import _core, persist
from hedgerow.checkpoint import Checkpoint, Identity, Record
from hedgerow.decoding import Decode
from hedgerow.encode import check_group_column, check_schema, encode
from hedgerow.evaluation import Evaluation
from hedgerow.fingerprint import fingerprint
from hedgerow.labels import Grammar, Labels, check_missing_label, read_labels
from hedgerow.labels.tables import Table, name_patterns, pair_table, pattern_table
from hedgerow.objectives import TrainingObjective
from hedgerow.parameters import plain_parameters
from hedgerow.sequences import Schema, Sequences
from hedgerow.state import State, expecting, history_from_json, history_to_json, require
from hedgerow.threads import count_threads
from hedgerow.training import TrainingSet

AnyEstimator = TypeVar("AnyEstimator", bound="Estimator")


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: reading X and y as they were read in training, and model files."""

    group_column: str | int | None
    missing_label: Any
    n_jobs: int | None
    classes_: NDArray[Any]
    decode_: Decode
    history_: dict[str, list[float]]
    recipe_: dict[str, Any]  # how its files are read; only if it was trained on a file
    _schema: Schema
    _index: _core.StringIndex

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

    @property
    @abstractmethod
    def _grammar(self) -> Grammar:
        """How the labels depend on each other."""

    @property
    @abstractmethod
    def _pattern_weights(self) -> NDArray[np.float64]:
        """Weights of the label patterns, (P,)."""

    @abstractmethod
    def _check_values(self, sequences: Sequences) -> None:
        """Raise ValueError if X holds numbers that this kind of model cannot take."""

    @abstractmethod
    def _pack(self) -> State:
        """What only this kind of model has to keep in its file."""

    @abstractmethod
    def _unpack(self, state: State) -> None:
        """Read what `_pack` wrote, all else being set; raises `hedgerow.ModelFileError`."""

    @property
    def label_patterns_(self) -> list[tuple[Any, ...]]:
        """The label patterns that have weights."""
        self._check_fitted()
        return name_patterns(self._grammar.patterns, self.classes_)

    def patterns(self) -> Table:
        """Weights of label patterns, as the columns of a table: pattern, weight."""
        self._check_fitted()
        return pattern_table(self._grammar, self._pattern_weights, self.classes_)

    def transitions(self) -> Table:
        """Weights of label pairs, as the columns of a table: from, to, weight."""
        self._check_fitted()
        return pair_table(self._grammar, self._pattern_weights, self.classes_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which `hedgerow.load` reads.

        The file is written beside its place and moved there when it is whole. It has the
        permissions of the file that it takes the place of, if there is one. It keeps the parameters
        as plain values, such as lists for sets, arrays and Series. It cannot keep objects:
        ``objective``, unless it is a name, ``random_state``, unless it is a number, and
        ``callbacks`` are None in a model that was loaded. Such a model predicts as the saved one
        did; to train it anew, set its objective first, ``set_params(objective=...)``.
        """
        self._check_fitted()
        persist.write(Path(path), type(self).__name__, self._to_state())

    def _to_state(self) -> State:
        """Everything that a model file has to hold."""
        own = self._pack()
        metadata = {
            "parameters": persist.pack_parameters(plain_parameters(self)),
            "classes": persist.pack_classes(self.classes_),
            "schema": self._schema.to_json(),
            **own.metadata,
            "decode": self.decode_,
            "history": history_to_json(self.history_),
        }
        if hasattr(self, "recipe_"):
            metadata["recipe"] = self.recipe_
        return State(persist.pack_index(self._index) | own.tensors, metadata)

    @classmethod
    def _from_state(cls: type[AnyEstimator], state: State) -> AnyEstimator:
        """Rebuild a fitted model; raises `hedgerow.ModelFileError`."""
        known = cls().get_params(deep=False)
        model = cls(**persist.unpack_parameters(state.metadata, known))
        model._set_fitted(
            persist.unpack_classes(state.metadata),
            persist.unpack_schema(state.metadata),
            persist.unpack_index(state),
            persist.unpack_decode(state.metadata),
        )
        with expecting():
            check_group_column(model.group_column)
            check_missing_label(model.missing_label)
            count_threads(model.n_jobs)
        model.history_ = history_from_json(state.metadata)
        if "recipe" in state.metadata:
            model.recipe_ = state.metadata["recipe"]
            require(isinstance(model.recipe_, dict), "its recipe")
        model._unpack(state)
        return model

    def _copy(self: AnyEstimator) -> AnyEstimator:
        """A shallow copy, for `fit` to change in place of the estimator itself."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def _set_fitted(
        self, classes: NDArray[Any], schema: Schema, index: _core.StringIndex, decode: Decode
    ) -> None:
        self.classes_ = classes
        self.decode_ = decode
        self._schema = schema
        self._index = index
        for name in ("n_features_in_", "feature_names_in_", "recipe_"):
            if hasattr(self, name):
                delattr(self, name)
        if schema.kind == "columns":
            self.n_features_in_ = schema.n_features
            if schema.names is not None:
                self.feature_names_in_ = np.array(schema.names, dtype=np.object_)

    def _read_watched(
        self, eval_set: Any, data: TrainingSet, objective: TrainingObjective
    ) -> tuple[Evaluation, Sequences] | None:
        """Data set aside to report on while training, and their X."""
        if eval_set is None:
            return None
        return Evaluation.read(
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
        watched: tuple[Evaluation, Sequences] | None,
        init: Estimator | None,
        free: Collection[str],
    ) -> AbstractContextManager[Record | None]:
        """Where to write down how the training stands, for a ``with``; None if not asked for.

        `X` is all that is learnt from but for the labels, `watched` an ``eval_set``; the parameters
        `free` may differ from those of a training to go on with.
        """
        if checkpoint is None:
            return nullcontext()
        weights = data.targets.weights
        fingerprints = {
            "X": fingerprint(X, data.index),
            "y": fingerprint(data.labels.classes, data.targets.codes),
            "sample_weight": None if weights is None else fingerprint(weights),
            "eval_set": None
            if watched is None
            else fingerprint(watched[0].targets.codes, watched[1]),
            "init": None if init is None else fingerprint(init._to_state()),
        }
        return Record(checkpoint, Identity.of(self, fingerprints, free))

    def _check_fitted(self) -> None:
        if not hasattr(self, "classes_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit before using it"
            )

    def _read(self, X: Any, groups: Any) -> Sequences:
        """Encode X and check it against what the model was fitted on."""
        return self._read_alike(X, groups, self._schema, self._index)

    def _read_alike(
        self, X: Any, groups: Any, schema: Schema, index: _core.StringIndex
    ) -> Sequences:
        """Encode X and check it against what the model is being fitted on."""
        sequences = encode(X, groups, index, grow=False, group_column=self.group_column)
        check_schema(schema, sequences.schema, type(self).__name__)
        self._check_values(sequences)
        # Attributes have the names of the columns used to fit, also if X has none or others.
        return replace(sequences, schema=schema)

    def _labels(self) -> Labels:
        return Labels(self.classes_)

    def _read_codes(self, y: Any, sequences: Sequences, name: str = "y") -> NDArray[np.int32]:
        column = read_labels(y, sequences, name=name, missing_label=self.missing_label)
        return self._labels().encode(column, sequences, name)
