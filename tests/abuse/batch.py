"""Batches: some cases of a kind, drawn and shrunk by Hypothesis."""

import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, seed, settings
from sklearn.exceptions import ConvergenceWarning

from abuse.children import fork, join
from abuse.kind import Case, Kind
from hedgerow import DataWarning

__all__ = ["Failure", "check_isolated", "run_batch", "strict_warnings"]

FORKED = "This process .* is multi-threaded, use of fork"  # since Python 3.12


@dataclass(frozen=True)
class Failure:
    """A case that failed, shrunk, and the exception."""

    case: Case
    error: str


@contextmanager
def strict_warnings() -> Iterator[None]:
    """Warnings are errors, except for those that the drawn cases cause.

    These are about penalties, eval sets that were trained on, single labels, and forks.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "no weights were learned", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".* were in the training data too", DataWarning)
        warnings.filterwarnings("ignore", "y has a single label", DataWarning)
        # Not set for a single fork: while other threads train, nobody may change the filters.
        warnings.filterwarnings("ignore", FORKED, DeprecationWarning)
        yield


def run_batch(
    kind: Kind,
    number: int,
    n_cases: int,
    before: Callable[[Case], bool] = lambda case: True,
    check: Callable[[Case], None] | None = None,
) -> tuple[int, Failure | None]:
    """Draw cases with the seed `number` and check each.

    ``before(case)`` is called first; the case is skipped if it returns False. Returns the number of
    cases checked and the first failure, shrunk.
    """
    n_checked, failure = 0, None
    check = check or kind.check

    # Without a database and deadlines, Hypothesis draws the same cases for the same seed.
    @seed(number)
    @settings(
        max_examples=n_cases,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(kind.cases)
    def run(case: Case) -> None:
        nonlocal n_checked, failure
        if not before(case):
            return
        try:
            with strict_warnings():
                check(case)
        except Exception:
            failure = Failure(case, traceback.format_exc())  # the last one is the simplest
            raise
        n_checked += 1

    try:
        run()
    except Exception:
        if failure is None:  # the kind itself is broken
            raise
    return n_checked, failure


def check_isolated(check: Callable[[Case], None], seconds: float) -> Callable[[Case], None]:
    """The same check in a child process, so that a crash or a hang can be shrunk."""

    def isolated(case: Case) -> None:
        join(fork(lambda: check(case), seconds))

    return isolated
