"""Predictions of both estimators, and comparisons of two models."""

import re

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from hedgerow.shown import with_plain_tables
from reference import boosting

ESTIMATORS = [LinearCRF, TreeCRF]
# These train fast.
SMALL = {
    LinearCRF: {"max_iter": 6, "tol": 0, "n_jobs": 1},
    TreeCRF: {"n_rounds": 3, "max_depth": 3, "min_child_weight": 0.0, "n_jobs": 1},
}


def small(estimator, **parameters):
    """An estimator that trains fast, unless its parameters prevent that."""
    return estimator(**{**SMALL[estimator], **parameters})


def refuses(error, message, method, *args, **kwargs):
    with pytest.raises(error, match=re.escape(message)):
        method(*args, **kwargs)


def every_prediction(crf):
    """All prediction methods that need only X."""
    return (
        *(crf.predict, crf.predict_proba, crf.predict_marginals, crf.predict_pattern_marginals),
        *(crf.sample, lambda X, **more: crf.predict_k_best(X, 2, **more)),
        lambda X, **more: crf.predict(X, decode="marginal", **more),
    )


def group_ids(X):
    """For each row of all sequences together the number of its sequence."""
    return np.repeat(np.arange(len(X)), list(map(len, X)))


def tables(crf):
    """All columns of the tables of a model."""
    names = ("weights", "importances", "trees", "transition_weights", "patterns")
    return {
        (name, column): values
        for name in names
        if hasattr(crf, name)
        for column, values in getattr(crf, name)().items()
    }


def answers(crf, X, n_samples=2, **known):
    """All predictions of a model for X, as arrays."""
    k_best = crf.predict_k_best(X, 3, **known)
    return [
        crf.predict_proba(X, **known),
        np.hstack(crf.predict(X, decode="viterbi", **known)),
        np.hstack(crf.predict(X, decode="marginal", **known)),
        np.concatenate(crf.predict_pattern_marginals(X, **known)),
        np.hstack(crf.sample(X, n_samples, random_state=1, **known)),
        np.concatenate([labels for found in k_best for labels, _ in found]),
        [log_prob for found in k_best for _, log_prob in found],
    ]


def assert_same(first, second):
    """The same arrays, to the last bit."""
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two)


def assert_same_model(first, second):
    """The same labels, tables and trees, to the last bit."""
    assert type(first) is type(second)
    assert first.classes_.dtype == second.classes_.dtype
    assert first.classes_.tolist() == second.classes_.tolist()
    assert first.label_patterns_ == second.label_patterns_
    one, two = (tables(with_plain_tables(crf)) for crf in (first, second))
    assert one.keys() == two.keys()
    assert_same(one.values(), two.values())
    if isinstance(first, TreeCRF):
        boosting.assert_same_model(first, second)


def assert_same_training(first, second):
    """The same model, and the same training history."""
    assert_same_model(first, second)
    assert (first.loss_, first.history_) == (second.loss_, second.history_)
