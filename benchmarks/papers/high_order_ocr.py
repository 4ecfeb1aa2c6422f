"""Figure 2: OCR letters, trained on one fold and tested on the nine others, orders 1 to 5.

The paper's claim: accuracy increases with the order, and the time per L-BFGS iteration grows at
most linearly. Orders alternate within each fold, so that other load on the machine affects all
equally; time ratios are computed within a fold.
"""

from __future__ import annotations

import argparse
import statistics
from typing import TYPE_CHECKING, Any

import common
from high_order_training import train

from hedgerow.datasets import load_ocr

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = ("folds",)
REPEATS = 1

ORDERS = (1, 2, 3, 4, 5)
N_FOLDS = 10
REG_LAMBDA = 1.0
QUICK_FOLDS = 2
QUICK_ITERATIONS = 10


def measure_fold(data: Any, held: int, parameters: dict[str, Any]) -> list[common.Record]:
    """A record for each order, trained on the one fold."""
    X, y, fold = data
    train_at = [i for i, f in enumerate(fold) if f == held]
    test_at = [i for i, f in enumerate(fold) if f != held]
    X_train, y_train = [X[i] for i in train_at], [y[i] for i in train_at]
    X_test, y_test = [X[i] for i in test_at], [y[i] for i in test_at]
    records = []
    for order in ORDERS:
        crf, record = train(X_train, y_train, order=order, reg_lambda=REG_LAMBDA, **parameters)
        accuracy = float(crf.score(X_test, y_test))
        common.log(
            f"fold {held} order {order}: accuracy {accuracy:.4f}, "
            f"{1e3 * record['seconds_per_iteration']:.1f} ms an iteration"
        )
        records.append({"fold": held, "order": order, "accuracy": accuracy, **record})
    return records


def measure(part: str, options: argparse.Namespace) -> common.Record:
    data = load_ocr()
    parameters: dict[str, Any] = {"n_jobs": options.jobs}
    if options.quick:
        parameters |= {"max_iter": QUICK_ITERATIONS, "tol": 0}
    folds = range(QUICK_FOLDS if options.quick else N_FOLDS)
    return {"fits": [fit for held in folds for fit in measure_fold(data, held, parameters)]}


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    (record,) = runs["folds"]
    fits = record["fits"]
    first = [fit for fit in fits if fit["order"] == ORDERS[0]]
    orders = [summarise_order([f for f in fits if f["order"] == order], first) for order in ORDERS]
    return {
        "setting": "trained on one fold, tested on the others; means and standard deviations of "
        "accuracy, medians of everything else, over folds",
        "seconds_note": "seconds per iteration are training seconds over L-BFGS iterations at the "
        "default tolerance: the fixed cost of a fit and extra line-search steps are included",
        "orders": orders,
        "time_grows_no_more_than_linearly": all(o["at_most_order_times_order_1"] for o in orders),
    }


def summarise_order(fits: list[common.Record], first: list[common.Record]) -> common.Record:
    """Figures of one order over the folds; `first` are the fits of order 1, fold by fold."""
    order = fits[0]["order"]
    accuracies = [fit["accuracy"] for fit in fits]
    mean = statistics.mean(accuracies)
    pairs = list(zip(fits, first, strict=True))
    gain, gain_error = common.mean_and_error([f["accuracy"] - g["accuracy"] for f, g in pairs])
    ratio = statistics.median(
        f["seconds_per_iteration"] / g["seconds_per_iteration"] for f, g in pairs
    )
    medians = ("iterations", "n_patterns", "n_weights", "train_seconds", "seconds_per_iteration")
    return {
        "order": order,
        "accuracy": mean,
        "accuracy_deviation": statistics.stdev(accuracies),
        "error": 1 - mean,
        "gain_over_order_1": gain,
        "gain_over_order_1_error": gain_error,
        **{name: statistics.median(fit[name] for fit in fits) for name in medians},
        "train_seconds_all_folds": sum(fit["train_seconds"] for fit in fits),
        "seconds_per_iteration_by_fold": [fit["seconds_per_iteration"] for fit in fits],
        "seconds_per_iteration_over_order_1": ratio,
        "at_most_order_times_order_1": ratio <= order,
    }


def draw(summary: common.Record) -> Figure:
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
    draw_accuracy(left, summary["orders"])
    draw_seconds(right, summary["orders"])
    for panel in (left, right):
        panel.set_xticks(ORDERS)
        panel.set_xlabel("maximum order of the label patterns")
        panel.grid(alpha=0.3)
    return figure


def draw_accuracy(panel: Axes, orders: list[common.Record]) -> None:
    panel.errorbar(
        [record["order"] for record in orders],
        [100 * record["accuracy"] for record in orders],
        [100 * record["accuracy_deviation"] for record in orders],
        marker="o",
        capsize=4,
    )
    panel.set_ylabel("test accuracy, %")
    panel.set_title("letters read right (bars: deviation over folds)")


def draw_seconds(panel: Axes, orders: list[common.Record]) -> None:
    at = [record["order"] for record in orders]
    medians = [1e3 * record["seconds_per_iteration"] for record in orders]
    for record in orders:
        folds = [1e3 * seconds for seconds in record["seconds_per_iteration_by_fold"]]
        panel.plot([record["order"]] * len(folds), folds, ".", color="grey", alpha=0.5)
    panel.plot([], [], ".", color="grey", label="each fold")
    panel.plot(at, medians, marker="o", label="median over folds")
    linear = [order / at[0] * medians[0] for order in at]
    panel.plot(at, linear, linestyle="--", color="black", label="order times that of order 1")
    panel.set_ylabel("milliseconds per L-BFGS iteration")
    panel.set_ylim(bottom=0)
    panel.set_title("training time")
    panel.legend()
