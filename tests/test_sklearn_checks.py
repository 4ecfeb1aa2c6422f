"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from hedgerow import LinearCRF, TreeCRF

SMALL_TREES = {"n_rounds": 5, "max_depth": 2, "n_jobs": 1}
SMALL_WEIGHTS = {"max_iter": 100, "n_jobs": 1}

ONE_SEQUENCE = "a flat X without groups is one sequence, whose rows depend on each other"
ROWS_IN_A_ROW = "a row that is repeated within a sequence is followed by itself"
# All that a sequence model cannot pass.
OF_SEQUENCES = {
    "check_methods_sample_order_invariance": ONE_SEQUENCE,
    "check_methods_subset_invariance": ONE_SEQUENCE,
    "check_sample_weight_equivalence_on_dense_data": ROWS_IN_A_ROW,
    "check_sample_weight_equivalence_on_sparse_data": ROWS_IN_A_ROW,
}
CUTS_OF_ALL_ROWS = "a row of weight 0 still has a say in where the bins of a column end"
OF_TREES = {
    "check_sample_weight_equivalence_on_dense_data": CUTS_OF_ALL_ROWS,
    "check_sample_weight_equivalence_on_sparse_data": CUTS_OF_ALL_ROWS,
}


class TreeClassifier(ClassifierMixin, TreeCRF):
    """A TreeCRF that says what it is not by default, to be checked as a classifier."""


class LinearClassifier(ClassifierMixin, LinearCRF):
    """The same for LinearCRF."""


def expected_failures(crf):
    """Names of checks that fail, with the reason. Without neighbours there are hardly any."""
    if crf.order > 0:
        return OF_SEQUENCES
    return OF_TREES if isinstance(crf, TreeCRF) else {}


# Failures are expected by the test itself: pytest would parse scikit-learn's checks for each.
CHECKS = parametrize_with_checks(
    [
        TreeCRF(**SMALL_TREES),
        LinearCRF(**SMALL_WEIGHTS),
        # Checks of classifiers want the label that predict_proba has for the most probable one.
        TreeClassifier(**SMALL_TREES, objective="pointwise"),
        LinearClassifier(**SMALL_WEIGHTS, objective="pointwise"),
        TreeClassifier(**SMALL_TREES, order=0),
        LinearClassifier(**SMALL_WEIGHTS, order=0),
    ]
)
NAMES, PAIRS = CHECKS.args


def without_repetitions(pairs):
    """All checks by default; then those of classifiers, and those that need a model of order 0."""
    had = set()
    for pair in pairs:
        crf, check = pair
        key = isinstance(crf, TreeCRF), check.func, str(check.keywords)
        if key not in had or (crf.order == 0 and check.func.__name__ in OF_SEQUENCES):
            yield pair
        had.add(key)


# Older versions of scikit-learn hand over a generator, which pytest no longer likes.
@pytest.mark.filterwarnings("ignore:y has a single label")
@pytest.mark.parametrize(NAMES, list(without_repetitions(PAIRS)), **CHECKS.kwargs)
def test_checks_of_scikit_learn(estimator, check):
    if check.func.__name__ in expected_failures(estimator):
        with pytest.raises(AssertionError):
            check(estimator)
    else:
        check(estimator)


@pytest.mark.parametrize("estimator", [LinearCRF, TreeCRF])
def test_tags(estimator):
    crf = estimator()
    tags = get_tags(crf)
    assert tags.target_tags.required
    assert tags.input_tags.sparse
    assert tags.input_tags.three_d_array
    assert tags.input_tags.allow_nan == (estimator is TreeCRF)
    assert not is_classifier(crf)
