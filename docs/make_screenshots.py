"""Makes the pictures of the report page in ``pictures/``: handwritten words, and sensors.

Needs Chromium; run it again when the page has changed: ``python docs/make_screenshots.py``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np
import pandas as pd

from chromium import Chromium
from hedgerow import TreeCRF
from hedgerow.datasets import load_ocr
from hedgerow.report import write_report

PLACE = Path(__file__).resolve().parent / "pictures"
WIDTH, HEIGHT = 1200, 820
# Name of a picture: its page, the parts that it shows, its colours, and what is done before.
PICTURES = {
    "summary": ("words", ["#summary", "#learning"], "light", ""),
    "confusion": ("words", ["#confusion"], "light", ""),
    "sequences": ("words", ["#sequences"], "dark", "choose a wrong letter"),
    "timeline": ("walks", [".timeline"], "light", ""),
    "trees": ("words", ["#features", "#trees"], "light", "choose a tree"),
}
STEPS = {
    "": "null",
    # A long word with a few wrong letters says more than the worst one, which is short.
    "choose a wrong letter": """(() => {
        const select = document.querySelector('#sequences select');
        select.value = 'errors';
        select.dispatchEvent(new Event('change'));
    })()""",
    "choose a tree": """(() => {
        const [round, label] = document.querySelectorAll('#trees select');
        label.value = 6;
        label.dispatchEvent(new Event('change'));
    })()""",
}
# The sections of a picture, as one rectangle of the page.
RECTANGLE = """(() => {
    const boxes = %s.map((id) => document.querySelector(id).getBoundingClientRect());
    const top = Math.min(...boxes.map((box) => box.top));
    const bottom = Math.max(...boxes.map((box) => box.bottom));
    return [boxes[0].left - 8, scrollY + top - 8, boxes[0].width + 16, bottom - top + 16];
})()"""
PAUSE = "new Promise((done) => setTimeout(done, 500))"


def write_words(path: Path) -> None:
    """A model of handwritten words, and how it reads those of one fold."""
    X, y, fold = load_ocr()
    train, test = np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)
    X_test, y_test = [X[i] for i in test], [y[i] for i in test]
    crf = TreeCRF(n_rounds=60, order=2, window=1, max_leaves=12, max_depth=None, verbose=1)
    crf.fit([X[i] for i in train], [y[i] for i in train], eval_set=(X_test, y_test))
    write_report(crf, path, X_test, y_test, title="Handwritten words")


def write_walks(path: Path) -> None:
    """A model of what people do, from sensors, and how it labels two days."""
    random = np.random.default_rng(0)
    names = np.array(["sit", "stand", "walk", "run"])
    frames, y, days = [], [], []
    for day in ("Monday", "Tuesday", "Wednesday", "Thursday"):
        codes = np.repeat(random.integers(0, 4, 60), random.integers(8, 60, 60))
        noise = random.normal(0, 1, (len(codes), 3))
        means = np.array([[0, 1.0, 0], [0.4, 0, 0], [2.0, 0.6, 1], [3.0, 1, 2.2]])[codes]
        frames.append(
            pd.DataFrame(means + noise, columns=["acceleration", "tilt", "pulse"]).round(2)
        )
        y.append(names[codes])
        days += [day] * len(codes)
    X, labels, groups = pd.concat(frames), np.concatenate(y), np.array(days)
    train = np.isin(groups, ["Monday", "Tuesday"])
    crf = TreeCRF(n_rounds=30, window=3).fit(X[train], labels[train], groups=groups[train])
    write_report(crf, path, X[~train], labels[~train], groups=groups[~train], title="Walks")


def main() -> None:
    """Write all pictures."""
    with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
        pages = {"words": Path(folder) / "words.html", "walks": Path(folder) / "walks.html"}
        write_words(pages["words"])
        write_walks(pages["walks"])
        browser.resize(WIDTH, HEIGHT)
        PLACE.mkdir(exist_ok=True)
        for name, (page, parts, colours, step) in PICTURES.items():
            browser.prefer(colours)
            browser.open(pages[page])
            browser.run(f"document.querySelector({parts[-1]!r}).scrollIntoView()")
            browser.run(PAUSE)
            browser.run(STEPS[step])
            browser.run("scrollTo(0, 0)")
            browser.run(PAUSE)
            picture = browser.picture(browser.run(RECTANGLE % parts))
            path = PLACE / f"report-{name}.png"
            path.write_bytes(picture)
            print(f"{path.name}: {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
