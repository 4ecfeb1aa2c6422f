"""Collections: Dask DataFrames and sets of Parquet files, divided among workers."""

from __future__ import annotations

from typing import Any

from distributed import Client, futures_of, wait

from hedgerow.dask.cluster import Plan, spread
from hedgerow.dask.local_data import ColumnRoles
from hedgerow.dask.partitions import ParquetRows, Part, find_files, is_parquet
from hedgerow.dask.watch import find_workers
from hedgerow.files import count_rows

__all__ = ["is_dask_frame", "plan_frame", "plan_parquet", "shuffle_frame"]


def is_dask_frame(X: Any) -> bool:
    """Whether an argument is a Dask DataFrame, without importing Dask's DataFrames."""
    return type(X).__module__.startswith("dask.") and hasattr(X, "map_partitions")


def plan_parquet(paths: Any, client: Client) -> Plan:
    """Files for each worker, balanced by number of rows."""
    sizes = {Part(path, ParquetRows(path)): count_rows(path) for path in find_files(paths)}
    filled = {part: size for part, size in sizes.items() if size}
    _check_any(len(filled))
    return spread(filled, _addresses(client))


def plan_frame(X: Any, roles: ColumnRoles, client: Client) -> Plan:
    """Partitions for each worker: those that it holds already."""
    roles.check(list(X.columns), "X")
    persisted = client.persist(X)
    futures = sorted(futures_of(persisted, client=client), key=lambda future: future.key[-1])
    wait(futures)
    sizes = client.gather(client.map(len, futures))
    holders = client.who_has(futures)
    plan: dict[str, list[Any]] = {}
    for number, (future, size) in enumerate(zip(futures, sizes, strict=True)):
        if size:
            address = min(holders[future.key])
            plan.setdefault(address, []).append(Part(f"partition {number}", future))
    _check_any(len(plan))
    return dict(sorted(plan.items()))


def shuffle_frame(X: Any, roles: ColumnRoles) -> Any:
    """A Dask DataFrame whose partitions hold whole groups."""
    if roles.position is None:
        raise ValueError(
            "shuffle=True does not keep the order of rows; name the column that the rows of a "
            "group are sorted by: position_column=..."
        )
    if is_parquet(X):
        import dask.dataframe as dd

        X = dd.read_parquet(find_files(X))
    roles.check(list(X.columns), "X")
    return X.shuffle(roles.group)


def _check_any(n_parts: int) -> None:
    if not n_parts:
        raise ValueError("X has no rows; expected at least one")


def _addresses(client: Client) -> list[str]:
    found = list(find_workers(client))
    if not found:
        raise ValueError("the cluster of the client has no workers; start some, and fit again")
    return found
