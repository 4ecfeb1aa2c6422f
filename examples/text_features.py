"""Attributes of words in text: a feature template to copy and change.

A token is described by the names of its attributes, such as ``word0=Paris`` or ``shape-1=Aa``,
which both estimators accept. Each group of attributes is one function of a sentence and a place in
it, or of a document: a name that is ambiguous in one sentence is often clear in another.
`repetition` and `topic` use the words of the document, and `second_look` uses the predictions of a
first model for them. Only the text itself is used: no lists of names, no embeddings.
``named_entities.py`` trains on these attributes. As a script, this file prints the attributes of
one word.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Token(NamedTuple):
    word: str
    tag: str
    chunk: str


Sentence = list[Token]
Document = list[Sentence]
Labels = list[str]

OUTSIDE = Token("<outside>", "<outside>", "<outside>")


# ---------------------------------------------------------------- a single word


@cache
def long_shape(word: str) -> str:
    """``Aaaa-00`` for ``Lyon-12``."""
    letters = re.sub(r"[^\W\d_]", lambda m: "A" if m[0].isupper() else "a", word)
    return re.sub(r"\d", "0", letters)


@cache
def short_shape(word: str) -> str:
    """``Aa-0`` for ``Lyon-12``: runs of one kind become one character."""
    return re.sub(r"(.)\1+", r"\1", long_shape(word))


def is_capitalised(word: str) -> bool:
    return word[:1].isupper()


# ------------------------------------------------------- attributes of a sentence


def token_at(sentence: Sentence, place: int) -> Token:
    return sentence[place] if 0 <= place < len(sentence) else OUTSIDE


def words(sentence: Sentence, at: int) -> Iterator[str]:
    """The word and its neighbours, as they are written and in lower case."""
    for offset in range(-2, 3):
        word = token_at(sentence, at + offset).word
        yield f"word{offset}={word}"
        if word != word.lower():
            yield f"lower{offset}={word.lower()}"


def shapes(sentence: Sentence, at: int) -> Iterator[str]:
    for offset in range(-2, 3):
        yield f"shape{offset}={short_shape(token_at(sentence, at + offset).word)}"
    word = sentence[at].word
    yield f"long_shape={long_shape(word)}"
    if "-" in word.strip("-"):
        yield "hyphen"
        for part in word.split("-"):
            yield f"part={part}"
    if "." in word.strip("."):
        yield "inner_point"
    if any(map(str.isdigit, word)):
        yield "digit"


def affixes(sentence: Sentence, at: int) -> Iterator[str]:
    word = sentence[at].word
    for length in range(1, min(len(word), 6) + 1):
        yield f"prefix={word[:length]}"
        yield f"suffix={word[-length:]}"


def letters(sentence: Sentence, at: int) -> Iterator[str]:
    """Three and four letters from inside a word; its first and last ones are left to `affixes`."""
    word = sentence[at].word.lower()
    for length in (3, 4):
        for begin in range(1, len(word) - length):
            yield f"letters={word[begin : begin + length]}"


def tags(sentence: Sentence, at: int) -> Iterator[str]:
    """Parts of speech of the word and its neighbours, as given by a tagger."""
    near = [token_at(sentence, at + offset).tag for offset in (-1, 0, 1)]
    for offset, tag in enumerate(near, -1):
        yield f"tag{offset}={tag}"
    yield f"tags={'/'.join(near)}"


def tag_sequences(sentence: Sentence, at: int) -> Iterator[str]:
    """One, two and three parts of speech in a row, up to two places away."""
    near = [token_at(sentence, at + offset).tag for offset in range(-2, 3)]
    for length in (1, 2, 3):
        for begin in range(len(near) - length + 1):
            yield f"tags{begin - 2}={'/'.join(near[begin : begin + length])}"


def word_tags(sentence: Sentence, at: int) -> Iterator[str]:
    """A word and a part of speech: both at this place, or one of them at a neighbouring one."""
    before, here, after = (token_at(sentence, at + offset) for offset in (-1, 0, 1))
    yield f"word/tag={here.word}/{here.tag}"
    yield f"word-1/tag={before.word}/{here.tag}"
    yield f"word+1/tag={after.word}/{here.tag}"
    yield f"word/tag-1={here.word}/{before.tag}"
    yield f"word/tag+1={here.word}/{after.tag}"


def pairs(sentence: Sentence, at: int) -> Iterator[str]:
    """Two or three neighbours together: words, shapes, and words with shapes."""
    before, here, after = (token_at(sentence, at + offset) for offset in (-1, 0, 1))
    outlines = [short_shape(token.word) for token in (before, here, after)]
    yield f"words-1={before.word}/{here.word}"
    yield f"words+1={here.word}/{after.word}"
    yield f"shapes-1={outlines[0]}/{outlines[1]}"
    yield f"shapes+1={outlines[1]}/{outlines[2]}"
    yield f"shapes={'/'.join(outlines)}"
    yield f"word-1/shape={before.word}/{outlines[1]}"
    yield f"word+1/shape={after.word}/{outlines[1]}"
    yield f"around={before.word}/{after.word}"


def surroundings(sentence: Sentence, at: int) -> Iterator[str]:
    """Words up to four places away, regardless of the exact place (disjunctive windows)."""
    for token in sentence[max(at - 4, 0) : at]:
        yield f"left={token.word}"
    for token in sentence[at + 1 : at + 5]:
        yield f"right={token.word}"


def position(sentence: Sentence, at: int) -> Iterator[str]:
    """Place in the sentence, and kind of sentence: headline, line of a table, ordinary text."""
    shape = short_shape(sentence[at].word)
    n_capitalised = sum(is_capitalised(token.word) for token in sentence)
    n_words = sum(token.word[:1].isalpha() for token in sentence)
    kind = "lines"
    if not any(token.word.islower() for token in sentence):
        kind = "table" if any(token.word.isdigit() for token in sentence) else "capitals"
    elif 2 * n_capitalised > n_words:
        kind = "mostly_capitalised"
    yield f"kind={kind}"
    yield f"kind/shape={kind}/{shape}"
    if at == 0:
        yield f"first/shape={shape}"
    if at == len(sentence) - 1:
        yield f"last/shape={shape}"
    if len(sentence) <= 3:
        yield f"length/place/shape={len(sentence)}/{at}/{shape}"


# ----------------------------------------------------- attributes of a document


class Repetitions:
    """Where else in a document a word occurs, and what it looks like there."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.places: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, sentence in enumerate(document):
            for at, token in enumerate(sentence):
                self.places[token.word.lower()].append((number, at))
        self.runs = list(self._find_runs())
        self.headline = [token.word for token in document[0]] if document else []
        self.acronyms = defaultdict(list)
        for run in {run for sentence in self.runs for run in sentence}:
            if len(run) > 1:
                self.acronyms["".join(word[0] for word in run)].append(run)

    def _find_runs(self) -> Iterator[list[tuple[str, ...]]]:
        """For each sentence, the run of capitalised words that each token is part of."""
        for sentence in self.document:
            found: list[tuple[str, ...]] = [()] * len(sentence)
            begin = 0
            for at in range(len(sentence) + 1):
                if at == len(sentence) or not is_capitalised(sentence[at].word):
                    run = tuple(token.word for token in sentence[begin:at])
                    found[begin:at] = [run] * len(run)
                    begin = at + 1
            yield found

    def others(self, number: int, at: int, most: int = 8) -> Iterator[tuple[Sentence, int, int]]:
        """Other occurrences, ignoring case: sentence, place in it, and number of the sentence."""
        word = self.document[number][at].word.lower()
        for place in [p for p in self.places[word] if p != (number, at)][:most]:
            yield self.document[place[0]], place[1], place[0]


