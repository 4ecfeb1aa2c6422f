"""Every guarantee names tests that exist."""

import ast
import re
from functools import cache

from reference.pages import ROOT

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PROMISES = (ROOT / "docs" / "promises.md").read_text(encoding="utf8")


def test_every_promise_names_tests_that_exist():
    named = NAMED.findall(PROMISES)
    assert len(named) == PROMISES.count("::"), "a test is named in a form that cannot be read"
    missing = [f"{path}::{name}" for path, name in named if name not in names_in(path)]
    assert not missing


def test_every_promise_names_a_test():
    parts = re.split(r"^(?=\*\*)", PROMISES, flags=re.MULTILINE)[1:]
    assert len(parts) > 10
    assert all(NAMED.search(part) for part in parts)


@cache
def names_in(path):
    text = (ROOT / path).read_text(encoding="utf8")
    return {getattr(node, "name", None) for node in ast.parse(text).body}
