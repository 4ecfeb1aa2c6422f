"""Find noun and verb phrases: CoNLL columns, a CRF++ template, constraints, and F1 of chunks.

``python examples/chunking.py train.txt test.txt`` takes files in CoNLL-2000 format: word, part of
speech and chunk label on a line, a blank line between sentences (gzipped files too). Without files
it generates a small corpus from a simple grammar.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from hedgerow import LinearCRF
from hedgerow.files import make_recipe, read_file
from hedgerow.metrics import chunk_scores

TEMPLATE = """
U00:%x[-1,0]
U01:%x[0,0]
U02:%x[1,0]
U03:%x[-1,1]
U04:%x[0,1]
U05:%x[1,1]
U06:%x[-1,1]/%x[0,1]
U07:%x[0,1]/%x[1,1]
B
"""

WORDS = {
    "DT": "the a this every",
    "JJ": "old green quiet small last",
    "NN": "hedge garden bird gate light cut watch plant",
    "NNP": "Anna Rome Monday",
    "VBZ": "cuts watches plants leaves reaches",
    "VB": "cut watch plant leave reach",
    "MD": "will can must",
    "RB": "slowly never often",
    "IN": "in near behind on",
}
PHRASES = {
    "NP": ["DT NN", "DT JJ NN", "DT JJ JJ NN", "NNP", "DT NN NN"],
    "VP": ["VBZ", "RB VBZ", "MD VB", "MD RB VB"],
    "PP": ["IN"],
}
SENTENCES = ["NP VP NP", "NP VP", "PP NP NP VP", "NP VP NP PP NP"]


def write_corpus(path: Path, n_sentences: int, rng: np.random.Generator) -> None:
    """Write sentences with rare words and wrong parts of speech, as in real data."""
    tags = list(WORDS)
    with path.open("w", encoding="utf8") as file:
        for _ in range(n_sentences):
            for phrase in rng.choice(SENTENCES).split():
                for place, tag in enumerate(rng.choice(PHRASES[phrase]).split()):
                    rare = f"w{rng.integers(10_000)}"
                    word = rare if rng.random() < 0.4 else rng.choice(WORDS[tag].split())
                    seen = rng.choice(tags) if rng.random() < 0.4 else tag
                    print(word, seen, f"{'I' if place else 'B'}-{phrase}", file=file)
            print(". . O\n", file=file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="train and test file")
    files = parser.parse_args().files
    if len(files) not in (0, 2):
        parser.error(f"expected a training file and a test file, or no files; got {len(files)}")
    with tempfile.TemporaryDirectory() as folder:
        if not files:
            rng = np.random.default_rng(0)
            files = [Path(folder) / "train.txt", Path(folder) / "test.txt"]
            write_corpus(files[0], 400, rng)
            write_corpus(files[1], 200, rng)
        template = Path(folder) / "template"
        template.write_text(TEMPLATE)
        recipe = make_recipe(files[0], template=template)
        train, test = (read_file(file, recipe) for file in files)
    print(f"{train.n_sequences:,} sentences for training, {test.n_sequences:,} for testing.\n")

    print(f"{'model':<40}{'precision':>10}{'recall':>10}{'F1':>10}")
    for name, parameters in {
        "each word separately": {"order": 0},
        "neighbouring labels": {"order": 1},
        "also order 2 and BIO constraints": {"order": 2, "constraints": "BIO"},
    }.items():
        crf = LinearCRF(max_iter=60, tol=0, **parameters).fit(train.X, train.y)
        predicted = crf.predict(test.X)
        scores = chunk_scores(test.y, predicted)
        print(f"{name:<40}{scores.precision:>10.2%}{scores.recall:>10.2%}{scores.f1:>10.2%}")

    print(f"\n{'chunk':<10}{'F1':>10}{'chunks':>10}")
    for kind, score in scores.by_type.items():
        print(f"{kind:<10}{score.f1:>10.2%}{score.n_true:>10}")


if __name__ == "__main__":
    main()
