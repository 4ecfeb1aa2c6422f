"""Figure 1a: which hidden Markov models have the accuracies that the text of the paper gives.

The parameters of the paper's model are in a figure that is not part of its text. But the text gives
its accuracies: 79.6 % of the states by marginals and 71.0 % by Viterbi. Here all models of a grid
of round numbers are tried: probabilities to stay in each state, and those of the bases in each, in
tenths, or in twentieths where A is as frequent as T and C as G. Those with similar accuracies on
short sequences are measured on long ones, several times: the accuracy of one draw of a million
bases has a standard deviation of up to half a point where states last long. A third figure of the
text, 74.9 % by Viterbi after training for the maximum margin, is used as a test: it is predicted by
training on sequences drawn from the models.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import common
import numpy as np
from experiments import run_trainings
from labelwise_markov import STATES, HiddenMarkov
from labelwise_training import accuracies, one_hot

PARTS = ("solve",)
PUBLISHED = {"marginal": 0.796, "viterbi": 0.710}
PUBLISHED_MARGIN = 0.749  # by Viterbi

STAYS = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
# Lengths of short sequences, and the maximum difference in accuracy for a model to be kept.
STAGES = ((20_000, 0.08), (200_000, 0.03))
QUICK_STAGES = ((200, 0.05), (2000, 0.02))
CHUNK = 200
N_PIECES = 100
QUICK_LENGTH = 20_000

Emissions = tuple[tuple[float, ...], tuple[float, ...]]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--length", type=int, default=10**6, help="of the long sequences")
    parser.add_argument("--draws", type=int, default=3, help="of long sequences")
    parser.add_argument("--solutions", type=int, default=8, help="models to train the margin on")


def partitions(total: int, n_parts: int) -> Iterator[tuple[int, ...]]:
    """All tuples of integers of at least 1 with a given sum."""
    if n_parts == 1:
        yield (total,)
        return
    for first in range(1, total - n_parts + 2):
        for others in partitions(total - first, n_parts - 1):
            yield (first, *others)


def list_emissions() -> list[Emissions]:
    """Pairs of distributions that differ by more than the names of the bases."""
    tenths = list(partitions(10, 4))
    pairs = {tuple(sorted(zip(p, q, strict=True))) for p in tenths for q in tenths if p != q}
    found: list[Emissions] = [
        (tuple(p / 10 for p, _ in pair), tuple(q / 10 for _, q in pair)) for pair in sorted(pairs)
    ]
    symmetric = [(a / 20, (10 - a) / 20, (10 - a) / 20, a / 20) for a in range(1, 10)]
    known = {canonical(emissions) for emissions in found}
    found += [
        (p, q)
        for p, q in product(symmetric, repeat=2)
        if p[0] < q[0] and canonical((p, q)) not in known
    ]
    return found


def canonical(emissions: Emissions) -> tuple[tuple[float, float], ...]:
    return tuple(sorted(zip(*emissions, strict=True)))


def distance(found: dict[str, float]) -> float:
    """The larger of the two differences from the published accuracies."""
    return max(abs(found[decode] - share) for decode, share in PUBLISHED.items())


def measure_own(model: HiddenMarkov, length: int, draw: int) -> dict[str, float]:
    """Accuracies of the model that generated the sequence; all use the same random numbers."""
    return model.accuracies(*model.draw(length, np.random.default_rng(draw)))


def find_near(models: list[HiddenMarkov], length: int, near: float) -> list[HiddenMarkov]:
    """Models with similar accuracies on a short sequence."""
    return [model for model in models if distance(measure_own(model, length, 0)) < near]


def predict_margin(model: HiddenMarkov, length: int, draw: int) -> dict[str, float]:
    """Accuracies after training for the maximum margin, by decoder, on another sequence."""
    from hedgerow import LinearCRF

    rng = np.random.default_rng(draw)
    (bases, states), (test_bases, test_states) = (model.draw(length, rng) for _ in range(2))
    groups = np.arange(length) * N_PIECES // length
    crf = LinearCRF(objective="max_margin", n_jobs=1)
    crf.fit(one_hot(bases, 4), STATES[states], groups=groups)
    return accuracies(crf, one_hot(test_bases, 4), STATES[test_states], groups)


def average(
    figure: Callable[..., dict[str, float]],
    models: list[HiddenMarkov],
    length: int,
    options: argparse.Namespace,
) -> list[dict[str, float]]:
    """Means over draws for each model."""
    draws = range(1, 1 + (2 if options.quick else options.draws))
    cases = [(model, length, draw) for model in models for draw in draws]
    found = iter(run_trainings(figure, cases, options.jobs))
    records = [[next(found) for _ in draws] for _ in models]
    return [
        {decode: statistics.mean(one[decode] for one in own) for decode in PUBLISHED}
        for own in records
    ]


def measure(part: str, options: argparse.Namespace) -> common.Record:
    length = QUICK_LENGTH if options.quick else options.length
    models = [
        HiddenMarkov((stay_c, stay_i), emissions)
        for stay_c, stay_i, emissions in product(STAYS, STAYS, list_emissions())
    ]
    near = models
    for stage in QUICK_STAGES if options.quick else STAGES:
        chunks = [(near[at : at + CHUNK], *stage) for at in range(0, len(near), CHUNK)]
        near = [one for found in run_trainings(find_near, chunks, options.jobs) for one in found]
        common.log(f"{len(near)} of {len(models)} models are near on {stage[0]} bases")
    found = average(measure_own, near, length, options)
    ranked = sorted(zip(near, found, strict=True), key=lambda pair: distance(pair[1]))
    best = ranked[: options.solutions]
    margins = average(predict_margin, [model for model, _ in best], length, options)
    return {
        "n_models": len(models),
        "n_near": len(near),
        "solutions": [
            describe(model, shares, margin)
            for (model, shares), margin in zip(best, margins, strict=True)
        ],
    }


def describe(
    model: HiddenMarkov, shares: dict[str, float], margin: dict[str, float]
) -> dict[str, Any]:
    return {
        "stay": model.stay,
        "emissions": model.emissions,
        "accuracy": shares,
        "distance": distance(shares),
        "margin_accuracy": margin,
        "distance_with_margin": max(distance(shares), abs(margin["viterbi"] - PUBLISHED_MARGIN)),
    }


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    (record,) = runs["solve"]
    return {
        "setting": __doc__,
        "published": {**PUBLISHED, "max_margin_viterbi": PUBLISHED_MARGIN},
        **{name: record[name] for name in ("n_models", "n_near", "solutions")},
    }
