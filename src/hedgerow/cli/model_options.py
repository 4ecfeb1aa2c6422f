"""Options of the model that hedgerow train trains, and the estimator that they describe."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.errors import CommandError, telling
from hedgerow.cli.options import read_assignment, read_value, read_window
from hedgerow.cli.training_files import find_estimator

if TYPE_CHECKING:
    from hedgerow.estimator import Estimator
    from hedgerow.files import Recipe
    from hedgerow.relational import RelationalFeatures

# Parameters that --set does not accept.
ONLY_PYTHON = {
    "base": "use --base for a base model",
    "queries": "the schema of the tables defines the queries about facts",
    "callbacks": "callbacks are functions, which only Python code can pass",
    "group_column": "use --group for the column with the sequence ids",
    "parents_column": "use --heads for the column of heads",
    "parents_format": "it cannot be set: the parents in the column of --heads are counted from "
    "1, with 0 for a root",
}


def add_model_options(group: argparse._ArgumentGroup) -> None:
    """Options of the model."""
    add = group.add_argument
    add(
        "--model",
        choices=("linear", "trees"),
        help="weights of attributes, or boosted trees; by default trees for tables and facts, "
        "otherwise linear",
    )
    add(
        "--base",
        choices=("linear",),
        help="trees: train them on top of a linear model of the same features; --set "
        "base__reg_lambda=0.5 sets a parameter of the linear model",
    )
    add(
        "--objective",
        metavar="NAME",
        help="likelihood (the default), pointwise, accuracy, "
        "expected_accuracy, f1, softmax_margin, max_margin (linear only)",
    )
    add(
        "--label-costs",
        type=read_value,
        metavar="COSTS",
        help="for softmax_margin and max_margin: the cost of each error, by default 1; or costs by "
        """true and predicted label, such as '{"A": {"B": 5}}', with 1 for all other errors""",
    )
    add(
        "--rounds",
        type=int,
        metavar="N",
        help="trees: number of rounds, by default 200; linear: maximum number of iterations, by "
        "default 1000",
    )
    add(
        "--device",
        choices=("cpu", "cuda"),
        help="trees: train on the CPU (the default), or on a GPU, which needs the extra "
        "hedgerow[cuda]",
    )
    add(
        "--learning-rate",
        type=float,
        metavar="R",
        help="trees: factor for every step; by default 0.3 (other defaults apply with "
        "--set newton=False, line_search=True or direction=conjugate)",
    )
    add(
        "--early-stopping",
        type=int,
        metavar="N",
        help="stop if the loss on --dev (or another metric: --set eval_metric=chunk_f1) has not "
        "improved for N rounds or iterations, and keep the best model; without --dev, a tenth of "
        "TRAIN is held out instead",
    )
    add(
        "--order",
        type=int,
        metavar="N",
        help="number of previous labels that a label depends on; by default 1",
    )
    add(
        "--window",
        type=read_window,
        metavar="N|A,B",
        help="trees: number of neighbouring positions to look at: N on each side, or A before and "
        "B after; by default 0",
    )
    add(
        "--ancestors",
        type=int,
        metavar="N",
        help="with --heads: number of ancestors whose features are used too, 1 for the parent "
        "only; by default 0",
    )
    add(
        "--transitions",
        choices=("weights", "trees"),
        help="trees: score transitions with a weight for each label pattern, or also with trees "
        "that split on the previous labels; by default weights",
    )
    add(
        "--constraints",
        metavar="SCHEME",
        help="allow only labellings that follow this scheme: BIO, IOB1, BILOU or BIOES",
    )
    add(
        "--decode",
        choices=("auto", "viterbi", "marginal"),
        help="decoder: viterbi finds the best labelling as a whole, marginal the best label of "
        "each position; auto (the default) chooses the more accurate one on --dev, or on what "
        "--early-stopping holds out; without either it chooses by the objective, the labels or a "
        "short trial",
    )
    add(
        "--set",
        dest="assignments",
        type=read_assignment,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any parameter of LinearCRF or TreeCRF except callbacks, queries, and those that "
        "--base, --group and --heads set; may be repeated: "
        "--set reg_lambda=0.5 --set max_depth=4",
    )


def make_model(options: argparse.Namespace, recipe: Recipe) -> Estimator:
    """An unfitted estimator with the requested parameters."""
    from hedgerow import LinearCRF

    is_facts = recipe.format == "facts"
    kind = options.model or ("trees" if recipe.is_table or is_facts else "linear")
    estimator = find_estimator("TreeCRF" if kind == "trees" else "LinearCRF", options)
    if kind == "linear":
        check_linear_options(options)
    if options.device == "cuda":
        check_gpu()
    from_template = recipe.parameters()
    if options.base is not None:
        from_template = {"base": LinearCRF(**from_template)}
    if is_facts:
        from_template["queries"] = read_queries(options.train[0])
    if not set(from_template) <= set(estimator().get_params()):
        raise CommandError(
            f"{options.template}: lines such as B01:%x[0,0] need --model linear or --base linear; "
            "leave them out for trees alone"
        )
    parameters = read_parameters(options, kind, recipe)
    verbose = {"verbose": 0 if options.quiet else 1}
    of_base = {name: value for name, value in parameters.items() if name.startswith("base__")}
    own = {name: value for name, value in parameters.items() if name not in of_base}
    with telling("--set: "):
        model: Estimator = estimator(**(verbose | from_template | own)).set_params(**of_base)
        return model


def check_linear_options(options: argparse.Namespace) -> None:
    """Raise CommandError for options that only trees have."""
    if options.window is not None:
        raise CommandError(
            "--window is for --model trees; a linear model sees neighbours through attributes, "
            "which --template makes from CoNLL columns"
        )
    if options.learning_rate is not None:
        raise CommandError(
            "--learning-rate is for --model trees; a linear model has no learning rate"
        )
    if options.base is not None:
        raise CommandError(
            "--base is for --model trees, which are trained on top of it; add --model trees"
        )
    if options.transitions is not None:
        raise CommandError(
            "--transitions is for --model trees; in a linear model attributes may score label "
            "pairs: --set transition_attributes=True"
        )
    if options.device is not None:
        raise CommandError("--device is for --model trees; a linear model is trained on the CPU")


def read_parameters(options: argparse.Namespace, kind: str, recipe: Recipe) -> dict[str, Any]:
    """The parameters that are given as options; parameters of a base model are base__NAME."""
    given = {
        "objective": options.objective,
        "label_costs": options.label_costs,
        "n_rounds" if kind == "trees" else "max_iter": options.rounds,
        "learning_rate": options.learning_rate,
        "early_stopping_rounds": options.early_stopping,
        "order": options.order,
        "window": options.window,
        "ancestors": options.ancestors,
        "transitions": options.transitions,
        "device": options.device,
        "constraints": options.constraints,
        "decode": options.decode,
        "random_state": options.seed,
        "n_jobs": options.jobs,
    }
    parameters = {name: value for name, value in given.items() if value is not None}
    for name, value in options.assignments:
        if name in ONLY_PYTHON:
            raise CommandError(f"--set {name}: {ONLY_PYTHON[name]}")
        if name in parameters:
            raise CommandError(f"{name} is given twice; give it once")
        if name.startswith("base__") and options.base is None:
            raise CommandError(f"--set {name} is about a base model; add --base linear")
        parameters[name] = value
    holds_out = parameters.get("validation_fraction", True) is not None
    stops_early = parameters.get("early_stopping_rounds") is not None
    if stops_early and not options.dev and not holds_out:
        raise CommandError(
            "early_stopping_rounds needs validation data, but validation_fraction is None; name a "
            "file with --dev, or hold out a share of TRAIN: --set validation_fraction=0.1"
        )
    if recipe.heads is not None:
        parameters["parents_format"] = "conllu"
    elif parameters.get("ancestors"):
        raise CommandError("--ancestors needs the parents of positions; name their column: --heads")
    return parameters


def read_queries(path: str) -> RelationalFeatures:
    """A transformer with the parameters of queries that are in a schema."""
    from hedgerow.files.facts import query_parameters, read_schema
    from hedgerow.relational import RelationalFeatures

    with telling():
        return RelationalFeatures(**query_parameters(read_schema(path, Path(path).read_bytes())))


def check_gpu() -> None:
    """Raise CommandError unless a GPU can be used, before the training data are read."""
    from hedgerow.cuda import cupy_device

    try:
        cupy_device.find_device()
    except (ImportError, RuntimeError) as error:
        raise CommandError(f"--device cuda: {error}") from error
