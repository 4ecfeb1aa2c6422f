"""Makes the pictures of the report page in ``pictures/`` from the handwritten words.

Needs Chromium; run it again when the page has changed: ``python docs/make_screenshots.py``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np

from chromium import Chromium
from hedgerow import TreeCRF
from hedgerow.datasets import load_ocr
from hedgerow.report import write_report

PLACE = Path(__file__).resolve().parent / "pictures"
WIDTH, HEIGHT = 1200, 820
# Name of a picture: the sections that it shows, its colours, and what is done before.
PICTURES = {
    "summary": (["summary", "learning"], "light", ""),
    "confusion": (["confusion"], "light", ""),
    "sequences": (["sequences"], "dark", "choose a wrong letter"),
    "trees": (["features", "trees"], "light", "choose a tree"),
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
    const boxes = %s.map((id) => document.getElementById(id).getBoundingClientRect());
    const top = Math.min(...boxes.map((box) => box.top));
    const bottom = Math.max(...boxes.map((box) => box.bottom));
    return [boxes[0].left - 8, scrollY + top - 8, boxes[0].width + 16, bottom - top + 16];
})()"""
PAUSE = "new Promise((done) => setTimeout(done, 500))"


def write_page(path: Path) -> None:
    """A model of handwritten words, and how it reads those of one fold."""
    X, y, fold = load_ocr()
    train, test = np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)
    X_test, y_test = [X[i] for i in test], [y[i] for i in test]
    crf = TreeCRF(n_rounds=60, order=2, window=1, max_leaves=12, max_depth=None, verbose=1)
    crf.fit([X[i] for i in train], [y[i] for i in train], eval_set=(X_test, y_test))
    write_report(crf, path, X_test, y_test, title="Handwritten words")


def main() -> None:
    """Write all pictures."""
    with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
        page = Path(folder) / "report.html"
        write_page(page)
        browser.resize(WIDTH, HEIGHT)
        PLACE.mkdir(exist_ok=True)
        for name, (sections, colours, step) in PICTURES.items():
            browser.prefer(colours)
            browser.open(page)
            browser.run(f"document.getElementById({sections[-1]!r}).scrollIntoView()")
            browser.run(PAUSE)
            browser.run(STEPS[step])
            browser.run("scrollTo(0, 0)")
            browser.run(PAUSE)
            picture = browser.picture(browser.run(RECTANGLE % sections))
            path = PLACE / f"report-{name}.png"
            path.write_bytes(picture)
            print(f"{path.name}: {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
