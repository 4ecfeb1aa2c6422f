"""Figure 1: accuracy against maximum order, on labels from a random Markov model of order k.

Each label depends on the k before it, observations are the label's mean plus noise. The paper's
claim: orders up to k help, higher ones do not, and the gain is larger if observations are noisier.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import common
import numpy as np
from high_order_training import train
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = ("k=2", "k=3")
REPEATS = 1

N_STATES = 5
N_NEXT = 2
N_DIMENSIONS = 3
LENGTH = 20
REG_LAMBDA = 1.0

# A gain must be larger than both of these.
ERRORS_FOR_A_GAIN = 2.0
SMALLEST_GAIN = 0.001


@dataclass(frozen=True)
class Sizes:
    """Size of the experiment."""

    n_models: int = 5
    n_sequences: int = 500
    """Number of training sequences, and of test sequences."""
    noises: tuple[float, ...] = (0.05, 0.1, 0.25, 0.5, 1.0)
    orders: tuple[int, ...] = (0, 1, 2, 3, 4, 5)


QUICK = Sizes(n_models=2, n_sequences=60, noises=(0.1, 0.5), orders=(0, 1, 2, 3, 4))


@dataclass(frozen=True, eq=False)
class MarkovModel:
    """Labels of order k; a context is the last k labels as a number in base n."""

    order: int
    next_states: NDArray[np.int64]
    """(n^k, r) labels that may follow each context."""
    next_probs: NDArray[np.float64]
    """(n^k, r) how probable each of them is."""
    means: NDArray[np.float64]
    """(n, m) mean observation of each label."""


def build_model(order: int, rng: np.random.Generator) -> MarkovModel:
    n_contexts = N_STATES**order
    shuffled = rng.random((n_contexts, N_STATES)).argsort(axis=1)
    weights = rng.random((n_contexts, N_NEXT))
    return MarkovModel(
        order=order,
        next_states=shuffled[:, :N_NEXT],
        next_probs=weights / weights.sum(axis=1, keepdims=True),
        means=rng.random((N_STATES, N_DIMENSIONS)),
    )


def draw_states(
    model: MarkovModel, n_sequences: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Labels (n_sequences, LENGTH): k at random, then by the model."""
    k = model.order
    places = N_STATES ** np.arange(k)[::-1]
    states = np.empty((n_sequences, LENGTH), dtype=np.int64)
    states[:, :k] = rng.integers(N_STATES, size=(n_sequences, k))
    for t in range(k, LENGTH):
        context = states[:, t - k : t] @ places
        passed = rng.random((n_sequences, 1)) > model.next_probs[context].cumsum(axis=1)
        choice = passed[:, :-1].sum(axis=1)
        states[:, t] = model.next_states[context, choice]
    return states


