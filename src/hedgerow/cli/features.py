"""Features: which columns of a file a model learns from, and which ones it should not use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.cli.errors import tell
from hedgerow.counting import count_of

if TYPE_CHECKING:
    from hedgerow.files import Recipe

WIDTH = 80


def describe_features(recipe: Recipe) -> str:
    """The features of a model, as one line."""
    if recipe.format == "crfsuite":
        return "features: the attributes of the file"
    if recipe.format == "facts":
        return "features: queries about the facts"
    names = [recipe.columns[number] for number in recipe.features]
    if recipe.template is not None:
        return (
            f"features: attributes from a template of {count_of(recipe.n_template_lines, 'line')}"
        )
    if recipe.format == "conll":
        return shorten(f"features: attributes of {count_of(len(names), 'column')}", names)
    return shorten(count_of(len(names), "feature"), names)


def shorten(text: str, names: list[str]) -> str:
    """Text and names, as many as fit on a line."""
    shown = 1
    while shown < len(names) and len(f"{text}: {', '.join(names[: shown + 1])}, ...") <= WIDTH:
        shown += 1
    return f"{text}: {', '.join([*names[:shown], *(['...'] if shown < len(names) else [])])}"


def warn_of_counters(features: Any) -> None:
    """Warn about feature columns of a table that look like an id or a time."""
    from hedgerow.encode.cut_frame import CutFrame
    from hedgerow.encode.suspects import find_counters

    if isinstance(features, CutFrame):
        for name, looks in find_counters(features):
            tell(
                f"warning: column {name!r} {looks}: probably not a feature, since new data will "
                "have other values; choose the feature columns with --features"
            )