def repetition(seen: Repetitions, number: int, at: int) -> Iterator[str]:
    """What the same word looks like elsewhere in the document."""
    word = seen.document[number][at].word
    if not is_capitalised(word):
        return
    shape = short_shape(word)
    found: set[str] = set()
    tagged: Counter[str] = Counter()
    for sentence, place, other in seen.others(number, at):
        token = sentence[place]
        run = seen.runs[other][place]
        tagged[token.tag] += 1
        if token.word.islower():
            found.add("again_lower")
        elif place > 0:
            found.add(f"again_shape={short_shape(token.word)}")
        found.add(f"again-1={token_at(sentence, place - 1).word}")
        found.add(f"again+1={token_at(sentence, place + 1).word}")
        if len(run) > 1 and any(map(str.islower, "".join(run))):
            spot = "first" if run[0] == token.word else "last" if run[-1] == token.word else "mid"
            found.add(f"again_run={spot}/{min(len(run), 4)}")
            found.add(f"again_first={run[0]}")
            found.add(f"again_last={run[-1]}")
    if tagged:
        found.add(f"again_tag={tagged.most_common(1)[0][0]}/{shape}")
    else:
        found.add(f"once/{shape}")
    for run in seen.acronyms.get(word, ()):
        found.update({"acronym", f"acronym_last={run[-1]}"})
    yield from sorted(found)


