"""Eval metrics: names, functions, scorers, and invalid values."""

import os
import re
import threading

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, make_scorer

from abuse.children import fork, join
from hedgerow import Checkpoint, DataWarning, load
from hedgerow.metrics import chunk_scores
from hedgerow.scorers import make_position_scorer
from hedgerow.training.eval_metrics import DATA, EvalMetric, EvalMetrics, read_eval_metric
from hedgerow.training.eval_sets import eval_figures
from reference.estimators import refuses

CLASSES = np.array(["B-x", "I-x", "O"])
# Four sequences: two that are right, one with a mistake, one without a known label.
OFFSETS = np.array([0, 2, 4, 5, 7])
TRUE = np.array([0, 1, 0, -1, -1, 2, 2], np.int32)
PREDICTED = np.array([0, 1, 0, 2, 1, 2, 0], np.int32)
FLAT = ["B-x", "I-x", "B-x", "O", "O"], ["B-x", "I-x", "B-x", "O", "B-x"]
LISTS = ([["B-x", "I-x"], ["B-x"], ["O", "O"]], [["B-x", "I-x"], ["B-x"], ["O", "B-x"]])
F1 = f1_score(*FLAT, average="macro")


def measure(value):
    names, metrics = read_eval_metric(value)
    found = EvalMetrics(metrics, CLASSES).measure(TRUE, PREDICTED, OFFSETS)
    assert tuple(found) == names
    return found


def share_of_pairs(y_true, y_pred):
    """A metric of our own, which looks at whole lists."""
    assert (y_true, y_pred) == LISTS
    return np.float32(0.5)


class Half:
    """A metric that is an object."""

    def __call__(self, y_true, y_pred):
        return len(y_true) / 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("sequence_accuracy", {"sequence_accuracy": 2 / 3}),
        ("chunk_f1", {"chunk_f1": chunk_scores(*LISTS).f1}),
        (("chunk_precision", "chunk_recall"), {"chunk_precision": 2 / 3, "chunk_recall": 1.0}),
        ("f1_macro", {"f1_macro": F1}),
        (["f1_macro", share_of_pairs], {"f1_macro": F1, "share_of_pairs": 0.5}),
        (make_position_scorer(f1_score, average="macro"), {"f1_score": F1}),
        (make_scorer(f1_score, average="macro"), {"f1_score": F1}),
        (
            {
                "loss of F1": make_scorer(f1_score, average="macro", greater_is_better=False),
                "macro": "f1_macro",
                "one": lambda y_true, y_pred: 1,
            },
            {"loss of F1": -F1, "macro": F1, "one": 1.0},
        ),
        (Half(), {"Half": 1.5}),
    ],
)
def test_metrics(value, expected):
    assert measure(value) == pytest.approx(expected)


def test_what_is_always_measured_needs_no_metric():
    assert read_eval_metric(None) == ((), ())
    assert read_eval_metric(["accuracy", "loss"]) == (("accuracy", "loss"), ())


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("f1_makro", ValueError, "eval_metric is 'f1_makro'; did you mean f1_macro?"),
        ("auc", ValueError, "eval_metric is 'auc'; expected the name of a metric"),
        ("beauty", ValueError, "eval_metric is 'beauty'; expected the name of a metric, such as"),
        ("roc_auc", ValueError, "eval_metric has 'roc_auc', which compares probabilities; expect"),
        (
            make_position_scorer(log_loss, response_method="predict_proba"),
            ValueError,
            "eval_metric has 'log_loss', which compares probabilities; expected one that compares",
        ),
        (
            {"it": make_scorer(log_loss, response_method="predict_proba")},
            ValueError,
            "has 'it', wh",
        ),
        ([], ValueError, "eval_metric is []; expected the name of a metric"),
        (5, TypeError, "eval_metric is 5; expected the name of a metric"),
        (Half, TypeError, f"eval_metric is {Half}; expected the name of a metric"),
        (
            {"half": Half},
            TypeError,
            f"eval_metric['half'] is {Half}; expected the name of a metric",
        ),
        (lambda a, b: 1, ValueError, "eval_metric has a function without a name, <function <lamb"),
        (["f1_macro"] * 2, ValueError, "eval_metric has two metrics named 'f1_macro'; pass"),
        ({"": "f1_macro"}, ValueError, "eval_metric has the name ''; expected a non-empty, pri"),
        ({"loss": Half()}, ValueError, "has the name 'loss'; expected a non-empty, printable str"),
    ],
)
def test_what_is_no_metric(value, error, message):
    refuses(error, message, read_eval_metric, value)


