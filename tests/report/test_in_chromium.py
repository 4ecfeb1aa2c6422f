"""The page in a real browser; skipped, with the reason printed, where there is none."""

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from chromium import Chromium, find_chromium
from hedgerow import LinearCRF, TreeCRF
from hedgerow.label_colours import COLOURS
from hedgerow.report import write_report
from reference.report_page import Page

WORDS = np.array(["the", "a", "old", "man", "men", "sea", "boat", "and", "he", "had", "gone"])
HOSTILE = "<img src=x onerror='window.hacked = 1'>"


@pytest.fixture(scope="module")
def chromium():
    program, why = find_chromium()
    if program is None:
        pytest.skip(why)
    with Chromium() as browser:
        yield browser


@dataclass(frozen=True)
class Sentences:
    """A page about many sentences, and what it is made from."""

    X: list
    y: list
    model: LinearCRF
    path: Path

    @property
    def predicted(self):
        return [labels.tolist() for labels in self.model.predict(self.X)]

    @property
    def errors(self):
        pairs = zip(self.y, self.predicted, strict=True)
        return np.array([sum(a != b for a, b in zip(*pair, strict=True)) for pair in pairs])


def label(before, word):
    if word >= "m":
        return "V-x"
    return "N" if word > before else "D"


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    """3,000 sentences with a window of attributes; a label depends on a word and the one before."""
    random = np.random.default_rng(7)
    X, y = [], []
    for _ in range(3000):
        words = WORDS[random.integers(0, len(WORDS), random.integers(1, 30))].tolist()
        pairs = list(pairwise(["<", *words]))
        X.append([[f"w={word}", f"b={before}", f"bw={before}|{word}"] for before, word in pairs])
        y.append([label(before, word) for before, word in pairs])
    model = LinearCRF(max_iter=3, tol=0).fit(X[:100], y[:100])
    path = tmp_path_factory.mktemp("page") / "sentences.html"
    write_report(model, path, X, y)
    return Sentences(X, y, model, path)


@pytest.fixture
def page(chromium, sentences):
    chromium.resize(1280, 900)
    chromium.prefer("light")
    chromium.open(sentences.path)
    return chromium


def enter(page, field, value, event):
    """Put a value into a field, given as an expression, as a person would."""
    page.run(
        f"""(() => {{
            const field = {field};
            field.value = {json.dumps(value)};
            field.dispatchEvent(new Event({json.dumps(event)}));
        }})()"""
    )


def choose(page, name, value):
    """Choose in a drop-down list of the browser of sequences."""
    fields = "[...document.querySelectorAll('#sequences .field')]"
    named = f"{fields}.find((f) => f.firstChild.textContent === {json.dumps(name)})"
    enter(page, f"{named}.querySelector('select')", value, "change")


def search(page, text):
    enter(page, "document.querySelector('#sequences input[type=search]')", text, "input")


def n_shown(page):
    status = page.run("document.querySelector('.status').textContent")
    return int(status.split()[0].replace(",", ""))


def first_rows(page, n):
    """Numbers of the first sequences of the list."""
    lines = page.run(
        "[...document.querySelectorAll('.sequence .facts-line')].map((e) => e.textContent)"
    )
    return [int(line.split()[0][1:]) for line in lines[:n]]


def test_draws_all_sections_and_asks_for_nothing(page, sentences):
    titles = page.run("[...document.querySelectorAll('h2')].map((e) => e.textContent)")
    assert titles == [
        *("Summary", "Learning curves", "Confusion matrix", "Segments", "Calibration"),
        *("Sequences", "Transitions", "Features"),
    ]
    assert page.requests == [sentences.path.as_uri()]
    assert page.complaints == []


def test_only_rows_in_sight_are_in_the_document(page):
    assert n_shown(page) == 3000
    assert page.run("document.querySelectorAll('.sequence').length") < 40
    assert page.run("document.querySelectorAll('*').length") < 3000
    page.run("document.querySelector('.pane.first .list').scrollTop = 1e9")
    page.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    shown = page.run("[...document.querySelectorAll('.sequence')].map((e) => e.dataset.row)")
    assert shown[-1] == "2999"
    assert len(shown) < 40


