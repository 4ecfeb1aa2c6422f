"""The report page of 10,000 CoNLL-2000 sentences: time to write, size, and responsiveness.

A small LinearCRF with CRF++'s template is trained on a part of the data; the page is about all of
it, repeated until there are enough sentences. In Chromium: until the page can be used, and how long
a sort or a search takes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import chunking
import common

from chromium import Chromium
from hedgerow import LinearCRF
from hedgerow.report import write_report

# Milliseconds until the page is updated, for each of several values of a field.
CHANGES = """(async () => {
    const times = [];
    const field = document.querySelector(%s);
    for (const value of %s) {
        const begin = performance.now();
        field.value = value;
        field.dispatchEvent(new Event(%s));
        times.push(performance.now() - begin);
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    }
    return times;
})()"""
SORTS = ["errors", "length", "sure", "share", "number", "score"]
SEARCHES = ["the", "the company", "b-np", "w[-1]=of", "p[0]=NN", "zzz", ""]


def measure_in_chromium(path: Path, repeat: int) -> common.Record:
    """Milliseconds until the page is usable and for the slowest update, medians over loads."""
    opened, sorts, firsts, searches = [], [], [], []
    with Chromium() as browser:
        for _ in range(repeat):
            browser.open(path)
            opened.append(browser.run("performance.getEntriesByName('ready')[0].startTime"))
            sorts.append(max(browser.run(CHANGES % ("'#sequences select'", SORTS, "'change'"))))
            # The first search builds the texts that later ones use.
            field = "'#sequences input[type=search]'"
            first, *later = browser.run(CHANGES % (field, SEARCHES, "'input'"))
            firsts.append(first)
            searches.append(max(later))
        rows = browser.run("document.querySelectorAll('.sequence').length")
    return {
        "interactive_ms": statistics.median(opened),
        "slowest_sort_ms": statistics.median(sorts),
        "first_search_ms": statistics.median(firsts),
        "slowest_search_ms": statistics.median(searches),
        "rows_in_the_document": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds conll2000/")
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5, help="how often the page is opened")
    options = parser.parse_args()
    facts = common.machine_facts()
    X, y = chunking.read_sequences(options.data / "conll2000" / "train.txt.gz")
    crf = LinearCRF(max_iter=30, tol=0).fit(X[:2000], y[:2000])
    X, y = (list(islice(cycle(part), options.sentences)) for part in (X, y))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        with common.Stopwatch() as watch:
            notes = write_report(crf, path, X, y)
        record = {
            "sentences": len(X),
            "positions": sum(map(len, y)),
            "write_seconds": watch.seconds,
            "write_cpu_seconds": watch.cpu_seconds,
            "megabytes": path.stat().st_size / 1e6,
            "left_out": notes,
            **measure_in_chromium(path, options.repeat),
        }
    common.print_json({"machine": facts, "report": record})


if __name__ == "__main__":
    main()
