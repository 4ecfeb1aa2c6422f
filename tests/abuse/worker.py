"""A worker: checks cases of one kind for some seconds, in a separate process that may die.

``python -m abuse.worker KIND NUMBER SECONDS FOLDER [isolated]`` writes to FOLDER the case that it
checks (``case.json``) and, at the end, its counts and its failure (``result.json``).
"""

import faulthandler
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from abuse.batch import check_isolated, run_batch
from abuse.kind import Case
from abuse.kinds import KINDS

BATCH = 25


def main(name: str, number: str, seconds: str, folder: str, isolated: str = "") -> None:
    """Check batches until the time is up or a case fails."""
    faulthandler.enable()
    kind = KINDS[name]
    check = check_isolated(kind.check, kind.seconds) if isolated else kind.check
    end = time.monotonic() + float(seconds)
    n_checked, failure, n_batches, failing = 0, None, 0, False

    def note(case: Case) -> bool:
        # Drawing is cheap: once the time is up, the rest of a batch is skipped.
        if time.monotonic() > end and not failing:
            return False
        Path(folder, "case.json").write_text(json.dumps(case))
        return True

    def checked(case: Case) -> None:
        nonlocal failing
        try:
            check(case)
        except BaseException:
            failing = True  # shrinking may take longer than the time that is left
            raise

    while time.monotonic() < end and failure is None:
        n_more, failure = run_batch(kind, int(number) + n_batches, BATCH, note, checked)
        n_checked, n_batches = n_checked + n_more, n_batches + 1
    result = {"n_checked": n_checked, "failure": failure and asdict(failure)}
    Path(folder, "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