def test_worst_sequences_come_first(page, sentences):
    model, lengths = sentences.model, np.array([len(x) for x in sentences.X])
    scores = (model.log_likelihood(sentences.X, sentences.y) / lengths).astype(np.float32)
    assert first_rows(page, 8) == np.argsort(scores, kind="stable")[:8].tolist()
    page.run("document.querySelector('button.turn').click()")
    assert first_rows(page, 8) == np.argsort(-scores, kind="stable")[:8].tolist()


def test_orders(page, sentences):
    errors, lengths = sentences.errors, np.array([len(x) for x in sentences.X])
    keys = {
        "errors": -errors,
        "share": -errors / lengths,
        "length": -lengths,
        "number": np.arange(3000),
    }
    for order, key in keys.items():
        choose(page, "Order", order)
        assert first_rows(page, 8) == np.argsort(key, kind="stable")[:8].tolist()


def test_search(page, sentences):
    search(page, "Old Man")
    texts = [" ".join(names[0][2:] for names in x) for x in sentences.X]
    assert n_shown(page) == sum("old man" in text for text in texts)
    search(page, "b=<")
    assert n_shown(page) == 3000
    search(page, "bw=old|man")
    assert n_shown(page) == sum(any("bw=old|man" in names for names in x) for x in sentences.X)
    search(page, "v-x d n")
    labels = [" ".join(labels) for labels in (*sentences.y, *sentences.predicted)]
    found = ["V-x D N" in line for line in labels]
    assert n_shown(page) == sum(a or b for a, b in zip(found[:3000], found[3000:], strict=True))
    search(page, "no such thing")
    assert n_shown(page) == 0
    assert page.run("document.querySelectorAll('.sequence, .chip').length") == 0
    search(page, "")
    assert n_shown(page) == 3000


def test_filters(page, sentences):
    choose(page, "Only", "errors")
    assert n_shown(page) == np.sum(sentences.errors > 0)
    choose(page, "Only", "decoders")
    both = (sentences.model.predict(sentences.X, decode=d) for d in ("viterbi", "marginal"))
    assert n_shown(page) == sum((a != b).any() for a, b in zip(*both, strict=True))
    choose(page, "Only", "")
    choose(page, "True", "2")
    assert n_shown(page) == sum("V-x" in labels for labels in sentences.y)


def test_a_cell_of_the_confusion_chooses_its_sequences(page, sentences):
    both = zip(sentences.y, sentences.predicted, strict=True)
    pairs = [list(zip(*two, strict=True)) for two in both]
    assert (n_cell := sum(pair.count(("D", "N")) for pair in pairs)) > 0
    cell = "document.querySelector('#confusion tbody tr:nth-child(1) td:nth-child(3)')"
    assert page.run(f"{cell}.textContent") == str(n_cell)
    page.run(f"{cell}.click()")
    assert n_shown(page) == sum(("D", "N") in pair for pair in pairs)
    labels = page.run(
        """[...document.querySelectorAll('.position[aria-selected=true] .label')]
            .map((e) => e.textContent)"""
    )
    assert labels == ["D", "N"]


def test_features_of_a_position(page, sentences):
    choose(page, "Order", "number")
    for position in range(len(sentences.X[0])):
        page.run(f"document.querySelector('.position[data-row=\"{position}\"]').click()")
        chips = page.run(
            """[...document.querySelectorAll('.chip')]
                .map((e) => e.firstChild.textContent + '=' + e.lastChild.textContent)"""
        )
        assert sorted(chips) == sorted(sentences.X[0][position])


def test_keys_move_the_choice(page):
    page.run("document.querySelector('.pane.first .list').focus()")
    chosen = "document.querySelector('.sequence[aria-selected=true]').dataset.row"
    assert page.run(chosen) == "0"
    page.press("ArrowDown")
    page.press("ArrowDown")
    page.press("ArrowUp")
    assert page.run(chosen) == "1"
    head = page.run("document.querySelector('.pane-head b').textContent")
    assert head == f"#{first_rows(page, 2)[1]}"
    page.press("End")
    assert page.run(chosen) == "2999"
    page.run("document.querySelector('#confusion td').focus()")
    page.press("ArrowRight")
    page.press("Enter")
    assert n_shown(page) < 3000


