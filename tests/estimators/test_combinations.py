"""Combinations of parameters and input formats: any two occur together in a training run."""

import copy
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from abuse.batch import strict_warnings
from abuse.metamorphic.answers import file_of
from abuse.metamorphic.checkpoint import stop
from abuse.metamorphic.workers import fit_together
from abuse.training import FLAT_FORMS, Training
from abuse.trainings import may_refine
from hedgerow import Checkpoint, LinearCRF, TreeCRF, load
from reference.covering import cover, pairs_of
from reference.fitted_model import read_model
from reference.relational_databases import as_attributes

SHARED = {
    "form": ["dense", "sparse", "frames", "items", "flat", "grouped", "facts"],
    "patterns": ["order 1", "order 0", "order 2", "given"],
    "weights": ["none", "sequences", "positions", "balanced"],
    "missing": ["none", "None", "missing_label"],
    "constrained": ["", "scheme", "forbidden", "allowed"],
    "watched": ["nothing", "eval_set", "several", "held out"],
    "stops": [False, True],
    "eval_metric": [None, "f1_macro", "several"],
    "decode": ["auto", "viterbi", "marginal"],
    "label_costs": ["hamming", 0.5, "by label"],
    "f1_average": ["macro", "micro"],
    "pattern_lambda": [None, "auto", "by length"],
    "warm": [False, True],
    "output": ["default", "pandas", "polars"],
    "n_jobs": [1, 2],
    "graph": ["chain", "tree", "ancestors"],
    "workers": [1, 2],
}
# What needs the examples of all workers at once.
FOR_ONE_WORKER = {
    ("form", "facts"),
    ("transitions", "trees"),
    ("missing_values", "fractional"),
    ("missing_values", "surrogate"),
}
# What a GPU does not do, and what the message says.
NOT_ON_GPU = {
    ("form", "facts"): "trees that extend queries about facts",
    ("patterns", "order 2"): "order above 1",
    ("patterns", "given"): "label_patterns of more than two labels",
    ("missing", "None"): "missing labels",
    ("missing", "missing_label"): "missing labels",
    ("constrained", "scheme"): "constraints",
    ("constrained", "forbidden"): "forbidden",
    ("constrained", "allowed"): "allowed",
    ("graph", "tree"): "parents",
    ("graph", "ancestors"): "parents",
    ("objective", "softmax_margin"): "objective='softmax_margin'",
    ("monotone", True): "monotone_constraints",
    ("interactions", "groups"): "interaction_constraints",
    ("interactions", "pairwise"): "interaction_constraints",
    ("interactions", "no_interactions"): "interaction_constraints",
    ("transitions", "trees"): "transitions='trees'",
    ("curvature", "length"): "curvature='length'",
    ("direction", "conjugate"): "direction='conjugate'",
    ("line_search", True): "line_search=True",
    ("sampled", "by gradient"): "sampling_method='gradient_based'",
    ("missing_values", "fractional"): "missing='fractional'",
    ("missing_values", "surrogate"): "missing='surrogate'",
    ("missing_values", "impute"): "missing='impute'",
    ("missing_values", "indicator"): "missing='indicator'",
    ("base", "pairs"): "base models that score label pairs",
}
OWN = {
    LinearCRF: {
        "objective": [
            *("likelihood", "pointwise", "accuracy", "expected_accuracy", "f1"),
            *("softmax_margin", "max_margin"),
        ],
        "reg_alpha": [0.0, 0.1],
        "all_pairs": [False, True],
        "min_count": [0, 2],
        "transition_attributes": [False, True],
        "pattern_attributes": [False, True],
    },
    TreeCRF: {
        "objective": [
            *("likelihood", "pointwise", "accuracy", "expected_accuracy", "f1", "softmax_margin"),
        ],
        "monotone": [False, True],
        "interactions": [None, "groups", "pairwise", "no_interactions"],
        "transitions": ["weights", "trees"],
        "transition_step": ["auto", "bound", "exact"],
        "newton": [True, False],
        "curvature": ["mixing", "length"],
        "direction": ["steepest", "conjugate"],
        "line_search": [None, True, False],
        "window": [0, 2],
        "sampled": ["no", "by label", "by gradient"],
        "max_leaves": [None, 3],
        "gaps": [False, True],
        "missing_values": ["learned", "fractional", "surrogate", "impute", "indicator"],
        "base": ["", "weights folds", "pairs", "trees folds"],
        "device": ["cpu", "cuda"],
    },
}