def test_a_function_whose_name_is_taken():
    def accuracy(y_true, y_pred):
        return 1.0

    refuses(ValueError, "has a function whose name is taken", read_eval_metric, accuracy)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (f1_score, f"eval_metric 'f1_score' cannot score {DATA}: "),
        (f1_score, "it is called with two lists of label lists: for a metric of flat labels pass"),
        ("f1", f"eval_metric 'f1' cannot score {DATA}: ValueError: "),
        ({"nothing": lambda *_: None}, f"eval_metric 'nothing' gives None for {DATA}; expected a"),
        (
            {"nan": lambda *_: np.nan},
            f"eval_metric 'nan' gives nan for {DATA}; expected a fin",
        ),
    ],
)
def test_metrics_that_fail(value, message):
    refuses(ValueError, message, measure, value)


def test_chunks_need_labels_of_chunks():
    metrics = EvalMetrics(read_eval_metric("chunk_f1")[1], np.array(["a", "b"]))
    codes, offsets = np.array([0, 1], np.int32), np.array([0, 2])
    message = f"cannot score {DATA}: ValueError: expected labels such as B-NP, I-NP and O, got"
    refuses(ValueError, message, metrics.measure, codes, codes, offsets)
    outside = EvalMetrics(read_eval_metric("chunk_f1")[1], np.array(["O"]))
    assert outside.measure(codes[:1], codes[:1], np.array([0, 1])) == {"chunk_f1": 0}


# In training.

X = [np.array([[0.0], [1.0], [0.2]]), np.array([[0.9], [0.1]])]
Y = [["O", "B-x", "O"], ["B-x", "O"]]
OTHERS = [np.array([[0.6], [0.1]]), np.array([[0.4]])], [["B-x", None], ["B-x"]]


def found_of(y_true, y_pred):
    """How many labels are B-x."""
    return sum(labels.count("B-x") for labels in y_pred)


def test_metrics_are_in_the_history(make, tmp_path):
    plain = make().fit(X, Y, eval_set={"dev": OTHERS, "own": (X, Y)})
    crf = make(eval_metric=["chunk_f1", found_of]).fit(
        X, Y, eval_set={"dev": OTHERS, "own": (X, Y)}
    )
    metrics = ("loss", "accuracy", "chunk_f1", "found_of")
    assert [key for key in crf.history_ if key.startswith("dev_")] == [f"dev_{m}" for m in metrics]
    assert {key: crf.history_[key] for key in plain.history_} == plain.history_
    predicted = [labels.tolist() for labels in crf.predict(X)]
    assert crf.history_["own_chunk_f1"][-1] == chunk_scores(Y, predicted).f1
    assert crf.history_["own_found_of"][-1] == found_of(Y, predicted)
    assert eval_figures(crf.history_)["own_chunk_f1"] == ("own", "chunk_f1")
    crf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert (loaded.eval_metric, loaded.history_) == (None, crf.history_)


@pytest.mark.parametrize("metric", ["chunk_f1", ["f1_macro", "chunk_f1"], {"mine": "chunk_f1"}])
def test_metrics_are_saved_by_name(make, metric, tmp_path):
    make(eval_metric=metric).fit(X, Y, eval_set=(X, Y)).save(tmp_path / "model")
    assert load(tmp_path / "model").eval_metric == metric