def window_features(observations: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Previous, current and next observation of each position: S arrays of (LENGTH, 3 m)."""
    padded = np.pad(observations, ((0, 0), (1, 1), (0, 0)))
    return list(np.concatenate([padded[:, :-2], padded[:, 1:-1], padded[:, 2:]], axis=2))


@dataclass(frozen=True, eq=False)
class Draw:
    """Labels, their mean observations, and unit noise, which is scaled to any level."""

    states: NDArray[np.int64]
    means: NDArray[np.float64]
    unit_noise: NDArray[np.float64]

    def features(self, noise: float) -> list[NDArray[np.float64]]:
        return window_features(self.means + noise * self.unit_noise)


def draw_set(model: MarkovModel, n_sequences: int, rng: np.random.Generator) -> Draw:
    states = draw_states(model, n_sequences, rng)
    noise = rng.standard_normal((*states.shape, N_DIMENSIONS))
    return Draw(states, model.means[states], noise)


def measure_model(k: int, seed: int, sizes: Sizes, jobs: int | None) -> list[common.Record]:
    """Accuracy for every noise and order, on one random model and one draw of labels from it."""
    rng = np.random.default_rng([k, seed])
    model = build_model(k, rng)
    training, test = (draw_set(model, sizes.n_sequences, rng) for _ in range(2))
    records = []
    for noise in sizes.noises:
        X, X_test = training.features(noise), test.features(noise)
        for order in sizes.orders:
            crf, record = train(
                X, list(training.states), order=order, reg_lambda=REG_LAMBDA, n_jobs=jobs
            )
            accuracy = float(crf.score(X_test, list(test.states)))
            common.log(f"k={k} model {seed} sigma={noise} order={order}: {accuracy:.4f}")
            records.append(
                {"seed": seed, "sigma": noise, "order": order, "accuracy": accuracy, **record}
            )
    return records


def measure(part: str, options: argparse.Namespace) -> common.Record:
    k = int(part.removeprefix("k="))
    sizes = QUICK if options.quick else Sizes()
    seeds = range(sizes.n_models)
    return {
        "k": k,
        "fits": [fit for seed in seeds for fit in measure_model(k, seed, sizes, options.jobs)],
    }


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    return {
        "setting": f"{N_STATES} states, {N_NEXT} next ones, {N_DIMENSIONS}-dimensional "
        f"observations, sequences of {LENGTH}; figures are means over random models, errors are "
        "standard errors over them",
        "a_gain_counts_when": f"above {ERRORS_FOR_A_GAIN:g} standard errors and {SMALLEST_GAIN:g}",
        "models": [summarise_order(record["k"], record["fits"]) for (record,) in runs.values()],
    }


def summarise_order(k: int, fits: list[common.Record]) -> common.Record:
    noises = sorted({fit["sigma"] for fit in fits})
    return {
        "k": k,
        "cells": [
            summarise_cell([fit for fit in fits if (fit["sigma"], fit["order"]) == (noise, order)])
            for noise in noises
            for order in sorted({fit["order"] for fit in fits})
        ],
        "by_sigma": [
            {"sigma": noise, **judge_gains(k, [fit for fit in fits if fit["sigma"] == noise])}
            for noise in noises
        ],
        "all_sigmas": judge_gains(k, fits),
    }


def summarise_cell(fits: list[common.Record]) -> common.Record:
    """Summary over the random models for one noise and order."""
    accuracies = [fit["accuracy"] for fit in fits]
    mean, error = common.mean_and_error(accuracies)
    medians = ("n_patterns", "iterations", "train_seconds", "seconds_per_iteration")
    return {
        "sigma": fits[0]["sigma"],
        "order": fits[0]["order"],
        "accuracy": mean,
        "accuracy_error": error,
        "accuracies": accuracies,
        **{name: statistics.median(fit[name] for fit in fits) for name in medians},
    }


def judge_gains(k: int, fits: list[common.Record]) -> common.Record:
    """Gains in accuracy from each order to the next, and whether they support the claim.

    Less than k labels may be hardly informative. So the claim requires that order k is better than
    order 1 and than order k - 1; whether every step in between is a gain is only reported.
    """
    orders = sorted({fit["order"] for fit in fits})
    steps = [paired_gain(fits, before, after) for before, after in pairwise(orders)]
    total = paired_gain(fits, 1, k)
    up_to_k = [step["counts"] for step in steps if step["to_order"] <= k]
    beyond = [step["counts"] for step in steps if step["to_order"] > k]
    rises = total["counts"] and up_to_k[-1]
    return {
        "steps": steps,
        "from_order_1_to_k": total,
        "every_step_up_to_k_gains": all(up_to_k),
        "rises_up_to_the_true_order": rises,
        "rises_beyond": any(beyond),
        "rises_up_to_the_true_order_and_not_beyond": rises and not any(beyond),
    }


def paired_gain(fits: list[common.Record], before: int, after: int) -> common.Record:
    """Gain in accuracy from one order to another, paired by random model.

    All noise levels use the labels of the same models, so they are averaged first: only models are
    independent.
    """
    low, high = (model_accuracies([f for f in fits if f["order"] == o]) for o in (before, after))
    mean, error = common.mean_and_error([b - a for a, b in zip(low, high, strict=True)])
    counts = mean > SMALLEST_GAIN and mean > ERRORS_FOR_A_GAIN * error
    return {
        "from_order": before,
        "to_order": after,
        "gain": mean,
        "error": error,
        "counts": counts,
    }


def model_accuracies(fits: list[common.Record]) -> list[float]:
    """Mean accuracy of each random model, by seed."""
    seeds = sorted({fit["seed"] for fit in fits})
    return [statistics.mean(f["accuracy"] for f in fits if f["seed"] == seed) for seed in seeds]


def draw(summary: common.Record) -> Figure:
    """A panel for each true order, a line for each noise."""
    from matplotlib import pyplot as plt

    models = summary["models"]
    figure, panels = plt.subplots(
        1, len(models), figsize=(10, 4.5), sharey=True, layout="constrained", squeeze=False
    )
    for panel, model in zip(panels[0], models, strict=True):
        draw_panel(panel, model)
    panels[0][0].set_ylabel("test accuracy, % (bars: standard error)")
    panels[0][-1].legend(title="noise", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_panel(panel: Axes, model: Any) -> None:
    for noise in sorted({cell["sigma"] for cell in model["cells"]}):
        cells = [cell for cell in model["cells"] if cell["sigma"] == noise]
        panel.errorbar(
            [cell["order"] for cell in cells],
            [100 * cell["accuracy"] for cell in cells],
            [100 * cell["accuracy_error"] for cell in cells],
            marker="o",
            capsize=3,
            label=rf"$\sigma$ = {noise:g}",
        )
    panel.axvline(model["k"], color="grey", linestyle=":", zorder=0)
    panel.set_title(f"labels of order k = {model['k']} (dotted)")
    panel.set_xlabel("maximum order of the label patterns")
    panel.grid(alpha=0.3)