def is_allowed(row):
    """Whether choices can be combined, with some value of the parameters not chosen yet."""
    needs_all = row.get("weights") in ("positions", "balanced")
    margin = row.get("objective") == "max_margin"
    return not (
        (row.get("weights") == "positions" and row.get("form", "flat") not in FLAT_FORMS)
        or ((needs_all or margin) and row.get("missing", "none") != "none")
        or (margin and (row.get("reg_alpha", 0.0) or row.get("pattern_lambda") == "by length"))
        or (row.get("watched") == "nothing" and (row.get("eval_metric") or row.get("stops")))
        or (row.get("watched") == "held out" and row.get("stops") is False)
        or (row.get("gaps") and row.get("form") in ("items", "facts"))
        or (row.get("transitions") == "trees" and row.get("patterns") == "order 0")
        or (row.get("pattern_attributes") and row.get("transition_attributes"))
        or (row.get("pattern_attributes") and row.get("patterns") == "order 0")
        or (row.get("constrained") == "scheme" and row.get("missing") == "missing_label")
        or (row.get("constrained") == "scheme" and row.get("graph", "chain") != "chain")
        or (row.get("gaps") and row.get("base", "trees").partition(" ")[0] not in ("", "trees"))
        or (row.get("workers") == 2 and not FOR_ONE_WORKER.isdisjoint(row.items()))
        or (row.get("device") == "cuda" and not NOT_ON_GPU.keys().isdisjoint(row.items()))
        or (row.get("device") == "cuda" and row.get("workers") == 2)
    )


def case_of(estimator, row):
    """A training run in the format of the abuse harness."""
    own = {name: row[name] for name in OWN[estimator] if name not in ("gaps", "sampled", "base")}
    monotone, interactions = own.pop("monotone", False), own.pop("interactions", None)
    if "missing_values" in own:  # `missing` are labels here
        own["missing"] = own.pop("missing_values")
    parameters = own | {
        "decode": row["decode"],
        "n_jobs": row["n_jobs"],
        "random_state": 0,
        "ancestors": 2 if row["graph"] == "ancestors" else 0,
        "eval_metric": ["sequence_accuracy", "loss"] if row["eval_metric"] == "several" else None,
        "pattern_lambda": [0.5, 2.0] if row["pattern_lambda"] == "by length" else None,
    }
    if row["eval_metric"] == "f1_macro":
        parameters["eval_metric"] = "f1_macro"
    if row["pattern_lambda"] == "auto":
        parameters["pattern_lambda"] = "auto"
    parameters |= {name: row[name] for name in ("label_costs", "f1_average")}
    if row["patterns"] != "given":
        parameters["order"] = int(row["patterns"][-1])
    if row["weights"] == "balanced":
        parameters["class_weight"] = "balanced"
    if row["stops"]:
        parameters |= {"early_stopping_rounds": 2, "validation_fraction": 0.4}
    if estimator is LinearCRF:
        parameters |= {"max_iter": 3, "tol": 0.0, "warm_iter": 2}
    else:
        parameters |= {"n_rounds": 3, "min_child_weight": 0.0, "warm_rounds": 1}
        if row["sampled"] != "no":
            share = dict.fromkeys(("subsample", "colsample_bytree", "colsample_bynode"), 0.6)
            parameters |= share | {"stratified": True}
        if row["sampled"] == "by gradient":
            parameters |= {"sampling_method": "gradient_based", "negative_weight": "balanced"}
        if interactions in ("pairwise", "no_interactions"):
            parameters["interaction_constraints"] = interactions
    case = {
        "estimator": estimator.__name__,
        "parameters": parameters,
        "data": {
            "seed": 3,
            "n_labels": 3,
            "lengths": [3, 3, 2, 1, 3],
            "labels": "BIO" if row["constrained"] == "scheme" else "text",
            "form": row["form"],
            "gaps": row.get("gaps", False),
            "unknown": 0.0 if row["missing"] == "none" else 0.3,
            "marked": row["missing"] == "missing_label",
            "scale": 1.0,
            "graph": row["graph"] != "chain",
            "facts": {"depth": 1, "window": 1, "links": False},
        },
        "weights": "none" if row["weights"] == "balanced" else row["weights"],
        "constrained": row["constrained"],
        "patterns": [[0, 1], [1, 0, 2], [2]] if row["patterns"] == "given" else None,
        "class_weights": None,
        "costs": [0.5, 2.0, 0.0, 3.0] if row["label_costs"] == "by label" else None,
        "watched": row["watched"] in ("eval_set", "several"),
        "warm": row["warm"],
        "monotone": [[2, [1, -1]]] if monotone else [],
        "interactions": [[1, 2]] if interactions == "groups" else None,
        "base": row.get("base"),
    }
    if estimator is TreeCRF:
        parameters["max_literals"] = 3 if may_refine(case) else 1
    return case | ({"held_out": True} if row["watched"] == "held out" else {})


