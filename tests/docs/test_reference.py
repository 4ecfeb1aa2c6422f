"""The reference is complete."""

import re

import pytest

from hedgerow import LinearCRF, TreeCRF
from reference.pages import ROOT


@pytest.mark.parametrize(("column", "estimator"), [(2, TreeCRF), (3, LinearCRF)])
def test_parameters_by_topic_are_all_parameters(column, estimator):
    page = (ROOT / "docs" / "reference" / "estimators.md").read_text(encoding="utf8")
    rows = [line.split("|") for line in page.splitlines() if line.startswith("|")][2:]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row[column])]
    assert sorted(listed) == sorted(estimator().get_params(deep=False))


@pytest.mark.parametrize("estimator", [TreeCRF, LinearCRF])
def test_every_parameter_has_a_text_of_its_own(estimator):
    described = re.findall(r"^(\w+) : ", estimator.__doc__, re.MULTILINE)
    assert set(estimator().get_params(deep=False)) <= set(described)
