"""A small, fixed part of the abuse, and all saved cases."""

import pytest

from abuse.batch import run_batch, strict_warnings
from abuse.kinds import KINDS
from abuse.saved import FOLDER, read_case


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_first_cases_of_each_kind(kind):
    _, failure = run_batch(kind, number=0, n_cases=kind.in_suite)
    assert failure is None, f"{failure.case}\n{failure.error}"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_saved_cases(path):
    name, case = read_case(path)
    with strict_warnings():
        KINDS[name].check(case)
