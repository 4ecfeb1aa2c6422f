"""Training runs: random data and parameters of both estimators, as plain values."""

from typing import Any

from hypothesis import strategies as st

from abuse.kind import Case
from abuse.training import FLAT_FORMS, SCHEMES
from hedgerow.trees.missing import METHODS

__all__ = ["draw_nothing", "learn_from_all", "may_refine", "trainings", "unwatch"]

MARGINAL_OBJECTIVES = ["pointwise", "accuracy", "expected_accuracy", "f1"]
FORMS = ["dense", "sparse", "frames", "items", "facts", *FLAT_FORMS]

# Codes of the labels of a pattern; there may be fewer labels.
PATTERNS = st.lists(st.integers(0, 4), min_size=1, max_size=4)


# Queries about facts: initial number of literals, window, links between positions.
FACTS = st.fixed_dictionaries(
    {"depth": st.integers(1, 2), "window": st.integers(0, 1), "links": st.booleans()}
)


def may_refine(case: Case) -> bool:
    """Whether trees can refine queries: not if anything depends on the columns from the start."""
    parameters = case["parameters"]
    depends = [
        parameters["transitions"] == "trees",
        parameters["missing"] in ("impute", "indicator"),
        parameters.get("interaction_constraints") is not None,
        case["interactions"] is not None,
        bool(case["monotone"]),
    ]
    return not any(depends)


def unwatch(case: Case) -> None:
    """Remove the eval set and early stopping."""
    case["watched"] = False
    _stop_by_nothing(case)


def learn_from_all(case: Case) -> Case:
    """The same training run without held-out sequences, whose choice depends on their indices."""
    if "held_out" not in case:
        return case
    case = {name: value for name, value in case.items() if name != "held_out"}
    case["parameters"] = dict(case["parameters"])
    _stop_by_nothing(case)
    return case


def draw_nothing(case: Case) -> Case:
    """The same training run without sampling of sequences and positions, which depends on X."""
    case = learn_from_all(case)
    if case["estimator"] == "TreeCRF":
        whole = {"subsample": 1.0, "stratified": False}
        case = case | {"parameters": case["parameters"] | whole}
    return case


def _stop_by_nothing(case: Case) -> None:
    case.pop("held_out", None)
    for name in ("early_stopping_rounds", "early_stopping_metric", "eval_metric"):
        case["parameters"].pop(name, None)