def test_fits_the_window_and_its_colours(page):
    for width in (400, 1280):
        page.resize(width, 800)
        assert page.run("document.documentElement.scrollWidth") == width
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.run(colour)
    page.prefer("dark")
    assert page.run(colour) != light


def test_trees_and_patterns(chromium, tmp_path):
    random = np.random.default_rng(3)
    X = [random.normal(size=(6, 2)) for _ in range(20)]
    y = [np.where(x[:, 0] > 0, HOSTILE, np.where(x[:, 1] > 0, "b", "c")) for x in X]
    crf = TreeCRF(n_rounds=2, order=2, window=1, min_child_weight=0).fit(X, y, eval_set=(X, y))
    write_report(crf, tmp_path / "page.html", X, y, title=HOSTILE)
    chromium.resize(1280, 900)
    chromium.open(tmp_path / "page.html")
    chromium.run("document.querySelector('#trees').scrollIntoView()")
    chromium.wait_for("document.querySelector('.tree svg')")
    for number, value in enumerate((1, 2)):  # the round and the label
        enter(chromium, f"document.querySelectorAll('#trees select')[{number}]", value, "change")
    table = crf.trees(round=2, label="c")
    leaves = chromium.run("document.querySelectorAll('.leaf').length")
    assert leaves == np.sum(table["left"] < 0)
    questions = chromium.run(
        "[...document.querySelectorAll('.question')].map((e) => e.dataset.tip.split('\\n')[0])"
    )
    assert sorted(questions) == sorted(question for question in table["question"] if question)
    assert chromium.run("document.querySelectorAll('#learning .chart svg').length") == 2
    n_patterns = chromium.run("document.querySelector('#patterns .pattern').ariaSetSize")
    assert n_patterns == str(len(crf.label_patterns_))
    assert chromium.run("window.hacked") is None
    assert chromium.run("document.querySelector('h1').textContent") == HOSTILE
    assert HOSTILE in chromium.run("document.querySelector('#confusion').innerText")
    assert chromium.complaints == []


