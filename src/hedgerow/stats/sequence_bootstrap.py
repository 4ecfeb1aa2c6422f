"""Bootstrap: confidence intervals of scores from resampled sequences."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import compress, pairwise
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from hedgerow.counting import count_of
from hedgerow.encode.codes import is_missing
from hedgerow.encode.groups import read_groups
from hedgerow.metrics.pairs import pair_sequences
from hedgerow.parameters import check_choice, check_number, read_random_state
from hedgerow.scorers import PositionScorer, make_position_scorer
from hedgerow.stats.tallies import OWN, ChunkMetric, LabelLists, tally_metric
from hedgerow.suggestions import suggest

__all__ = ["Bootstrap", "bootstrap", "resample"]

Method = Literal["percentile", "basic", "BCa"]
# Number of resampled sequence indices in memory at a time.
BATCH = 1 << 22

# From the weight of each sequence, (S,), to a score.
Measure = Callable[[NDArray[np.float64]], float]


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """A score, or the difference of two scores, with its confidence interval.

    Attributes
    ----------
    value : float
        The score on all sequences; for two models, the score of the first minus that of the second.
    low, high : float
        Confidence interval.
    standard_error : float
        Standard deviation of the score over the resamples.
    p_value : float or None
        For two models: probability of a difference at least this large, in either direction, if
        they are equally good.
    distribution : (n_resamples,) array
        The score of each resample.
    """

    value: float
    low: float
    high: float
    standard_error: float
    p_value: float | None
    distribution: NDArray[np.float64] = field(repr=False)


def bootstrap(
    metric: Any,
    y_true: Any,
    y_pred: Any,
    y_pred_b: Any = None,
    *,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    method: Method = "percentile",
    random_state: Any = None,
) -> Bootstrap:
    """Confidence interval of a score, or of the difference between two models, by the bootstrap.

    Many samples of the same size are drawn from the sequences, with replacement, and scored. Whole
    sequences are drawn, because their positions depend on each other. Two models are scored on the
    same samples (paired), which makes the interval of their difference narrower. The implementation
    uses `scipy.stats.bootstrap`.

    Parameters
    ----------
    metric : str or callable
        "accuracy", "sequence_accuracy", "chunk_f1", "chunk_precision", "chunk_recall", the name of
        one of scikit-learn's scorers that compare labels, such as "f1_macro", or a scorer from
        `hedgerow.scorers.make_position_scorer`. Or a function of two lists of label lists that
        returns a number, such as the ``flat_..._score`` functions of `hedgerow.metrics`. Metrics
        given by name, scorers and these functions are fast, because labels are counted only once;
        any other function is called for each resample.
    y_true : list of label lists, or (N,) with `groups`
        True labels. Positions whose label is missing (None or NaN) and sequences without any label
        are left out.
    y_pred : the same
        Predictions of a model.
    y_pred_b : the same, optional
        Predictions of a second model; the result is then about the difference.
    groups : (N,), optional
        For flat labels, the sequence of each row.
    sample_weight : (S,), optional
        Weight of each sequence; a function must accept the argument ``sample_weight``, one weight
        per sequence.
    n_resamples : int, default 1000
        Number of bootstrap samples.
    confidence_level : float, default 0.95
        Probability that the interval contains the true value.
    method : {"percentile", "basic", "BCa"}, default "percentile"
        Type of interval. "BCa" corrects for bias and skewness, which helps with few sequences; it
        also computes the score without each sequence in turn.
    random_state : int, RandomState or None, default None
        Random seed.

    Examples
    --------
    >>> from hedgerow.stats import bootstrap
    >>> y_true = [["A", "B"], ["A", "A"], ["B", "B"], ["B", "A"]] * 25
    >>> y_pred = [["A", "B"], ["A", "B"], ["B", "B"], ["B", "A"]] * 25
    >>> found = bootstrap("accuracy", y_true, y_pred, random_state=0)
    >>> found.value, 0.8 < found.low < found.value < found.high < 0.95
    (0.875, True)
    >>> pair = bootstrap("f1_macro", y_true, y_pred, y_true, n_resamples=200, random_state=0)
    >>> pair.p_value < 0.01
    True
    """
    check_number("n_resamples", n_resamples, minimum=1, integer=True)
    check_number("confidence_level", confidence_level, above=0, below=1)
    check_choice("method", method, ("percentile", "basic", "BCa"))
    random = read_random_state(random_state)
    metric = _read_metric(metric)
    if groups is not None:
        offsets = read_groups(groups, len(y_true), table="y_true")
        y_true, y_pred, y_pred_b = (_cut(y, offsets) for y in (y_true, y_pred, y_pred_b))
    truth, *predictions = _keep_known(y_true, y_pred, y_pred_b)
    weights = _read_weights(sample_weight, len(truth))
    kept = np.array([len(labels) > 0 for labels in truth], np.bool_)
    if kept.sum() < 2:
        raise ValueError(
            f"y_true has {count_of(int(kept.sum()), 'sequence')} with labels; a bootstrap needs "
            "at least two"
        )
    truth, *predictions = (list(compress(side, kept)) for side in (truth, *predictions))
    weights = None if weights is None else weights[kept]
    measures = [_prepare(metric, truth, side, weights) for side in predictions]
    return resample(
        measures,
        len(truth),
        n_resamples=int(n_resamples),
        confidence_level=float(confidence_level),
        method=method,
        seed=random.randint(np.iinfo(np.int32).max),
    )


def resample(
    measures: list[Measure],
    n_sequences: int,
    *,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    method: Method = "percentile",
    seed: int = 0,
) -> Bootstrap:
    """Draw sequences and compute the score; for two measures, the difference."""
    from scipy import stats

    def measure(counts: NDArray[np.float64]) -> float:
        scores = [each(counts) for each in measures]
        return scores[0] if len(scores) == 1 else scores[0] - scores[1]

    def score(drawn: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        rows = drawn.reshape(-1, drawn.shape[-1])
        found = [measure(np.bincount(row, minlength=n_sequences).astype(float)) for row in rows]
        return np.array(found).reshape(drawn.shape[:-1])

    with warnings.catch_warnings():
        # A constant score has a special interval, see below.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = stats.bootstrap(
            (np.arange(n_sequences),),
            score,
            vectorized=True,
            axis=-1,
            n_resamples=n_resamples,
            batch=max(1, BATCH // n_sequences),
            confidence_level=confidence_level,
            method=method,
            random_state=np.random.default_rng(seed),
        )
    distribution: NDArray[np.float64] = found.bootstrap_distribution
    low, high = map(float, found.confidence_interval)
    error = float(found.standard_error) if n_resamples > 1 else math.nan
    if np.ptp(distribution) == 0:
        low = high = float(distribution[0])
    value = measure(np.ones(n_sequences))
    p_value = None if len(measures) == 1 else _test(distribution)
    return Bootstrap(value, low, high, error, p_value, distribution)


def _test(differences: NDArray[np.float64]) -> float:
    """Two-sided p-value: twice the share of differences on the other side of 0.

    The percentile interval with the confidence level 1 - p just reaches 0.
    """
    n = len(differences)
    tails = [(np.sum(side) + 1) / (n + 1) for side in (differences <= 0, differences >= 0)]
    return float(min(2 * min(tails), 1.0))


def _read_metric(metric: Any) -> Any:
    """A built-in metric, a position scorer, or a function."""
    if isinstance(metric, ChunkMetric):
        return metric
    if isinstance(metric, str):
        return OWN[metric] if metric in OWN else _find_scorer(metric)
    if isinstance(metric, PositionScorer):
        return _check_scorer(metric, metric.score_func)
    if not callable(metric) or isinstance(metric, type):
        raise TypeError(
            f"metric is {metric!r}; expected a name such as 'accuracy', 'chunk_f1' or 'f1_macro', "
            "or a function of two lists of label lists"
        )
    return metric


def _find_scorer(name: str) -> PositionScorer:
    from sklearn.metrics import get_scorer_names

    known = get_scorer_names()
    if name not in known:
        expected = "; expected a name such as 'accuracy', 'chunk_f1' or 'f1_macro', or a function"
        raise ValueError(f"metric is {name!r}{suggest(name, [*OWN, *known]) or expected}")
    return _check_scorer(make_position_scorer(name), name)


def _check_scorer(scorer: PositionScorer, shown: Any) -> PositionScorer:
    if scorer.response_method != "predict":
        raise ValueError(
            f"metric is {shown!r}, which compares probabilities; expected one that compares "
            "labels, such as 'f1_macro' or 'balanced_accuracy'"
        )
    return scorer


def _cut(y: Any, offsets: NDArray[np.int64]) -> list[Any] | None:
    """Flat labels, split into sequences."""
    if y is None:
        return None
    flat = list(y.tolist() if hasattr(y, "tolist") else y)
    if len(flat) != offsets[-1]:
        raise ValueError(
            f"y_true has {count_of(int(offsets[-1]), 'row')} but a prediction has {len(flat)}; "
            "pass one label for every row"
        )
    return [flat[a:b] for a, b in pairwise(offsets)]


def _keep_known(y_true: Any, *predictions: Any) -> list[LabelLists]:
    """True and predicted labels where the true one is known."""
    given = [side for side in (y_true, *predictions) if side is not None]
    truth, *others = ([_plain(labels) for labels in side] for side in given)
    for side in others:
        pair_sequences(truth, side)
    known = [[not is_missing(label) for label in labels] for labels in truth]
    return [
        [list(compress(*pair)) for pair in zip(side, known, strict=True)]
        for side in (truth, *others)
    ]


def _plain(labels: Any) -> Any:
    return labels.tolist() if hasattr(labels, "tolist") else labels


def _read_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; expected one weight for each of "
            f"{count_of(n, 'sequence')}"
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        place = int(bad.argmax())
        raise ValueError(
            f"sample_weight[{place}] is {weights[place]}; weights must be finite and not negative"
        )
    return weights


def _prepare(
    metric: Any, y_true: LabelLists, y_pred: LabelLists, weights: NDArray[np.float64] | None
) -> Measure:
    """A function that scores the sequences, each with its number of draws as weight."""
    tally = tally_metric(metric, y_true, y_pred)
    if tally is not None:
        own = 1.0 if weights is None else weights

        def measure(counts: NDArray[np.float64]) -> float:
            return _quietly(tally.measure, counts * own)
    else:

        def measure(counts: NDArray[np.float64]) -> float:
            drawn = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
            options = {} if weights is None else {"sample_weight": weights[drawn]}
            sides = ([side[s] for s in drawn.tolist()] for side in (y_true, y_pred))
            return _quietly(metric, *sides, **options)

    return measure


def _quietly(metric: Callable[..., Any], *values: Any, **options: Any) -> float:
    """A finite score, without warnings about labels that are absent from a resample."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.filterwarnings("ignore", category=UserWarning, module=r"sklearn\.metrics")
        score = metric(*values, **options)
    if not isinstance(score, Real) or not math.isfinite(score):
        raise ValueError(f"metric gives {score!r} for a resample; expected a finite number")
    return float(score)