def topic(seen: Repetitions, number: int, at: int) -> Iterator[str]:
    """Topic of the document, from its first words: in sports, the name of a city is a team."""
    shape = short_shape(seen.document[number][at].word)
    for word in seen.headline[:1]:
        yield f"headline={word}/{shape}"
        yield f"headline/word={word}/{seen.document[number][at].word}"
    if len(seen.headline) > 1:
        yield f"headline2={seen.headline[1]}/{shape}"


SENTENCE_GROUPS: dict[str, Callable[[Sentence, int], Iterator[str]]] = {
    group.__name__: group
    for group in (
        words,
        shapes,
        affixes,
        letters,
        pairs,
        tags,
        tag_sequences,
        word_tags,
        surroundings,
        position,
    )
}
DOCUMENT_GROUPS: dict[str, Callable[[Repetitions, int, int], Iterator[str]]] = {
    group.__name__: group for group in (repetition, topic)
}
ENTITY_GROUPS = (
    *("words", "shapes", "affixes", "letters", "pairs", "surroundings", "position"),
    *DOCUMENT_GROUPS,
)
CHUNK_GROUPS = ("words", "shapes", "affixes", "pairs", "tag_sequences", "word_tags")


def describe(document: Document, groups: Iterable[str]) -> list[list[list[str]]]:
    """Names of the attributes of every token of every sentence of a document."""
    chosen = set(groups)
    near = [function for name, function in SENTENCE_GROUPS.items() if name in chosen]
    far = [function for name, function in DOCUMENT_GROUPS.items() if name in chosen]
    seen = Repetitions(document)
    return [
        [
            [name for function in near for name in function(sentence, at)]
            + [name for function in far for name in function(seen, number, at)]
            for at in range(len(sentence))
        ]
        for number, sentence in enumerate(document)
    ]


# --------------------------------------------------------------------- labels


def to_bioes(labels: Sequence[str]) -> Labels:
    """IOB1 or BIO as BIOES: S is the only label of an entity, B its first, E its last."""
    found: Labels = []
    for before, label, after in zip(["O", *labels], labels, [*labels[1:], "O"], strict=False):
        if label == "O":
            found.append(label)
            continue
        kind = label[1:]
        begins = label[0] == "B" or before[1:] != kind
        ends = after[0] != "I" or after[1:] != kind
        found.append(("S" if begins and ends else "B" if begins else "E" if ends else "I") + kind)
    return found


# ---------------------------------------------------------------- a second model


def second_look(
    document: Document, marginals: Sequence[NDArray[Any]], classes: Sequence[str]
) -> list[list[list[str]]]:
    """Predictions of a first model for the same word elsewhere in the document.

    As in Krishnan and Manning (2006), with probabilities instead of votes. ``marginals`` are the
    probabilities of ``classes`` at each token, (T, K) for each sentence; for training documents
    they must come from models that were not trained on these documents.
    """
    kinds = sorted({label[2:] or "O" for label in classes})
    member = np.array([[kind == (label[2:] or "O") for kind in kinds] for label in classes])
    probs = [rows @ member for rows in marginals]  # (T, number of kinds) for each sentence
    totals: dict[str, Any] = defaultdict(float)
    counts: Counter[str] = Counter()
    for sentence, rows in zip(document, probs, strict=True):
        for token, row in zip(sentence, rows, strict=True):
            totals[token.word.lower()] += row
            counts[token.word.lower()] += 1

    def describe_token(token: Token, own: NDArray[Any]) -> list[str]:
        n_others = counts[token.word.lower()] - 1
        if not is_capitalised(token.word) or n_others == 0:
            return []
        mean = (totals[token.word.lower()] - own) / n_others
        fifths = np.minimum(5 * mean, 4).astype(int).tolist()
        return [f"elsewhere={kinds[mean.argmax()]}"] + [
            f"elsewhere_{kind}={fifth}"
            for kind, fifth, prob in zip(kinds, fifths, mean.tolist(), strict=True)
            if prob > 0.05
        ]

    return [
        [describe_token(token, row) for token, row in zip(sentence, rows, strict=True)]
        for sentence, rows in zip(document, probs, strict=True)
    ]


def main() -> None:
    tagged = {"Dr.": "NNP", "Zhou": "NNP", "left": "VBD", "Lyon": "NNP"}
    sentence = [Token(word, tag, "O") for word, tag in tagged.items()]
    document = [sentence, [Token("Zhou", "NNP", "O"), Token("spoke", "VBD", "O")]]
    for group in (*SENTENCE_GROUPS, *DOCUMENT_GROUPS):
        print(f"{group}: {'  '.join(describe(document, [group])[0][1])}")


if __name__ == "__main__":
    main()
