"""Writes the newest model file of this folder; each is kept as the version that wrote it left it.

A file of a new format gets a new name here. Old files stay: what they hold must load for ever.
"""

from pathlib import Path

from hedgerow import LinearCRF

X = [
    [{"word": "the", "n": 0.5}, {"word": "old", "n": -1}, {"word": "man", "tags": ["a", "b"]}],
    [{"word": "man", "n": 2}, {"word": "sleeps"}],
]
Y = [["D", "A", "N"], ["N", "V"]]
CHUNKS = [["B-NP", "I-NP", "I-NP"], ["B-NP", "O"]]


def linear_crf_1() -> LinearCRF:
    """Weights of attributes for labels and pairs, and a class weight."""
    return LinearCRF(
        transition_attributes=True, class_weight={"N": 2.0}, reg_lambda=0.5, max_iter=200
    ).fit(X, Y, eval_set=(X, Y))


def linear_crf_2() -> LinearCRF:
    """Label patterns of three labels, constraints of several kinds, and a missing label."""
    more = [[{"word": word} for word in ("old", "man", "sleeps")], [{"word": "the"}, {}, {}]]
    chunks = [*CHUNKS, ["B-NP", "I-NP", "O"], ["?", "I-NP", "O"]]
    return LinearCRF(
        order=2,
        constraints="BIO",
        forbidden=[("O", "O")],
        start_labels=["B-NP", "O"],
        missing_label="?",
        reg_lambda=0.5,
        max_iter=20,
        tol=0,
    ).fit([*X, *more], chunks)


if __name__ == "__main__":
    linear_crf_2().save(Path(__file__).parent / "linear_crf_format_2.hedgerow")
