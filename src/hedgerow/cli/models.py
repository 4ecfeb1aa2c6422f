"""Models on the command line: reading a model, and how it reads files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.cli.errors import CommandError, telling
from hedgerow.counting import count_of
from hedgerow.suggestions import suggest

if TYPE_CHECKING:
    from hedgerow.decoding import Decode
    from hedgerow.estimator import Estimator
    from hedgerow.files import Recipe

# Names of the decoders.
DECODERS: dict[Decode, str] = {"viterbi": "by Viterbi", "marginal": "by marginals"}


def load_model(path: str, jobs: int | None = None) -> Estimator:
    """Read a model file, and set its number of threads."""
    from hedgerow import load
    from hedgerow.threads import count_threads

    with telling():
        model = load(path)
        count_threads(jobs)
    model.n_jobs = jobs
    return model


def recipe_of(model: Estimator, path: str, file: str) -> Recipe:
    """How the model that was read from `path` reads `file`."""
    from hedgerow.files import Recipe, adapt_recipe

    if not hasattr(model, "recipe_"):
        raise CommandError(
            f"{path} was trained in Python, so it does not store how to read files; train it with "
            "hedgerow train, or use it in Python"
        )
    with telling(f"{path}: "):
        recipe = Recipe.from_json(model.recipe_)
    with telling():
        return adapt_recipe(recipe, file)


def describe_training(model: Any) -> str:
    """The number of steps, the loss and the decoder of a model."""
    from hedgerow.shown import best_step

    n_done = model.n_rounds_ if model.step_name == "round" else model.n_iter_
    n_done = max(n_done, model.history_.n_steps)
    best = best_step(model)
    steps = count_of(n_done, model.step_name)
    if model.early_stopping_rounds is not None and best not in (None, n_done):
        steps = f"{best:,} of {count_of(n_done, model.step_name)} kept (up to the best one)"
    return f"{steps}, loss {model.loss_:.6g}, decodes {DECODERS[model.decode_]}"


def labels_by_text(model: Estimator) -> dict[str, Any]:
    """The labels of a model by their text; bools can be written in two ways."""
    labels = {str(label): label for label in model.classes_.tolist()}
    if model.classes_.dtype == bool:
        labels |= {text.lower(): label for text, label in labels.items()}
    return labels


def find_label(model: Estimator, option: str, text: str | None) -> Any:
    """A label of the model by its text."""
    if text is None:
        return None
    labels = labels_by_text(model)
    if text not in labels:
        near = suggest(text, labels) or f"; its labels are {model.model_.labels.shown()}"
        raise CommandError(f"{option}: the model has no label {text!r}{near}")
    return labels[text]
