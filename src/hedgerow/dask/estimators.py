"""Estimators: the ordinary ones, which also take Dask DataFrames and sets of Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from distributed import Client, default_client
from numpy.typing import ArrayLike

import hedgerow.linear_crf
import hedgerow.tree_crf
from hedgerow.checkpoint import Checkpoint, check_checkpoint
from hedgerow.dask.cluster import Plan, train
from hedgerow.dask.collections import is_dask_frame, plan_frame, plan_parquet, shuffle_frame
from hedgerow.dask.local_data import ColumnRoles, FileReader, Reader, TableReader
from hedgerow.dask.partitions import is_parquet
from hedgerow.dask.prediction import predict_frame
from hedgerow.dask.task import Job, common_warnings
from hedgerow.data_warning import warn_user
from hedgerow.decoding import Decode
from hedgerow.estimator import Estimator
from hedgerow.files import Recipe
from hedgerow.fitted import check_fitted
from hedgerow.parameters import check_number
from hedgerow.progress import Progress

__all__ = ["LinearCRF", "OnDask", "TreeCRF"]

AnyEstimator = TypeVar("AnyEstimator", bound="OnDask")
TIMEOUT = 300.0
# What to do instead of passing these arguments.
IN_COLUMNS = {
    "groups": "set group_column to the name of a column of X",
    "parents": "set parents_column to the name of a column of X",
}

if TYPE_CHECKING:
    _Base = Estimator
else:
    _Base = object  # a mixin: the estimator is the next base class


class OnDask(_Base):
    """The methods of both estimators for Dask collections; everything else is inherited."""

    def fit(
        self: AnyEstimator,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | str | None = None,
        groups: Any = None,
        eval_set: Any = None,
        init: AnyEstimator | None = None,
        checkpoint: Checkpoint | None = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
        comm: Any = None,
        *,
        client: Client | None = None,
        shuffle: bool = False,
        position_column: str | None = None,
        timeout: float = TIMEOUT,
    ) -> AnyEstimator:
        """Train the model on the workers of a Dask cluster.

        The model, and the file that `save` writes, are the same, bit for bit, as on one machine,
        for any number of workers and however the sequences are divided among them. Every worker
        that holds some of the data takes part, with all of its threads unless `n_jobs` is set.

        Parameters
        ----------
        X : Dask DataFrame, or paths of Parquet files
            One row per position, with the sequence ids in the column that the parameter
            `group_column` names. Parquet files are given by the path of a file or a folder, a
            pattern such as ``"data/*.parquet"``, or a list of these; the workers read the files, so
            paths must be valid on all of them. All rows of a group must be in one partition or
            file, unless `shuffle` is given, and one after the other, unless `position_column` is
            given. For any other X, the model is trained in this process, as by ``hedgerow.TreeCRF``
            and ``hedgerow.LinearCRF``.
        y : str
            Name of the column of X that holds the labels.
        sample_weight : str, optional
            Name of the column of X with the weight of each row.
        groups, parents, base_scores, X_base, comm
            Not supported with Dask. Instead of `groups` and `parents`, use the parameters
            `group_column` and `parents_column`.
        eval_set, init, checkpoint
            As on one machine. An eval set must be in memory, not a Dask collection, and is sent to
            every worker. The checkpoint is written by one of the workers, and training may resume
            on others, so it must be in a folder that all workers share.
        client : distributed.Client, optional
            The client of the cluster; by default the one that was created last.
        shuffle : bool, default False
            Shuffle first, so that each group is in one partition; needs `position_column`.
        position_column : str, optional
            Name of a column of X by which the rows of each group are sorted; not a feature.
        timeout : float, default 300
            Seconds that workers wait for each other. If a worker does not answer in time or is
            lost, training ends with a `hedgerow.comm.WorkerError`; call `fit` again with the same
            checkpoint to resume on the workers that are left.

        Raises
        ------
        hedgerow.comm.WorkerError
            A worker was lost or did not answer in time, or the workers have different models,
            because their machines round floating-point numbers differently.
        ValueError, TypeError
            As on one machine, and the message also names the partition and the group; or if a group
            is in two partitions.
        """
        if not (is_dask_frame(X) or is_parquet(X)):
            return super().fit(
                *(X, y, sample_weight, groups, eval_set, init, checkpoint),
                *(parents, base_scores, X_base, comm),
            )
        given = {"groups": groups, "parents": parents, "base_scores": base_scores}
        _check_not_given(**given, X_base=X_base, comm=comm)
        roles = self._roles(y, sample_weight, position_column)
        client = default_client() if client is None else client
        if shuffle:
            X = shuffle_frame(X, roles)
        plan = plan_frame(X, roles, client) if is_dask_frame(X) else plan_parquet(X, client)
        arguments = {"eval_set": eval_set, "init": init, "checkpoint": checkpoint}
        return self._train(client, plan, TableReader(roles), arguments, timeout)

    def fit_files(
        self: AnyEstimator,
        paths: Any,
        recipe: Recipe,
        *,
        client: Client,
        eval_set: Any = None,
        checkpoint: Checkpoint | None = None,
        timeout: float = TIMEOUT,
    ) -> AnyEstimator:
        """Train the model on Parquet files, which the workers read as the command line would.

        Parameters
        ----------
        paths
            See `fit`.
        recipe
            How the files are read, see `hedgerow.files.make_recipe`.
        client, eval_set, checkpoint, timeout
            See `fit`.
        """
        arguments = {"eval_set": eval_set, "checkpoint": checkpoint}
        plan = plan_parquet(paths, client)
        return self._train(client, plan, FileReader(recipe), arguments, timeout)

    def _train(
        self: AnyEstimator,
        client: Client,
        plan: Plan,
        reader: Reader,
        arguments: dict[str, Any],
        timeout: float,
    ) -> AnyEstimator:
        check_checkpoint(arguments["checkpoint"])
        check_number("timeout", timeout, above=0)
        job = Job(self._ordinary(), reader, arguments, f"hedgerow-{uuid4().hex}")
        n_steps = self._trainer(arguments.get("init")).n_steps
        with Progress(n_steps, self.verbose) as progress:
            outcomes = train(client, plan, job, timeout=timeout, report=progress.update)
        for warning in common_warnings(outcomes):
            warn_user(*warning)
        return self._become(outcomes[0].fitted)

    def predict(
        self,
        X: Any,
        *,
        groups: Any = None,
        known: Any = None,
        decode: Decode | None = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
    ) -> Any:
        """Label every position.

        If X is a Dask DataFrame, its partitions must hold whole sequences, and the result is a Dask
        Series with the same partitions and index. It is lazy: labels are computed when they are
        needed. Any other X is treated as on one machine, see `hedgerow.TreeCRF.predict`.
        """
        given = {
            "groups": groups,
            "known": known,
            "parents": parents,
            "base_scores": base_scores,
            "X_base": X_base,
        }
        if not is_dask_frame(X):
            return super().predict(X, decode=decode, **given)
        return self._predict_frame("predict", X, given, decode=decode)

    def predict_marginals(
        self,
        X: Any,
        *,
        groups: Any = None,
        known: Any = None,
        parents: Any = None,
        base_scores: Any = None,
        X_base: Any = None,
    ) -> Any:
        """Probability of each label at each position, given the whole sequence.

        If X is a Dask DataFrame, its partitions must hold whole sequences, and the result is a Dask
        DataFrame with the same partitions and one column per label. Any other X is treated as on
        one machine, see `hedgerow.TreeCRF.predict_marginals`.
        """
        given = {
            "groups": groups,
            "known": known,
            "parents": parents,
            "base_scores": base_scores,
            "X_base": X_base,
        }
        if not is_dask_frame(X):
            return super().predict_marginals(X, **given)
        return self._predict_frame("predict_marginals", X, given)

    def _predict_frame(self, method: str, X: Any, given: dict[str, Any], **options: Any) -> Any:
        """Call a method for each partition; arguments that would be divided like X are refused."""
        _check_not_given(**given)
        check_fitted(self)
        return predict_frame(self._ordinary(), X, method, options)

    def _ordinary(self) -> Estimator:
        """The ordinary estimator with the same parameters, and with the model if fitted."""
        kinds = (cls for cls in type(self).__mro__ if issubclass(cls, Estimator))
        kind = next(cls for cls in kinds if not issubclass(cls, OnDask))
        crf: Any = kind.__new__(kind)
        crf.__dict__ = dict(self.__dict__)
        assert isinstance(crf, Estimator)
        return crf

    def _roles(self, y: Any, sample_weight: Any, position_column: Any) -> ColumnRoles:
        named = {"y": y, "sample_weight": sample_weight, "position_column": position_column}
        for role, name in named.items():
            if not isinstance(name, str) and (role == "y" or name is not None):
                raise TypeError(
                    f"{role} is of type {type(name).__name__}; expected the name of a column of X, "
                    "which is a Dask DataFrame or a set of Parquet files"
                )
        if not isinstance(self.group_column, str):
            raise ValueError(
                f"group_column is {self.group_column!r}; expected the name of the column of X that "
                f"says which rows make up a sequence: {type(self).__name__}(group_column=...)"
            )
        parents = self.parents_column
        if isinstance(parents, int):
            raise ValueError(
                f"parents_column is {parents}; expected the name of a column of X, which is a Dask "
                "DataFrame or a set of Parquet files"
            )
        return ColumnRoles(self.group_column, y, sample_weight, position_column, parents)


class TreeCRF(OnDask, hedgerow.tree_crf.TreeCRF):
    """`hedgerow.TreeCRF`, with the same parameters, trained on a Dask cluster."""


class LinearCRF(OnDask, hedgerow.linear_crf.LinearCRF):
    """`hedgerow.LinearCRF`, with the same parameters, trained on a Dask cluster."""


def _check_not_given(**arguments: Any) -> None:
    """Raise ValueError for arguments that are supported only for data in memory."""
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(
                f"{name} is given, which is not supported if X is a Dask DataFrame or a set of "
                f"Parquet files; {IN_COLUMNS.get(name, 'leave it out')}, or pass data in memory"
            )
