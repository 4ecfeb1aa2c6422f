"""Estimator: what LinearCRF and TreeCRF share, a scikit-learn interface to a model."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import ClassifierTags, Tags

from hedgerow import _core, persist
from hedgerow.checkpoint import Checkpoint, check_checkpoint
from hedgerow.comm import ALONE, Comm, check_comm
from hedgerow.decoding import DECODERS
from hedgerow.encode import GivenParents, check_group_column
from hedgerow.fitted import check_fitted
from hedgerow.history import History
from hedgerow.labels import Grammar, Labels, check_missing_label
from hedgerow.labels.state import pack_grammar, unpack_grammar
from hedgerow.model import Model
from hedgerow.model_json import export_model
from hedgerow.named_parameters import NamedParameters, explain_arguments
from hedgerow.parameters import check_choice, plain_parameters
from hedgerow.potentials import GivenScores, Potential
from hedgerow.predictor import Predictor
from hedgerow.raw_data import RawData
from hedgerow.relational import RelationalFeatures
from hedgerow.relational.queries_state import pack_queries, unpack_queries
from hedgerow.state import (
    State,
    expecting,
    history_from_json,
    history_to_json,
    pack_base,
    read_loss,
    require,
    unpack_base,
)
from hedgerow.threads import count_threads
from hedgerow.training.base_training import BaseTraining
from hedgerow.training.label_parameters import check_label_parameters
from hedgerow.training.labelled import Labelled
from hedgerow.training.stopping import Stopping
from hedgerow.training.trainer import Trainer
from hedgerow.training.training import Trainable, Training
from hedgerow.trellis import Trellis, build_trellis

__all__ = ["Estimator"]

AnyEstimator = TypeVar("AnyEstimator", bound="Estimator")

# Values of parameters that did not exist when older model files were written.
BEFORE = {"pattern_lambda": None, "eval_metric": None}


class Estimator(NamedParameters, Predictor, Trainable):
    """Base of the estimators: parameters in, a `hedgerow.model.Model` out."""

    loss_: float
    base_: Estimator  # the base model, if there is one
    queries: RelationalFeatures | None
    recipe_: dict[str, Any]  # how files are read, if it was trained on a file

    def __sklearn_tags__(self) -> Tags:
        """What scikit-learn has to know about the input.

        This is not tagged as a classifier: an integer ``cv`` would then stratify single rows by
        label, which splits sequences, and lists of sequences would raise an error.
        """
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        return tags

    @abstractmethod
    def _pack(self) -> dict[str, Any]:
        """Metadata that only this kind of model stores in its file."""

    @abstractmethod
    def _unpack(self, metadata: dict[str, Any]) -> None:
        """Set the attributes of this model from what `_pack` wrote.

        Raises `hedgerow.ModelFileError`.
        """

    def build_trellis(self, grammar: Grammar) -> Trellis:
        """The trellis for inference with this grammar; subclasses may override it."""
        return build_trellis(grammar)

    def given_potentials(self) -> tuple[Potential, ...]:
        """Potentials that add scores to the learned ones; subclasses may override it.

        They are not saved in model files and checkpoints: the class and its parameters must define
        them completely.
        """
        return ()

    @explain_arguments
    def fit(
        self: AnyEstimator,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
        eval_set: Any = None,
        init: AnyEstimator | None = None,
        checkpoint: Checkpoint | None = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
        comm: Comm | None = None,
    ) -> AnyEstimator:
        """Train the model.

        Parameters
        ----------
        X
            Sequences: a list of 2-D arrays, DataFrames, sparse matrices, lists of dicts, or lists
            of lists of attribute names; `hedgerow.relational.Atoms`, whose positions are sets of
            facts; or one flat array, DataFrame or sparse matrix, divided into sequences by
            `groups`.
        y
            A list of label lists, or flat labels for a flat X. None or NaN is a missing label.
        sample_weight : (S,), or (N,) for a flat X, optional
            Weight of each sequence, or of each row. The log-likelihood is a sum over positions of
            log P(label | labels before it); each of these terms is multiplied by the weight. If
            rows of a sequence have different weights, all labels must be known.
        groups : (N,), optional
            For a flat X, the sequence of each row; without it a flat X is one sequence.
        eval_set : (X, y) or (X, y, groups), a list or a dict of such tuples, optional
            Evaluation data, for early stopping and learning curves. After each round or iteration
            ``eval_loss`` and ``eval_accuracy`` are added to ``history_``. With a list of two or
            more eval sets, the names are ``eval_0_loss``, ``eval_1_loss`` and so on; with a dict,
            its keys replace ``eval``. A dict such as
            ``{"X": X, "y": y, "parents": parents}`` instead of a tuple passes further arguments.
        init : fitted estimator of the same class, optional
            A model for a warm start. The trees of a `TreeCRF` are kept, and those of `n_rounds`
            more rounds are added. On the same data the result is the same as that of one longer
            training run, bit for bit, except with a line search or conjugate directions, or if the
            number of warm-up rounds depends on `n_rounds` (``warm_rounds=None``, for an objective
            that has a warm-up). The labels of the model and the bins of its columns are kept too. A
            `LinearCRF` starts from the weights of `init`; weights of new attributes or labels start
            at zero.
        checkpoint : hedgerow.Checkpoint, optional
            A file to save the training state to, and to resume from if it exists. Callbacks
            are called for new rounds or iterations only. When training is resumed, `n_jobs`,
            `verbose` and `callbacks` may be different; so may `n_rounds`, unless the number of
            warm-up rounds depends on it (see `init`), and `max_iter` if the objective is the
            likelihood or the softmax margin.
        parents : list of arrays, or (N,) for a flat X, optional
            For tree-shaped graphs, in which the label of a position depends on that of its parent:
            the index of the parent of each position in its sequence, counted from 0; -1, None or
            NaN for a root. A sequence may have several roots. See also `parents_format` and
            `parents_column`. Without parents, sequences are chains. A model that was fitted with
            parents needs them to predict too.
        base_scores : list of (T, K) arrays, or (N, K), optional
            Initial scores of the labels at every position, such as those of another model
            (XGBoost's ``base_margin``): the scores of this model are added to them. One column per
            label, in the order of ``classes_``, which is sorted; columns of a DataFrame are matched
            by the names of the labels. All prediction methods need them too.
        X_base : optional
            Features of the base model of a `TreeCRF`, if it does not use X: the same sequences with
            other features, in any format.
        comm : hedgerow.comm.Comm, optional
            For training on several machines: each worker calls `fit` with its own sequences and its
            connection to the others. All workers get the same model.
        """
        check_checkpoint(checkpoint)
        training = self._training(eval_set, init, checkpoint, check_comm(comm))
        raw = RawData(X, y, groups, parents, base_scores, X_base, sample_weight)
        return self._become(training.run(raw))

    def read_labelled(
        self, raw: RawData, labels: Labels | None = None, comm: Comm = ALONE
    ) -> Labelled:
        """Read training data; the labels are given if this is the base of another model."""
        training = self._training(comm=comm)
        training.check_shareable(raw.X)
        return training.read(raw, labels)

    def fit_labelled(self: AnyEstimator, labelled: Labelled) -> AnyEstimator:
        """Train the model on data from `read_labelled`, all of them or a part."""
        return self._become(self._training(comm=labelled.comm).fit(labelled))

    def _training(
        self,
        eval_set: Any = None,
        init: Any = None,
        checkpoint: Checkpoint | None = None,
        comm: Comm = ALONE,
    ) -> Training[Any, Any]:
        """Check all parameters, and return how the model is trained."""
        check_label_parameters(self)
        stopping = Stopping.read(self, eval_set)
        self._check_init(init)
        trainer, base = self._trainer(init), self._base_training(init)
        return Training(self, trainer, stopping, eval_set, init, checkpoint, base, comm)

    def _become(self: AnyEstimator, attributes: dict[str, Any]) -> AnyEstimator:
        """Replace the previous model, if any, by the one that was just trained."""
        fitted = self.__dict__ | attributes
        for name in {"recipe_", "base_"} - attributes.keys():
            fitted.pop(name, None)
        _core.release_memory()
        self.__dict__ = fitted  # one step: Ctrl-C leaves the old model or the new one
        return self

    def _base_training(self, init: Any) -> BaseTraining | None:
        """Check the parameters of the base model, if any, and return how it is obtained."""
        return None

    @abstractmethod
    def _trainer(self, init: Any) -> Trainer[Any, Any]:
        """Check the parameters that only this kind of model has, and return its trainer."""

    def _check_init(self, init: Any) -> None:
        if init is None:
            return
        if not isinstance(init, Estimator) or init.learns != self.learns:
            name = type(self).__name__
            raise TypeError(f"init is of type {type(init).__name__}; expected a fitted {name}")
        check_fitted(init, "init is not fitted yet; fit it first, or leave init out")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which `hedgerow.load` reads.

        The file is written atomically, and keeps the permissions of a file that it replaces.
        Parameters are saved as plain values: sets, arrays and Series become lists. Objects other
        than ``base`` and ``queries`` cannot be saved: in a loaded model, ``callbacks`` is None, and
        so are ``objective`` and ``eval_metric`` unless they are names, and ``random_state`` unless
        it is a number. Such a model predicts as before; to train it again, set its objective first,
        ``set_params(objective=...)``.
        """
        check_fitted(self)
        persist.write(Path(path), type(self).__name__, self.to_state())

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write the model as JSON, for other programs.

        It contains the labels, the columns, the weights of label patterns, and the trees or the
        weights of attributes. :doc:`/guides/json` describes the schema, and has a short program
        that computes scores from it. hedgerow cannot load it; use `save` for that.

        Parameters
        ----------
        path
            The file to write; None: return the text.

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
        text = json.dumps(self._document(), allow_nan=False)
        if path is None:
            return text
        persist.write_file(Path(path), text.encode())
        return None

    def _document(self) -> dict[str, Any]:
        """The model as plain JSON values, with its base if it has one."""
        parameters = persist.pack_parameters(plain_parameters(self))
        document = export_model(self.model_, type(self).__name__, parameters)
        if (base := self.__dict__.get("base_")) is not None:
            document["base"] = base._document()
        return document

    def to_state(self) -> State:
        """The contents of a model file."""
        metadata = {
            "parameters": persist.pack_parameters(plain_parameters(self)),
            "classes": persist.pack_classes(self.classes_),
            "schema": self.model_.schema.to_json(),
            "loss": self.loss_,
            **self._pack(),
            "decode": self.decode_,
            "history": history_to_json(self.history_),
        }
        tensors = persist.pack_index(self.model_.index) | pack_grammar(self.model_.grammar)
        state = State(tensors, metadata)
        for potential in self.model_.potentials[-len(self.learns) :]:  # the given ones come first
            state |= potential.pack()
        if self.model_.takes_base_scores:
            state.metadata["base_scores"] = True
        if hasattr(self, "recipe_"):
            state.metadata["recipe"] = self.recipe_
        state |= pack_queries(self.model_.queries)
        if (base := self.__dict__.get("base_")) is not None:
            state |= pack_base(type(base).__name__, base.to_state())
        return state

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
            GivenParents(None, crf.parents_column, crf.parents_format).check()
            check_missing_label(crf.missing_label)
            count_threads(crf.n_jobs)
        crf.history_ = History(history_from_json(state.metadata))
        base = None
        if "base" in state.metadata:
            base = crf.base_ = _unpack_base(state, labels)
        if "recipe" in state.metadata:
            crf.recipe_ = state.metadata["recipe"]
            require(isinstance(crf.recipe_, dict), "its recipe is not valid")
        given = crf.given_potentials()
        if "base_scores" in state.metadata:
            require(state.metadata["base_scores"] is True, "its entry base_scores is not valid")
            given = (GivenScores(), *given)
        if base is not None:
            given = (base.model_.as_base(), *given)
        scores_pairs = any(potential.has_edges for potential in given)
        grammar = unpack_grammar(state, len(labels.classes), has_edges=scores_pairs)
        potentials = [
            kind.unpack(state, schema=schema, index=index, grammar=grammar) for kind in cls.learns
        ]
        crf.model_ = Model(
            labels,
            schema,
            index,
            grammar,
            crf.build_trellis(grammar),
            (*given, *potentials),
            decode,
            None if base is None else base.model_,
            unpack_queries(state),
        )
        if crf.model_.queries is not None:
            crf.queries = clone(crf.model_.queries)
        crf.loss_ = read_loss(state.metadata)
        crf._unpack(state.metadata)
        return crf


def _unpack_base(state: State, labels: Labels) -> Estimator:
    """Read the base model; raises `hedgerow.ModelFileError`."""
    with expecting("its base is not valid"):
        kind, inner = unpack_base(state)
        kinds = {each.__name__: each for each in Estimator.__subclasses__()}
        require(kind in kinds, "its base is not valid")
        base: Estimator = kinds[kind].from_state(inner)
        require(np.array_equal(base.classes_, labels.classes), "its base has other labels")
    return base
