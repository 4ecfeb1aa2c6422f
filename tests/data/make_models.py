"""Writes the model files of this folder; each is kept as the version that wrote it left it.

A file of a new format gets a new name here. Old files stay: what they hold must load for ever.
"""

from pathlib import Path

from hedgerow import LinearCRF

X = [
    [{"word": "the", "n": 0.5}, {"word": "old", "n": -1}, {"word": "man", "tags": ["a", "b"]}],
    [{"word": "man", "n": 2}, {"word": "sleeps"}],
]
Y = [["D", "A", "N"], ["N", "V"]]


def linear_crf() -> LinearCRF:
    return LinearCRF(
        transition_attributes=True, class_weight={"N": 2.0}, reg_lambda=0.5, max_iter=200
    ).fit(X, Y, eval_set=(X, Y))


if __name__ == "__main__":
    linear_crf().save(Path(__file__).parent / "linear_crf_format_1.hedgerow")
