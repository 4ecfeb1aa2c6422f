"""Learning curves."""

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF, plots


def by_name(ax):
    return {line.get_label(): line for line in ax.get_lines()}


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_curves_of_a_tree_crf_are_its_history(tree_crf, metric):
    ax = plots.learning_curve(tree_crf, metric=metric)
    lines = by_name(ax)
    for name, key in (("training", metric), ("evaluation", f"eval_{metric}")):
        assert lines[name].get_xdata().tolist() == [1, 2, 3, 4]
        assert lines[name].get_ydata().tolist() == tree_crf.history_[key]
    best = tree_crf.best_round_
    (x,), (figure,) = lines[f"best round: {best}"].get_data()
    assert (x, figure) == (best, tree_crf.history_[f"eval_{metric}"][best - 1])
    assert len(ax.get_legend().get_texts()) == 3
    assert (ax.get_xlabel(), len(ax.figure.axes)) == ("round", 1)


def test_losses_of_a_linear_crf_have_an_axis_each(linear_crf):
    ax = plots.learning_curve(linear_crf)
    right = ax.figure.axes[1]
    assert by_name(ax)["training"].get_ydata().tolist() == linear_crf.history_["loss"]
    assert by_name(right)["evaluation"].get_ydata().tolist() == linear_crf.history_["eval_loss"]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    best = linear_crf.best_iter_
    assert names == ["training", "evaluation", f"best iteration: {best}"]
    assert (ax.get_xlabel(), right.get_ylabel()) == ("iteration", "evaluation loss per position")


def test_the_accuracy_of_a_linear_crf_is_that_of_its_eval_set(linear_crf):
    ax = plots.learning_curve(linear_crf, metric="accuracy")
    line, best = ax.get_lines()
    assert line.get_ydata().tolist() == linear_crf.history_["eval_accuracy"]
    assert best.get_xdata().tolist() == [linear_crf.best_iter_]
    assert len(ax.figure.axes) == 1


@pytest.mark.parametrize("crf", [LinearCRF(max_iter=4, tol=0), TreeCRF(n_rounds=4)])
def test_each_eval_set_has_a_curve(crf, words):
    X, y = words
    crf.fit(X[:9], y[:9], eval_set={"dev": (X[:5], y[:5]), "own": (X[:9], y[:9])})
    ax = plots.learning_curve(crf)
    lines = by_name(ax.figure.axes[-1])
    for name in ("dev", "own"):
        assert lines[name].get_ydata().tolist() == crf.history_[f"{name}_loss"]
    assert lines["dev"].get_color() != lines["own"].get_color()
    (best,) = (line for name, line in lines.items() if name.startswith("best "))
    assert best.get_color() == lines["own"].get_color()


def test_what_was_watched_later_stands_at_the_end(words):
    X, y = words
    first = TreeCRF(n_rounds=2, n_jobs=1).fit(X[:9], y[:9])
    crf = TreeCRF(n_rounds=1, n_jobs=1).fit(X[:9], y[:9], eval_set=(X[:9], y[:9]), init=first)
    lines = by_name(plots.learning_curve(crf))
    assert lines["training"].get_xdata().tolist() == [1, 2, 3]
    assert lines["evaluation"].get_xdata().tolist() == [3]
    assert lines["evaluation"].get_marker() == "o"
    assert "best round: 3" in lines


def test_the_first_round_for_the_objective_is_marked(words):
    X, y = words
    crf = TreeCRF(n_rounds=3, warm_rounds=2, objective="accuracy", n_jobs=1).fit(X[:9], y[:9])
    lines = by_name(plots.learning_curve(crf))
    assert sorted(lines) == ["end of the warm-up rounds", "training"]
    assert np.allclose(lines["end of the warm-up rounds"].get_xdata(), 2.5)


def test_without_history_there_is_no_curve():
    crf = TreeCRF(n_rounds=2, n_jobs=1).fit([[[1.0]], [[2.0]]], [["a"], ["b"]])
    assert crf.n_rounds_ == 0  # there is too little to learn from
    with pytest.raises(ValueError, match="this TreeCRF has no history to plot: it was trained"):
        plots.learning_curve(crf)


def test_metrics_that_cannot_be_plotted(tree_crf, words):
    with pytest.raises(ValueError, match="metric is 'f1'; expected 'loss' or 'accuracy'"):
        plots.learning_curve(tree_crf, metric="f1")
    X, y = words
    crf = LinearCRF(tol=0.1, n_jobs=1).fit(X[:2], y[:2])
    with pytest.raises(ValueError, match=r"no accuracy to plot; fit it with eval_set=\(X, y\)"):
        plots.learning_curve(crf, metric="accuracy")
