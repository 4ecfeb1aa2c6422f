"""All code of the documentation runs, and all links are valid."""

import re
from itertools import pairwise

import pytest

from reference.pages import PAGES, ROOT, agrees, read_blocks, read_commands, run_page

README = ROOT / "README.md"


def names(pages):
    return [str(page.relative_to(ROOT)) for page in pages]


def runs(page):
    return any(block.language in ("python", "console") for block in read_blocks(page))


RUNNING = [page for page in PAGES if page != README and runs(page)]  # tests/test_readme.py has that


@pytest.mark.parametrize("page", RUNNING, ids=names(RUNNING))
def test_what_a_page_says_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_page(page, capsys)


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_links_lead_somewhere(page):
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf8"), flags=re.DOTALL | re.MULTILINE
    )
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http://", "https://")):
            path, _, _ = target.partition("#")
            assert (page.parent / path).exists(), f"{target} leads nowhere"


def test_every_page_can_be_reached():
    reached, waiting = set(), [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        for entries in re.findall(
            r"^```\{toctree\}\n(.*?)^```$",
            page.read_text(encoding="utf8"),
            re.DOTALL | re.MULTILINE,
        ):
            found = [
                page.parent / f"{entry}.md"
                for entry in entries.split()
                if not entry.startswith(":")
            ]
            waiting += [page for page in found if page.exists() and page not in reached]
    assert reached == set(PAGES) - {README}


def test_commands_of_a_console_block():
    first, second = read_commands(
        "$ ls\na.txt\n$ hedgerow tag 'my model' \\\n    a.txt  # a remark\nO\n\nO\n"
        "$ hedgerow eval m b.txt\nhedgerow: no b.txt\n$ echo $?\n2\n"
    )
    assert first == ("hedgerow", ["tag", "my model", "a.txt"], "O\n\nO\n", 0)
    assert second == ("hedgerow", ["eval", "m", "b.txt"], "hedgerow: no b.txt\n", 2)


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a  \nb", "a\nb\n", True),
        ("a\nb\nc\nd", "a\n...\nd\n", True),
        ("a\nb", "a\n", False),
        ("a.b", "a?b", False),
        ("loss -0.1234 of 3", "loss -0.1235 of 3", True),
        ("loss -0.1234 of 3", "loss -0.1535 of 3", False),
        ("loss -0.1234 of 3", "loss 0.1234 of 3", False),
        ("loss -0.1234 of 3", "loss -0.1234 of 4", False),
    ],
)
def test_what_is_shown_is_compared_with_what_is_printed(printed, shown, same):
    assert agrees(printed, shown) is same


def test_blocks_know_their_place():
    blocks = list(read_blocks(README))
    assert blocks
    lines = README.read_text(encoding="utf8").split("\n")
    for block in blocks:
        assert block.text.split("\n")[0] == lines[block.line - 1]
    for before, block in pairwise(blocks):
        assert before.line < block.line