@pytest.mark.parametrize(
    "parameters", [{"eval_metric": "f1_macro"}, {"early_stopping_metric": "accuracy"}]
)
def test_a_metric_without_data_changes_nothing(make, parameters):
    ((name, value),) = parameters.items()
    message = (
        f"{name} is {value!r}, but there are no data to measure it on, so it changes nothing; call "
        "fit(..., eval_set=(X, y)), pass --dev on the command line, or set early_stopping_rounds, "
        "which holds out some training sequences"
    )
    with pytest.warns(DataWarning, match=re.escape(message)):
        crf = make(**parameters).fit(X, Y)
    assert crf.history_ == make().fit(X, Y).history_
    make(**parameters).fit(X, Y, eval_set=(X, Y))
    make(**parameters, early_stopping_rounds=2, validation_fraction=0.5).fit(X, Y)
    make(eval_metric="loss", early_stopping_metric="loss").fit(X, Y)  # as without them


def test_an_eval_set_of_one_label_is_measured_without_a_word(make):
    same = [[Y[0][0]] * len(Y[0])]
    crf = make(eval_metric="balanced_accuracy").fit(X, Y, eval_set=(X[:1], same))
    assert len(crf.history_["eval_balanced_accuracy"]) > 0


class Sinking:
    """A metric that decreases at every call, except for the third."""

    def __init__(self):
        self.figures = [3.0, 2.0, 4.0, *range(0, -100, -1)]

    def __call__(self, y_true, y_pred):
        return self.figures.pop(0)


@pytest.mark.parametrize(
    ("metric", "chosen", "best"),
    [
        ({"mine": Sinking()}, None, 3),
        ({"mine": Sinking(), "macro": "f1_macro"}, "mine", 3),
        ([Sinking(), "loss"], "Sinking", 3),
    ],
)
def test_metrics_stop_training(estimator, metric, chosen, best):
    steps = {"max_iter": 30, "tol": 0} if estimator.__name__ == "LinearCRF" else {"n_rounds": 30}
    options = {"early_stopping_rounds": 2, "early_stopping_metric": chosen, "eval_metric": metric}
    if isinstance(metric, dict):
        metric["mine"].__init__()
    else:
        metric[0].__init__()
    crf = estimator(**steps, **options, n_jobs=1).fit(X, Y, eval_set=OTHERS)
    assert len(crf.history_["loss"]) == best + 2
    assert getattr(crf, "best_round_", getattr(crf, "best_iter_", None)) == best


def test_a_name_that_no_metric_has(make):
    message = (
        "early_stopping_metric is 'f1'; expected 'loss', 'accuracy', 'f1_macro' or None; to stop "
        "by another metric, name it in eval_metric too"
    )
    crf = make(eval_metric="f1_macro", early_stopping_metric="f1")
    refuses(ValueError, message, crf.fit, X, Y)


def test_checkpoints_tell_metrics_apart(make, tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept")

    def fit(metric):
        return make(eval_metric=metric).fit(X, Y, eval_set=OTHERS, checkpoint=checkpoint)

    kept = fit(["chunk_f1", found_of])
    assert fit(("chunk_f1", found_of)).history_ == kept.history_
    message = f"eval_metric was ['chunk_f1', {__name__}.found_of] and is {{'one': 'f1_macro'}} now"
    refuses(ValueError, message, fit, {"one": "f1_macro"})
    refuses(ValueError, f"is {__name__}.found_of now", fit, found_of)
    with pytest.raises(TypeError, match=re.escape("eval_metric is a function that has no name")):
        fit({"one": lambda *_: 1.0})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_while_another_thread_measures():
    begun, end = threading.Event(), threading.Event()
    slow = EvalMetric("slow", lambda y_true, y_pred: begun.set() or end.wait(60))
    fast = EvalMetric("fast", lambda y_true, y_pred: 1.0)
    thread = threading.Thread(target=slow.measure, args=([["a"]], [["a"]]))
    thread.start()
    assert begun.wait(60)
    child = fork(lambda: int(fast.measure([["a"]], [["a"]]) != 1.0), seconds=30)
    end.set()
    thread.join()
    join(child)