def test_without_data_or_truth(chromium, tmp_path):
    crf = TreeCRF(n_rounds=1, min_child_weight=0).fit([[[0.5], [1.0]]], [["a", "b"]])
    write_report(crf, tmp_path / "model.html")
    chromium.open(tmp_path / "model.html")
    assert chromium.run("document.querySelector('#sequences')") is None
    write_report(crf, tmp_path / "data.html", [[[0.5], [np.nan], [2e-9]]])
    chromium.open(tmp_path / "data.html")
    page = Page(tmp_path / "data.html")
    assert page.features()[1][0] == {}
    shown = []
    for row in range(3):
        chromium.run(f"document.querySelector('.position[data-row=\"{row}\"]').click()")
        shown.append(chromium.run("document.querySelector('.chips').textContent"))
    assert shown == ["x00.5", "none", "x02e-9"]
    assert chromium.complaints == []


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Two models on two long sequences of numbers with group ids, and a page that compares them."""
    random = np.random.default_rng(5)
    states = np.repeat(random.permutation(np.arange(60) % 3), 10)
    X = np.column_stack([states + random.normal(0, 0.8, 600), random.normal(size=600)])
    y, groups = np.array(["idle", "run", "stop"])[states], np.repeat(["mon", "tue"], 300)
    crf = TreeCRF(n_rounds=3, window=1, n_jobs=1).fit(X, y, groups=groups)
    other = TreeCRF(n_rounds=1, n_jobs=1).fit(X, y, groups=groups)
    path = tmp_path_factory.mktemp("days") / "days.html"
    write_report(crf, path, X, y, groups=groups, compare=other, title="Days", compare_title="old")
    return crf, other, X, y, groups, path


@pytest.fixture
def timeline(chromium, days):
    chromium.resize(1280, 900)
    chromium.prefer("light")
    chromium.open(days[-1])
    return chromium


RANGE = "document.querySelector('.timeline .quiet').textContent"


def press_button(page, text):
    page.run(
        f"""[...document.querySelectorAll('.timeline button')]
            .find((button) => button.textContent === {json.dumps(text)}).click()"""
    )


def test_a_long_sequence_has_a_timeline(timeline, days):
    crf, _, X, y, groups, _ = days
    assert timeline.run("document.querySelector('.timeline').hidden") is False
    assert timeline.run(RANGE) == "positions 0 to 299 of 300"
    press_button(timeline, "+")
    press_button(timeline, "+")
    _, first, _, last, *_ = timeline.run(RANGE).split()
    assert 70 <= int(last) - int(first) <= 80
    press_button(timeline, "all")
    name = timeline.run("document.querySelector('.pane-head b').textContent")
    wrong = (crf.predict(X, groups=groups) != y)[groups == name]
    places = np.flatnonzero(wrong)
    place = "Number(document.querySelector('.position[aria-selected=true] .place').textContent)"
    assert timeline.run(place) == places[0]
    press_button(timeline, "next error")
    assert timeline.run(place) == places[1]
    press_button(timeline, "all")
    colours = timeline.run(
        """(() => {
            const canvas = document.querySelector('.timeline canvas');
            const { data } = canvas.getContext('2d').getImageData(0, 142, canvas.width, 1);
            const found = new Set();
            for (let i = 0; i < data.length; i += 4)
                found.add([0, 1, 2].map((j) => data[i + j].toString(16).padStart(2, '0')).join(''));
            return [...found];
        })()"""
    )
    assert {colour.strip("#") for colour in COLOURS[:3]} <= set(colours)
    assert timeline.complaints == []


def test_a_position_is_explained(timeline, days):
    crf, _, X, y, groups, _ = days
    name = timeline.run("document.querySelector('.pane-head b').textContent")
    place = timeline.run(
        "Number(document.querySelector('.position[aria-selected=true] .place').textContent)"
    )
    timeline.wait_for("document.querySelector('.explanation .total')")
    shown = timeline.run("document.querySelector('.explanation .total b').textContent")
    mine = groups == name
    found = crf.explain(X[mine], place, against=y[mine][place])
    assert float(shown.replace("\N{MINUS SIGN}", "-")) == pytest.approx(found.log_odds, rel=1e-3)


def test_a_cell_of_the_comparison_chooses_its_sequences(timeline, days):
    crf, other, X, y, groups, _ = days
    cell = "document.querySelector('#comparison .heat tbody tr:nth-child(1) td:nth-child(3)')"
    right = [one.predict(X, groups=groups) == y for one in (crf, other)]
    assert timeline.run(f"{cell}.textContent") == str(np.sum(right[0] & ~right[1]))
    timeline.run(f"{cell}.click()")
    assert n_shown(timeline) == len(np.unique(groups[right[0] & ~right[1]]))


def test_figures_can_be_saved(timeline):
    timeline.run("URL.createObjectURL = (blob) => ((window.saved = blob), 'data:,')")
    figures = "[...document.querySelectorAll('#learning, #confusion, .timeline')]"
    for number in range(3):
        buttons = f"{figures}[{number}].querySelectorAll('button.export')"
        timeline.run(f"{buttons}[0].click()")
        timeline.wait_for("window.saved?.type === 'image/png' && saved.size > 1000")
        timeline.run(f"{buttons}[1].click()")
        timeline.wait_for("window.saved?.type === 'text/csv'")
        header = timeline.run("saved.text().then((text) => text.split('\\n')[0])")
        assert header.split(",")[0] in ("round", "true", "position")
    assert timeline.complaints == []


def test_loss_on_a_log_scale(timeline):
    name = (
        "document.querySelector('#learning .axis-name:last-of-type, #learning .axes').textContent"
    )
    assert "log scale" not in timeline.run(name)
    timeline.run("document.querySelector('#learning input').click()")
    timeline.wait_for(
        "document.querySelector('#learning .axes')?.textContent.includes('log scale')"
    )


def test_all_columns_of_features_fit_at_1400_pixels(chromium, tmp_path):
    random = np.random.default_rng(2)
    X = [random.normal(size=(60, 2)) for _ in range(3)]
    y = [random.choice(["a", "b"], len(x)) for x in X]
    crf = TreeCRF(n_rounds=4, window=10, min_child_weight=0, n_jobs=1).fit(X, y)
    write_report(crf, tmp_path / "page.html")
    chromium.resize(1400, 900)
    chromium.open(tmp_path / "page.html")
    table = "document.querySelector('#features .scroll')"
    assert chromium.run(f"{table}.scrollWidth <= {table}.clientWidth")
    assert chromium.run(f"{table}.querySelectorAll('th').length") > 12
