"""Explain a prediction: which pixels, transitions and neighbours are evidence for a letter."""

from __future__ import annotations

import numpy as np

from hedgerow import TreeCRF
from hedgerow.datasets import load_ocr


def main() -> None:
    X, y, fold = load_ocr()
    train, test = np.flatnonzero(fold == 0), np.flatnonzero(fold == 1)
    crf = TreeCRF(n_rounds=60, random_state=0).fit([X[i] for i in train], [y[i] for i in train])
    readings = crf.predict([X[i] for i in test])

    # A word with one wrong letter.
    errors = [np.flatnonzero(read != y[i]) for i, read in zip(test, readings, strict=True)]
    place = next(n for n, wrong in enumerate(errors) if len(wrong) == 1 and len(readings[n]) > 4)
    word, position = test[place], int(errors[place][0])
    written, read = "".join(y[word]), "".join(readings[place])
    found = crf.explain(X[word], position, against=written[position])

    # Contributions of the pixels of the letter itself, as a picture beside the letter.
    votes = np.zeros(128)
    names, contributions = found.features["feature"], found.features["contribution"]
    votes[[int(name[1:]) for name in names]] = contributions
    marks = np.where(votes > 0.05, "+", np.where(votes < -0.05, "-", "."))
    print(
        f"written {written!r}, read {read!r}; letter {position}, and the evidence of its pixels:\n"
    )
    for pixels, row in zip(X[word][position].reshape(16, 8), marks.reshape(16, 8), strict=True):
        print("  ", *(".#"[pixel] for pixel in pixels), "    ", *row)
    print(f"\nWhy {read[position]!r} and not {written[position]!r}?\n\n{found}")

    print(f"\nThe first tree for {read[position]!r}, up to three splits deep:\n")
    tree = crf.trees(round=1, label=read[position])
    rows = list(
        zip(*(tree[name].tolist() for name in ("question", "left", "right", "value")), strict=True)
    )

    def show(node: int, answer: str, depth: int) -> None:
        question, left, right, value = rows[node]
        print(f"{value:+.3f}  {'   ' * depth}{answer}{question}")
        if left >= 0 and depth < 2:
            show(left, "yes: ", depth + 1)
            show(right, "no: ", depth + 1)

    show(0, "", 0)


if __name__ == "__main__":
    main()
