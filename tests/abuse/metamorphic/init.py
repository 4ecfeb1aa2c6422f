"""Two training runs, the second starting from the first."""

from hypothesis import strategies as st

from abuse.kind import Case, Kind
from abuse.metamorphic.answers import file_of
from abuse.training import Training
from abuse.trainings import learn_from_all, trainings
from hedgerow import LinearCRF, load

__all__ = ["KINDS"]


@st.composite
def continued_trainings(draw: st.DrawFn) -> Case:
    """Training runs of trees that are divided into two, and of weights that reach a minimum."""
    case = learn_from_all(draw(trainings()))
    parameters = case["parameters"]
    parameters["early_stopping_rounds"] = None  # a run that was stopped early would continue
    if case["estimator"] == "TreeCRF":
        case["rounds"] = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
        case["saved"] = draw(st.booleans())
        # Otherwise the number of rounds for the likelihood depends on n_rounds, or on init.
        parameters["warm_rounds"] = draw(st.integers(0, 3))
        # A model does not store the last direction, nor the initial step of the next line search.
        parameters |= {"direction": "steepest", "line_search": False}
        return case
    # A convex loss: it has one minimum.
    parameters |= {"objective": "likelihood", "max_iter": 2000, "reg_lambda": 1.0}
    case["data"]["unknown"] = 0.0
    return case


def check_init(case: Case) -> None:
    """Two training runs give the trees of one, and a minimum is not left."""
    training = Training.of(case)
    fit = training.fit_parameters
    if case["estimator"] == "LinearCRF":
        check_minimum(training)
        return
    n_first, n_second = case["rounds"]
    first = training.fit(n_rounds=n_first)
    if case["saved"]:
        first = load(file_of(first))
    second = training.build(n_rounds=n_second).fit(training.X, training.y, init=first, **fit)
    whole = training.fit(n_rounds=n_first + n_second)
    assert second.history_ == whole.history_
    if second.best_round_ is not None:  # only the last of the previous rounds matters
        assert second.best_round_ >= first.n_rounds_
        second.best_round_ = whole.best_round_
    assert file_of(second, n_rounds=1) == file_of(whole, n_rounds=1)


def check_minimum(training: Training) -> None:
    """Training that starts at a minimum changes nothing.

    With tol=0 it stops when no step decreases the loss, up to rounding.
    """
    first = training.fit()
    second = training.build(max_iter=20).fit(
        training.X, training.y, init=first, **training.fit_parameters
    )
    assert isinstance(first, LinearCRF)
    assert second.loss_ <= first.loss_ * (1 + 1e-12)
    # Otherwise it is on its way, perhaps far from the minimum. A loss of 1e-14 is a rounding error.
    if first.n_iter_ < first.max_iter:
        assert second.loss_ >= first.loss_ * (1 - 1e-6) - 1e-12


KINDS = [Kind("metamorphic-init", continued_trainings(), check_init, in_suite=4)]
