"""Words: attributes of their spelling."""

from __future__ import annotations

from functools import lru_cache

PREFIXES = (2, 3)
SUFFIXES = (1, 2, 3, 4)


@lru_cache(maxsize=1 << 16)
def word_attributes(word: str) -> tuple[str, ...]:
    """Attributes of the spelling of a word.

    Examples
    --------
    >>> word_attributes("McX-12")
    ('lower=mcx-12', 'shape=XxX-0', 'prefix=Mc', 'prefix=McX', 'suffix=2', 'suffix=12', \
'suffix=-12', 'suffix=X-12')
    """
    return (
        f"lower={word.lower()}",
        f"shape={_shape(word)}",
        *(f"prefix={word[:length]}" for length in PREFIXES if length < len(word)),
        *(f"suffix={word[-length:]}" for length in SUFFIXES if length < len(word)),
    )


def _shape(word: str) -> str:
    """The kinds of the characters of a word, with repetitions collapsed."""
    shape = ""
    for character in word:
        if character.isupper():
            kind = "X"
        elif character.isalpha():
            kind = "x"
        else:
            kind = "0" if character.isdigit() else character
        if not shape.endswith(kind):
            shape += kind
    return shape