@st.composite
def trainings(
    draw: st.DrawFn,
    estimators: tuple[str, ...] = ("LinearCRF", "TreeCRF"),
    *,
    warm: bool = True,
    based: bool = False,
) -> Case:
    """Training runs that neither estimator refuses; some with a base model, if requested."""
    estimator = draw(st.sampled_from(estimators))
    is_tree = estimator == "TreeCRF"
    objectives = ["likelihood", "likelihood", "softmax_margin", *MARGINAL_OBJECTIVES]
    objectives += ["max_margin"] * (not is_tree)
    objective = draw(st.sampled_from(objectives))
    gaps = is_tree and draw(st.booleans())
    constrained = draw(st.sampled_from(["", "", "forbidden", "allowed", "scheme"]))
    weighted = draw(st.sampled_from(["none", "none", "class", "sequences", "positions", "both"]))
    by_position = weighted in ("positions", "both")
    form = draw(st.sampled_from(FLAT_FORMS if by_position else FORMS))
    known = weighted == "class" or by_position or objective == "max_margin"
    labels = draw(st.sampled_from(SCHEMES if constrained == "scheme" else ["text", "numbers"]))
    patterns = draw(st.none() | st.none() | st.lists(PATTERNS, max_size=5))
    data = {
        "seed": draw(st.integers(0, 10**6)),
        "n_labels": draw(st.integers(1, 4)),
        "lengths": draw(st.lists(st.integers(1, 6), min_size=1, max_size=6)),
        "labels": labels,
        "form": form,
        "gaps": gaps and form not in ("items", "facts"),
        "unknown": 0.0 if known else draw(st.sampled_from([0.0, 0.3])),
        "marked": draw(st.booleans()),
        "scale": draw(st.sampled_from([1.0, 1.0, 1e3, 1e-3])),
    }
    if form == "facts":
        data["facts"] = draw(FACTS)
    parameters: dict[str, Any] = {
        "objective": objective,
        "sharpness": draw(st.sampled_from([5.0, 1.0, 20.0])),
        "label_costs": draw(st.sampled_from(["hamming", 0.3, 4.0])),
        "f1_average": draw(st.sampled_from(["macro", "micro"])),
        "decode": draw(st.sampled_from(["auto", "viterbi", "marginal"])),
        "n_jobs": 1,
        "random_state": draw(st.integers(0, 3)),
    }
    lambdas: list[Any] = [None, "auto", 0.5] + ([[0.0, 2.0]] if objective != "max_margin" else [])
    parameters["pattern_lambda"] = draw(st.sampled_from(lambdas))
    if patterns is None:
        parameters["order"] = draw(st.integers(0, 3))
        parameters["min_pattern_count"] = draw(st.integers(0, 2))
    class_weights = None
    if weighted in ("class", "both"):
        class_weights = draw(st.none() | st.just([0.5, 2.0, 0.0]))
        if class_weights is None:
            parameters["class_weight"] = "balanced"
    case = {
        "estimator": estimator,
        "parameters": parameters,
        "data": data,
        "weights": {"class": "none", "both": "positions"}.get(weighted, weighted),
        "constrained": constrained,
        "patterns": patterns,
        "class_weights": class_weights,
        "costs": draw(st.sampled_from([None, None, [0.5, 2.0, 0.0, 3.0]])),
        "watched": draw(st.booleans()),
        "warm": warm and draw(st.booleans()),
    }
    if is_tree:
        parameters |= draw(_tree_parameters())
        if parameters.get("order") == 0:
            parameters["transitions"] = "weights"  # no splits on previous labels
        case |= draw(_column_rules())
        parameters["max_literals"] = draw(st.integers(1, 4)) if may_refine(case) else 1
        if based:
            case["base"] = draw(_bases(case))
    else:
        parameters |= draw(_linear_parameters(objective, form))
        if parameters.get("order") == 0:  # there are no patterns
            parameters["pattern_attributes"] = False
    # The best iteration for another objective may be in an earlier stage, with another loss.
    stops = is_tree or objective in ("likelihood", "softmax_margin")
    can_hold_out = len(data["lengths"]) > 1 and class_weights is None
    if stops and can_hold_out and not case["watched"] and draw(st.booleans()):
        case["held_out"] = True
        # Folds of a base need two of the other sequences.
        larger = [] if "folds" in (case.get("base") or "") else [0.8]
        parameters["validation_fraction"] = draw(st.sampled_from([0.3, 0.5, *larger]))
        parameters["early_stopping_rounds"] = draw(st.integers(1, 2))
    elif case["watched"] and stops:
        parameters["early_stopping_rounds"] = draw(st.sampled_from([None, 1, 2]))
    if case["watched"] or "held_out" in case:
        parameters |= draw(_metrics(labels))
    return case


@st.composite
def _metrics(draw: st.DrawFn, labels: str) -> dict[str, Any]:
    """Metrics after each round or iteration, and the metric of early stopping."""
    names = [None, "accuracy", "sequence_accuracy", ["f1_macro"], ["loss", "balanced_accuracy"]]
    eval_metric = draw(st.sampled_from(names + ["chunk_f1"] * (labels in SCHEMES)))
    measured = [eval_metric] if isinstance(eval_metric, str) else eval_metric or []
    return {
        "eval_metric": eval_metric,
        "early_stopping_metric": draw(st.sampled_from(["loss", "accuracy", None, *measured])),
    }


