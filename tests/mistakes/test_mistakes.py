"""Every registered mistake gets its error or warning; none is silent."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import hedgerow
from mistakes import on_the_command_line
from mistakes.mistake import MISTAKES

ROOT, HERE = Path(hedgerow.__file__).parent, Path(__file__).parent
FILES = {
    import_module(f"mistakes.{path.stem}").__name__
    for where in ("in_", "on_", "with_")
    for path in HERE.glob(f"{where}*.py")
}


@pytest.fixture
def _folder(tmp_path, monkeypatch):
    """A working folder with files for mistakes on the command line."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_told(mistake):
    if mistake.make.__module__ == on_the_command_line.__name__:
        on_the_command_line.prepare()
    pattern = f"^{re.escape(mistake.message).replace(re.escape('...'), '.*')}$"
    expect = pytest.warns if issubclass(mistake.kind, Warning) else pytest.raises
    with expect(mistake.kind, match=re.compile(pattern, re.DOTALL)) as caught:
        mistake.make()
    if issubclass(mistake.kind, Warning):  # shown with a line of the user's code
        assert not any(ROOT in Path(warning.filename).parents for warning in caught)


def test_there_are_many_and_most_are_told_well():
    names = [mistake.name for mistake in MISTAKES]
    assert len(set(names)) == len(names) >= 60
    assert {mistake.make.__module__ for mistake in MISTAKES} == FILES
    assert {mistake.grade for mistake in MISTAKES} == {"A", "B"}
    assert sum(mistake.grade == "A" for mistake in MISTAKES) > 0.9 * len(MISTAKES)
    bare = {Exception, KeyError, IndexError, AttributeError, AssertionError, ZeroDivisionError}
    assert not bare & {mistake.kind for mistake in MISTAKES}
