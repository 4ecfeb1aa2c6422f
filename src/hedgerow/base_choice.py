"""The choice of a base: from the parameters of an estimator to its base training."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from hedgerow.encode import GivenParents
from hedgerow.estimator import Estimator
from hedgerow.parameters import check_number
from hedgerow.training.base_training import BaseTraining

__all__ = ["find_base", "is_fitted", "restore_base"]

# Default number of folds for an unfitted base.
USUAL_FOLDS = 5


def find_base(crf: Any, of_init: Estimator | None, *, continues: bool) -> BaseTraining | None:
    """Check the parameters ``base`` and ``base_folds`` of an estimator; None: it has no base.

    Parameters
    ----------
    crf
        The estimator.
    of_init
        The base of the initial model, if that has one.
    continues
        Whether there is an initial model.
    """
    check_folds(crf.base_folds)
    base = unfreeze(crf.base)
    if not isinstance(base, Estimator | None):
        is_class = isinstance(base, type)
        what = f"the class {base.__name__}" if is_class else f"of type {type(base).__name__}"
        raise TypeError(
            f"base is {what}; expected a LinearCRF() or a TreeCRF(), fitted or not, or None"
        )
    if continues and (base is None) != (of_init is None):
        name = type(crf).__name__
        if base is None:
            raise ValueError(
                f"init was trained on top of a base model, and this {name} has none; set the same "
                "base, base=init.base_ for example, or fit without init"
            )
        raise ValueError(
            f"init was trained without a base model, and this {name} has one; set base=None, or "
            "fit without init"
        )
    if base is None:
        return None
    n_folds = crf.base_folds
    if is_fitted(base) and n_folds:
        raise ValueError(
            f"base is fitted already and base_folds is {n_folds}: it is not known which "
            "sequences it was trained on; leave base_folds out, or pass a base that is not fitted, "
            "sklearn.base.clone(base)"
        )
    if n_folds is None:
        n_folds = 0 if is_fitted(base) else USUAL_FOLDS
    return BaseTraining(
        of_init if continues else base if is_fitted(base) else None,
        None if is_fitted(base) else adapt(clone(base), crf),
        int(n_folds),
        crf.random_state,
        crf.group_column,
        GivenParents(None, crf.parents_column, crf.parents_format),
        crf.n_jobs,
    )


def check_folds(base_folds: Any) -> None:
    """Raise ValueError unless it is 0, or at least 2, or None."""
    if base_folds is None:
        return
    check_number("base_folds", base_folds, minimum=0, integer=True)
    if base_folds == 1:
        raise ValueError(
            "base_folds is 1, which leaves nothing to train a base on; expected at least 2, or 0 "
            "to turn cross-fitting off"
        )


def adapt(base: Estimator, crf: Any) -> Estimator:
    """Make a base read the same data as the model on top of it."""
    shared = ("group_column", "parents_column", "parents_format", "missing_label")
    return base.set_params(**{name: getattr(crf, name) for name in shared})


def is_fitted(base: Any) -> bool:
    """Whether a base is fitted already."""
    return hasattr(unfreeze(base), "model_")


def unfreeze(base: Any) -> Any:
    """The model inside scikit-learn's FrozenEstimator, which `clone` does not reset."""
    return base.estimator if isinstance(base, FrozenEstimator) else base


def restore_base(base: Estimator, *, was_fitted: bool) -> Estimator:
    """The parameter ``base`` of a loaded model, from its fitted base."""
    restored: Estimator = base if was_fitted else clone(base)
    return restored