ROWS = {estimator: cover(SHARED | OWN[estimator], is_allowed) for estimator in OWN}


@pytest.mark.parametrize(
    ("estimator", "row"),
    [(estimator, row) for estimator, rows in ROWS.items() for row in rows],
    ids=[f"{estimator.__name__}-{n}" for estimator in OWN for n in range(len(ROWS[estimator]))],
)
def test_any_two_choices(estimator, row, tmp_path, request):
    if row.get("device") == "cuda":
        request.getfixturevalue("use_device")
    with strict_warnings():
        training = Training.of(case_of(estimator, row))
        if row["watched"] == "several":
            data = training.fit_parameters["eval_set"]
            more = training.fit_parameters | {"eval_set": {"one": data, "two": data}}
            training = replace(training, fit_parameters=more)
        fit, path = training.start(), tmp_path / "kept"

        def run(crf, **more):
            return crf.fit(training.X, training.y, **fit, **more)

        # Stopped and resumed, cloned and trained in one go, saved: the same to the last byte.
        stop("error", 2, lambda: run(training.build(), checkpoint=Checkpoint(path, every=1)))
        crf = run(training.build(), checkpoint=Checkpoint(path))
        file = file_of(crf)
        assert file_of(run(clone(crf))) == file
        if row["workers"] == 2:
            assert fit_together(training, [[0, 2, 4], [1, 3]], fit) == [file, file]
        loaded = load(file)
        assert file_of(loaded) == file
        check_answers(loaded, training)
        check_output(crf, row["output"])


@pytest.mark.parametrize(("choice", "message"), NOT_ON_GPU.items(), ids=str)
@pytest.mark.usefixtures("use_device")
def test_what_a_gpu_refuses_is_named(choice, message):
    first = {name: values[0] for name, values in (SHARED | OWN[TreeCRF]).items()}
    row = first | dict([choice], device="cuda")
    training = Training.of(case_of(TreeCRF, row))
    with (
        strict_warnings(),
        pytest.raises(ValueError, match=f"device='cuda' does not support .*{re.escape(message)}"),
    ):
        training.build().fit(training.X, training.y, **training.start())


def check_answers(crf, training):
    """Labels are those of y and keep to the constraints; probabilities are those of all labellings.

    Where sequences are held out, the oracle does not know which categories the model knows; it is
    of chains alone.
    """
    X, asked = training.X, training.ask_parameters
    assert 0 <= crf.score(X, training.y, **asked) <= 1
    assert np.isfinite(crf.loss_)
    marginals = crf.predict_proba(X, **asked)
    np.testing.assert_allclose(marginals.sum(axis=1), 1)
    log_likelihoods = crf.log_likelihood(X, crf.predict(X, **asked), **asked)
    assert (log_likelihoods > -np.inf).all()
    if "held_out" not in training.case and training.parents is None:
        xs = as_attributes(crf, [x for x, _ in training.sequences()])
        model = read_model(crf, xs)
        expected = np.concatenate([model.enumerate(x, None).marginals for x in xs])
        # Scores of label pairs position by position are float32.
        atol = 1e-6 if getattr(crf, "transitions", "") == "trees" else 1e-9
        np.testing.assert_allclose(marginals, expected, rtol=100 * atol, atol=atol)


def check_output(crf, output):
    """Tables are of the kind that is asked for, and the same in each."""
    plain, other = (
        copy.copy(crf).set_output(transform=kind).patterns() for kind in ("default", output)
    )
    kinds = {"default": "hedgerow", "pandas": "pandas", "polars": "polars"}
    assert type(other).__module__.partition(".")[0] == kinds[output]
    assert list(other["weight"]) == list(plain["weight"])


def test_all_pairs_are_there():
    for estimator, rows in ROWS.items():
        factors = SHARED | OWN[estimator]
        pairs = pairs_of(factors, is_allowed)
        assert all(any({one, two} <= set(row.items()) for row in rows) for one, two in pairs)
        assert all(map(is_allowed, rows))
        assert len(rows) < 60 < len(pairs) / 20
