"""Tables of `defaults.py`: settings ranked over all tasks, and the best one compared with peers."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence

import common

MEASURES = ("better", "viterbi", "marginals", "default")
BEFORE = "before, 200 rounds"
PEERS = ("xgboost", "lightgbm")
# Accuracy in percent by candidate and task.
Accuracies = dict[str, dict[str, float]]


def candidate(record: common.Record) -> str:
    """What is ranked: a setting after a number of rounds."""
    name = str(record["setting"])
    if "rounds" not in record or record["stops_early"]:
        return name
    return f"{name}, {record['rounds']} rounds"


def accuracy(record: common.Record, by: str) -> float:
    """Accuracy with a decoder; other libraries have only one."""
    if "viterbi" not in record:
        return float(record["marginals"])
    if by == "better":
        return float(max(record["viterbi"], record["marginals"]))
    if by == "default":
        by = "viterbi" if record["decode"] == "viterbi" else "marginals"
    return float(record[by])


def rank(column: Mapping[str, float]) -> dict[str, float]:
    """Rank of each candidate on one task, 1 for the best, means for those that are equal."""
    return {
        name: sum(other > own for other in column.values())
        + (1 + sum(other == own for other in column.values())) / 2
        for name, own in column.items()
    }


def count_ahead(row: dict[str, float], names: Sequence[str], found: Accuracies) -> int | None:
    """Number of tasks on which a candidate is better than all of these; None if one is missing."""
    if not found.keys() >= set(names):
        return None
    return sum(all(own > found[name][task] for name in names) for task, own in row.items())


def summarise(records: list[common.Record], by: str, chosen: str | None) -> common.Record:
    """Rank candidates that have been measured on all tasks; prints tables too, to stderr."""
    latest = {(candidate(record), record["task"]): record for record in records}
    tasks = sorted({task for _, task in latest})
    found: Accuracies = {}
    for (name, task), record in latest.items():
        found.setdefault(name, {})[task] = accuracy(record, by)
    complete = {name: row for name, row in found.items() if len(row) == len(tasks)}
    own = {name: row for name, row in complete.items() if name not in PEERS}
    if not own:
        sys.exit("no setting has been measured on all tasks")
    best = {task: max(row[task] for row in own.values()) for task in tasks}
    ranks = {task: rank({name: row[task] for name, row in complete.items()}) for task in tasks}
    rows = []
    for name, row in complete.items():
        losses = [best[task] - row[task] for task in tasks]
        own_records = [latest[name, task] for task in tasks]
        rows.append(
            {
                "setting": name,
                "mean_loss": round(statistics.mean(losses), 3),
                "worst_loss": round(max(losses), 3),
                "mean_rank": round(statistics.mean(ranks[task][name] for task in tasks), 2),
                "mean_accuracy": round(statistics.mean(row.values()), 3),
                "mean_log_likelihood": round(
                    statistics.mean(record["log_likelihood"] for record in own_records), 4
                ),
                "seconds": round(sum(record["cpu_seconds"] for record in own_records), 1),
                "ahead_of_before": count_ahead(row, [BEFORE], complete),
                "ahead_of_both_peers": count_ahead(row, PEERS, complete),
            }
        )
    rows.sort(key=lambda row: row["mean_loss"])
    chosen = chosen or next(row["setting"] for row in rows if row["setting"] not in PEERS)
    if chosen not in complete:
        sys.exit(f"{chosen!r} has not been measured on all tasks; known: {', '.join(complete)}")
    beside = [name for name in (BEFORE, chosen, *PEERS) if name in complete]
    by_task = [
        {"task": task, "best": best[task]}
        | {name: complete[name][task] for name in beside}
        | {"rounds_used": latest[chosen, task].get("rounds_used")}
        for task in tasks
    ]
    show(rows, by_task, sorted(set(found) - set(complete)), len(tasks))
    return {
        "by": by,
        "chosen": chosen,
        "settings": rows,
        "tasks": by_task,
        "incomplete": {name: len(row) for name, row in found.items() if name not in complete},
    }


def show(
    rows: list[common.Record], by_task: list[common.Record], incomplete: list[str], n_tasks: int
) -> None:
    print(f"{n_tasks} tasks, {len(rows)} settings", file=sys.stderr)
    for table in (rows, by_task):
        print("\n| " + " | ".join(table[0]) + " |", file=sys.stderr)
        print("|---" * len(table[0]) + "|", file=sys.stderr)
        for row in table:
            print("| " + " | ".join(map(str, row.values())) + " |", file=sys.stderr)
    if incomplete:
        print(f"\nnot on all tasks yet: {'; '.join(incomplete)}", file=sys.stderr)
