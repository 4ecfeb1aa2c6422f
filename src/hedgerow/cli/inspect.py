"""hedgerow inspect: what a model is, what it has learned, and why it chose a label."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING, Any

from hedgerow.cli.errors import CommandError, telling
from hedgerow.cli.models import describe_training, find_label, load_model, recipe_of
from hedgerow.cli.options import Commands, add_decode, add_model, begin_command
from hedgerow.cli.text import FEW_LABELS, format_table
from hedgerow.counting import count_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hedgerow.estimator import Estimator
    from hedgerow.files import Recipe

SUMMARY = "see what a model has learned, and why it chose a label"
DESCRIPTION = """\
Print what a model is and what it has learned: parameters that differ from the
defaults, labels, the largest weights or most important features, and
transitions. With a file, explain the label of a position; a table without its
group column is read as one sequence.
"""
EXAMPLES = """\
  hedgerow inspect chunks.hedgerow
  hedgerow inspect chunks.hedgerow --top 50
  hedgerow inspect chunks.hedgerow test.txt --sequence 3 --position 7
"""
WIDTH = 80


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = begin_command(commands, "inspect", run, SUMMARY, DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add_model(parser)
    add("file", metavar="FILE", nargs="?", help="file with the position to explain")
    add(
        "--sequence",
        type=int,
        default=0,
        metavar="I",
        help="sequence of the file, from 0 (the default)",
    )
    add(
        "--position",
        type=int,
        default=0,
        metavar="T",
        help="position in the sequence, from 0 (the default)",
    )
    add("--label", metavar="LABEL", help="label to explain; by default the predicted one")
    add(
        "--against",
        metavar="LABEL",
        help="label to compare --label with; by default the most probable other label",
    )
    add_decode(parser)
    add("--top", type=int, default=20, metavar="N", help="rows in each list; by default 20")


def run(options: argparse.Namespace) -> None:
    """Print what was requested."""
    model = load_model(options.model)
    if options.file is not None:
        print(explain(model, options))
        return
    if options.top < 1:
        raise CommandError(f"--top is {options.top}; expected a number of at least 1")
    print(describe(model, options.model))
    print(f"\n{heaviest(model, options.top)}")
    if hasattr(model, "base_"):
        print(f"\nbase model:\n{heaviest(model.base_, options.top)}")
    print(f"\n{largest_transitions(model, options.top)}")


def describe(model: Any, path: str) -> str:
    """A description of the model, one fact per line."""
    from hedgerow.files import Recipe
    from hedgerow.parameters import changed_parameters
    from hedgerow.training.eval_sets import eval_figures

    changed = [f"{name}={value!r}" for name, value in changed_parameters(model).items()]
    facts = {
        "parameters": ", ".join(changed) or "all at their defaults",
        count_of(len(model.classes_), "label"): " ".join(map(str, model.classes_.tolist())),
    }
    if hasattr(model, "n_weights_"):
        n_attributes = count_of(len(model.attributes_), "attribute")
        facts["weights"] = f"{model.n_weights_:,} ({n_attributes})"
    if hasattr(model, "base_"):
        facts["base"] = f"{type(model.base_).__name__}, {describe_training(model.base_)}"
    sets = eval_figures(model.history_)
    for name, figures in model.history_.items():
        if name != "loss" and figures:
            data, metric = sets.get(name, ("training", name))
            words = f"{'dev' if data == 'eval' else data} {metric.replace('_', ' ')}"
            facts[words.strip()] = describe_figure(model, figures)
    if hasattr(model, "recipe_"):
        with telling(f"{path}: "):
            facts["files"] = describe_recipe(Recipe.from_json(model.recipe_))
    lines = [f"{path}: {type(model).__name__}, {describe_training(model)}"]
    for name, fact in facts.items():
        lines += textwrap.wrap(f"{name}: {fact}", WIDTH, subsequent_indent="    ")
    return "\n".join(lines)


def describe_figure(model: Any, figures: list[float]) -> str:
    """A metric at the step that was kept: the best one on the eval set, or the last one."""
    from hedgerow.shown import best_step

    best, n_steps = best_step(model), len(model.history_["loss"])
    if model.early_stopping_rounds is None or best is None:
        best = 0
    if n_steps - len(figures) < best <= n_steps:
        return f"{figures[best - 1 - n_steps]:.6g} in {model.step_name} {best:,}, which was kept"
    return f"{figures[-1]:.6g} at the end"


def describe_recipe(recipe: Recipe) -> str:
    """How files are read, as text."""
    from hedgerow.files.recipe import COLUMNLESS

    if recipe.format in COLUMNLESS:
        return recipe.format
    names = recipe.columns
    text = f"{recipe.format}, label column {names[recipe.label]}"
    if recipe.group is not None:
        text += f", group column {names[recipe.group]}"
    text += f", feature columns {' '.join(names[number] for number in recipe.features)}"
    if recipe.template is not None:
        text += f", a template of {count_of(recipe.n_template_lines, 'line')}"
    return text


def heaviest(model: Any, top: int) -> str:
    """The most important features, as a table."""
    if hasattr(model, "importances"):
        table = model.importances()
        gains, total = table["gain"], table["gain"].sum()
        rows = [
            [str(feature), f"{offset:+d}" if offset else "0", f"{gain / total:.1%}"]
            for feature, offset, gain in zip(table["feature"], table["offset"], gains, strict=True)
        ]
        return format_table(["most important features", "offset", "gain"], rows[:top])
    table = model.weights()
    rows = [
        [str(table["attribute"][place]), str(table["label"][place]), f"{weight:+.3f}"]
        for place, weight in largest(table["weight"], top)
    ]
    return format_table(["largest weights", "label", "weight"], rows)


def largest_transitions(model: Estimator, top: int) -> str:
    """The label patterns with the largest weights; a few pairs are shown as a matrix."""
    table = model.patterns()
    patterns, weights = table["pattern"].tolist(), table["weight"]
    if not patterns:
        return "no label pattern has a weight"
    names = model.classes_.tolist()
    if "attribute" in table:
        attributes = table["attribute"].tolist()
        rows = [
            [" ".join(map(str, patterns[place])), attributes[place], f"{weight:+.3f}"]
            for place, weight in largest(weights, top)
        ]
        return format_table(["label patterns", "attribute", "weight"], rows)
    if len(names) <= FEW_LABELS and all(len(pattern) == 2 for pattern in patterns):
        cells = dict(zip(patterns, weights.tolist(), strict=True))
        rows = [
            [
                str(before),
                *(
                    f"{cells[before, after]:+.2f}" if (before, after) in cells else ""
                    for after in names
                ),
            ]
            for before in names
        ]
        return format_table(["from \\ to", *map(str, names)], rows)
    rows = [
        [" ".join(map(str, patterns[place])), f"{weight:+.3f}"]
        for place, weight in largest(weights, top)
    ]
    return format_table(["label patterns", "weight"], rows)


def largest(weights: NDArray[np.float64], top: int) -> list[tuple[int, float]]:
    """Indices and values of the weights with the largest absolute values."""
    places = (-abs(weights)).argsort(kind="stable")[:top].tolist()
    return [(place, float(weights[place])) for place in places]


def explain(model: Any, options: argparse.Namespace) -> str:
    """Why a position of a file has its label."""
    from hedgerow.files import display_name

    file = display_name(options.file)
    label = find_label(model, "--label", options.label)
    against = find_label(model, "--against", options.against)
    x, parents = find_sequence(options, recipe_of(model, options.model, options.file))
    if not 0 <= options.position < len(x):
        raise CommandError(
            f"--position is {options.position}, but sequence {options.sequence} of "
            f"{file} has {count_of(len(x), 'position')}; positions are counted from 0"
        )
    with telling(f"{file}: "):
        explanation = model.explain(
            x,
            options.position,
            label=label,
            against=against,
            decode=options.decode,
            parents=parents,
        )
        return str(explanation)


def find_sequence(options: argparse.Namespace, recipe: Recipe) -> tuple[Any, list[Any] | None]:
    """One sequence of a file, and its parents if it has any; the rest is not read."""
    from hedgerow.files import display_name, stream_file

    n_before = 0
    with telling():
        for batch in stream_file(options.file, recipe, may_lack_groups=True):
            if 0 <= options.sequence < n_before + batch.n_sequences:
                number = options.sequence - n_before
                return batch.X[number], None if batch.parents is None else batch.parents[number]
            n_before += batch.n_sequences
    raise CommandError(
        f"--sequence is {options.sequence}, but {display_name(options.file)} has "
        f"{count_of(n_before, 'sequence')}; sequences are counted from 0"
    )