@st.composite
def _linear_parameters(draw: st.DrawFn, objective: str, form: str) -> dict[str, Any]:
    margin = objective == "max_margin"
    on_labels_before: list[bool | str] = [False, True]
    min_count = draw(st.integers(0, 2))
    if form not in ("items", "facts") and min_count < 2:  # the column is certainly an attribute
        on_labels_before.append("x1" if form in ("dense", "sparse") else "cou")
    return {
        "reg_lambda": draw(st.sampled_from([1.0, 0.1, 10.0])),
        "reg_alpha": 0.0 if margin else draw(st.sampled_from([0.0, 0.0, 0.1])),
        "max_iter": draw(st.integers(1, 15)),
        "warm_iter": draw(st.sampled_from([None, None, 0, 3])),
        "tol": 0.0,
        "min_count": min_count,
        "all_pairs": draw(st.booleans()),
        "transition_attributes": False,
        "pattern_attributes": False,
        draw(st.sampled_from(["transition_attributes", "pattern_attributes"])): draw(
            st.sampled_from(on_labels_before)
        ),
    }


@st.composite
def _tree_parameters(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "n_rounds": draw(st.integers(1, 5)),
        "learning_rate": draw(st.sampled_from([None, 0.3, 1.0])),
        "max_depth": draw(st.sampled_from([6, 2, 1, None])),
        "max_leaves": draw(st.sampled_from([None, 3])),
        "min_child_weight": draw(st.sampled_from([0.0, 1.0])),
        "min_split_gain": draw(st.sampled_from([0.0, 0.0, 0.0731])),
        "reg_lambda": draw(st.sampled_from([1.0, 0.0, 5.0])),
        "max_step": draw(st.sampled_from([1.0, None])),
        "max_bins": draw(st.sampled_from([255, 3])),
        "window": draw(st.sampled_from([0, 1, 3, [2, 0]])),
        "newton": draw(st.booleans()),
        "curvature": draw(st.sampled_from(["mixing", "exact", "length"])),
        "direction": draw(st.sampled_from(["steepest", "steepest", "conjugate"])),
        "line_search": draw(st.sampled_from([None, None, True, False])),
        "transitions": draw(st.sampled_from(["weights", "weights", "trees"])),
        "transition_step": draw(st.sampled_from(["auto", "bound", "exact"])),
        "trim": draw(st.sampled_from([None, 0.0])),
        "subsample": draw(st.sampled_from([1.0, 0.6])),
        "sampling_method": draw(st.sampled_from(["uniform", "gradient_based"])),
        "stratified": draw(st.booleans()),
        "negative_ratio": draw(st.sampled_from([3.0, 0.5])),
        "negative_weight": draw(st.sampled_from(["unbiased", "none", "balanced"])),
        "colsample_bytree": draw(st.sampled_from([1.0, 0.5])),
        "colsample_bynode": draw(st.sampled_from([1.0, 0.5])),
        "interaction_constraints": draw(st.sampled_from([None, "pairwise", "no_interactions"])),
        "warm_rounds": draw(st.sampled_from([None, None, 0, 2])),
        "missing": draw(st.sampled_from(["learned", *METHODS])),
    }


@st.composite
def _bases(draw: st.DrawFn, case: Case) -> str | None:
    """A base model or none; with folds if there are certainly enough sequences."""
    data = case["data"]
    linear = [] if data["gaps"] else ["weights", "pairs"]
    base = draw(st.sampled_from([None, "trees", *linear]))
    sure = len(data["lengths"]) > 3 and not data["unknown"] and case["weights"] == "none"
    if base is None or not sure or case["class_weights"] or case["parameters"].get("class_weight"):
        return base
    return draw(st.sampled_from([base, f"{base} folds"]))


@st.composite
def _column_rules(draw: st.DrawFn) -> Case:
    """Monotone constraints and groups of columns, by the numbers of columns that always occur."""
    directions = st.sampled_from([[1], [-1], [1, -1], [0, 1]])
    columns = st.sampled_from([[], [], [1], [2], [1, 2]])
    return {
        "monotone": [[column, draw(directions)] for column in draw(columns)],
        "interactions": draw(st.sampled_from([None, None, [[1, 2]], [[2]], [[1], [1, 2]]])),
    }
