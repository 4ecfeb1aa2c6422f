"""Features go into the page in many ways, and come out as they were."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import LinearCRF
from hedgerow.report import write_report
from hedgerow.report.features import split_names
from reference.report_page import Page

# What is predicted does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:y has a single label")


def window(words, name, offsets, joint):
    """Attributes such as ``w[-1,0]=the|man``, one per position."""
    padded = ["<1>", "<0>", *words, "<3>", "<4>"]
    stem = f"{name}[{','.join(map(str, offsets))}]="
    return [stem + joint.join(padded[t + 2 + o] for o in offsets) for t in range(len(words))]


def read_back(X):
    """All attributes of each position, with ":" for what cut them."""
    crf = LinearCRF(max_iter=1, tol=0).fit(X, [["a"] * len(x) for x in X])
    with TemporaryDirectory() as folder:
        write_report(crf, Path(folder) / "page.html", X)
        page = Page(Path(folder) / "page.html")
    found = [
        [*(f"{name}:{text}" for name, text in columns.items()), *(name for name, _ in loose)]
        for columns, loose in page.features()
    ]
    return [sorted(name.replace("=", ":") for name in names) for names in found], page


def as_given(X):
    return [sorted(name.replace("=", ":") for name in names) for x in X for names in x]


WORDS = st.lists(st.sampled_from(["the", "man", "=", ":", "a|b", "/", "", "1"]), min_size=1)
WINDOWS = st.sampled_from([(0,), (-1,), (2,), (-1, 0), (0, 1), (-2, 1), (-1, 0, 1)])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(WORDS, min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from("wp"), WINDOWS), unique=True, max_size=5),
    st.sampled_from("|/_"),
    st.data(),
)
def test_windows_of_attributes_come_back(sentences, windows, joint, data):
    X = []
    for words in sentences:
        columns = [window(words, name, offsets, joint) for name, offsets in windows]
        extra = data.draw(
            st.lists(
                st.lists(st.sampled_from(["flag", "c=1", "c=2", "x", "w[0]=the"]), unique=True),
                min_size=len(words),
                max_size=len(words),
            )
        )
        X.append([sorted({*names, *more}) for *names, more in zip(*columns, extra, strict=True)])
    assert read_back(X)[0] == as_given(X)


def test_windows_are_told_by_what_they_repeat():
    sentences = [["the", "old", "man", "and", "the", "sea"], ["a", "man", "in", "a", "boat"]] * 5
    offsets = [(-1,), (0,), (1,), (-1, 0), (-1, 0, 1)]
    X = [
        [list(names) for names in zip(*(window(s, "w", o, "|") for o in offsets), strict=True)]
        for s in sentences
    ]
    found, page = read_back(X)
    assert found == as_given(X)
    columns = page.data["browser"]["features"]["columns"]
    assert columns[0]["name"] == "w[0]"
    sources = {column["name"]: column.get("sources") for column in columns}
    assert sources == {
        "w[0]": None,
        "w[-1]": [[0, -1]],
        "w[1]": [[0, 1]],
        "w[-1,0]": [[0, -1], [0, 0]],
        "w[-1,0,1]": [[0, -1], [0, 0], [0, 1]],
    }
    # Only the ends of sequences have texts of their own.
    assert [column["codes"]["length"] for column in columns] == [55, 10, 10, 10, 20]


def test_the_middle_of_a_window_is_the_text():
    sentences = [["the", "old", "man", "and", "the", "sea"], ["he", "had", "a", "boat"]]
    X = []
    for words in sentences:
        padded = ["<", *words, ">"]
        around = zip(padded, words, padded[2:], strict=False)
        X.append([[f"A:{before}", f"B:{word}", f"C:{after}"] for before, word, after in around])
    assert read_back(X)[1].data["browser"]["features"]["columns"][0]["name"] == "B"


def test_names_are_cut_at_the_last_separator_that_leaves_a_common_stem():
    names = ["-1:word:the", "-1:word::", "w=a=b", "bias", "rare:x"]
    counts = [98, 2, 100, 100, 1]
    assert split_names(names, counts, 100) == [
        ("-1:word", "the"),
        ("-1:word", ":"),
        ("w=a", "b"),
        ("bias", None),
        ("rare:x", None),
    ]
