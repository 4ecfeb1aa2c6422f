"""Plots: what is drawn is what the model holds. Pictures themselves are looked at by people."""

import sys

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

from hedgerow import LinearCRF, TreeCRF, plots

X = [[{"w": "the"}, {"w": "cat"}, {"w": "sat"}], [{"w": "a"}, {"w": "cat"}], [{"w": "sat"}]]
Y = [["D", "N", "V"], ["D", "N"], ["V"]]
ROWS = [np.array([[0.0, 1.0], [1.0, 0.5], [0.2, 0.1]]), np.array([[0.1, 0.9], [0.9, 0.4]])]
CODES = [[0, 1, 0], [0, 1]]
TREES = {"n_rounds": 3, "max_depth": 2, "window": 1, "min_child_weight": 0.01}


@pytest.fixture(autouse=True)
def without_a_screen():
    matplotlib.use("Agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def linear():
    return LinearCRF().fit(X, Y, eval_set=(X, Y))


@pytest.fixture(scope="module")
def trees():
    return TreeCRF(**TREES).fit(ROWS, CODES, eval_set=(ROWS, CODES))


def texts(ax):
    return [text.get_text() for text in ax.texts]


def names(ticks):
    return [tick.get_text() for tick in ticks]


DRAWN = {
    "learning_curve": lambda crf, x, ax: plots.learning_curve(crf, ax=ax),
    "transitions": lambda crf, x, ax: plots.transitions(crf, ax=ax),
    "importances": lambda crf, x, ax: plots.importances(crf, ax=ax),
    "marginals": lambda crf, x, ax: plots.marginals(crf, x, ax=ax),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_both_models_are_drawn_on_given_axes_or_new_ones(draw, linear, trees):
    for crf, x in ((linear, X[0]), (trees, ROWS[0])):
        figure, ax = pyplot.subplots()
        assert draw(crf, x, ax) is ax
        other = draw(crf, x, None)
        assert other.figure is not figure
        other.figure.canvas.draw()


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_a_learning_curve_is_the_history(metric, trees):
    ax = plots.learning_curve(trees, metric)
    training, evaluation, best = ax.get_lines()
    np.testing.assert_array_equal(training.get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(training.get_ydata(), trees.history_[metric])
    np.testing.assert_array_equal(evaluation.get_ydata(), trees.history_[f"eval_{metric}"])
    assert list(best.get_xdata()) == [trees.best_round_] * 2


def test_losses_of_linear_weights_have_an_axis_each(linear):
    ax = plots.learning_curve(linear)
    (beside,) = [other for other in ax.figure.axes if other is not ax]
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), linear.history_["loss"])
    np.testing.assert_array_equal(beside.get_lines()[0].get_ydata(), linear.history_["eval_loss"])


def test_transitions_are_in_their_places(linear):
    ax = plots.transitions(linear)
    drawn = np.ma.filled(ax.images[0].get_array(), np.nan)
    table = linear.transitions()
    classes = linear.classes_.tolist()
    for before, after, weight in zip(table["from"], table["to"], table["weight"], strict=True):
        assert drawn[classes.index(before), classes.index(after)] == weight
    assert np.isfinite(drawn).sum() == len(table["weight"])
    assert names(ax.get_xticklabels()) == names(ax.get_yticklabels()) == classes


def test_pairs_that_are_forbidden_stay_empty():
    crf = LinearCRF(constraints="BIO").fit([[["a"], ["b"], ["c"]]], [["B-X", "I-X", "O"]])
    drawn = np.ma.filled(plots.transitions(crf).images[0].get_array(), np.nan)
    before, after = (crf.classes_.tolist().index(label) for label in ("O", "I-X"))
    assert np.isnan(drawn[before, after])


def test_pairs_with_attributes_show_their_plain_weights():
    crf = LinearCRF(transition_attributes=True).fit(X, Y)
    table = crf.transitions()
    drawn = np.ma.filled(plots.transitions(crf).images[0].get_array(), np.nan)
    plain = table["weight"][table["attribute"] == ""]
    assert np.sort(drawn[np.isfinite(drawn)]).tolist() == np.sort(plain).tolist()


def test_importances_of_trees_are_shares_by_offset(trees):
    table = trees.importances()
    ax = plots.importances(trees)
    drawn = ax.images[0].get_array()
    assert drawn.sum() == pytest.approx(100)
    rows, columns = names(ax.get_yticklabels()), names(ax.get_xticklabels())
    assert rows == sorted(rows, key=lambda name: -drawn[rows.index(name)].sum())
    share = 100 * table["gain"][0] / table["gain"].sum()
    offset = int(table["offset"][0])
    column = columns.index(f"{offset:+d}".replace("-", "\N{MINUS SIGN}") if offset else "0")
    assert drawn[rows.index(table["feature"][0]), column] == pytest.approx(share)


def test_importances_of_weights_are_the_heaviest_by_label(linear):
    ax = plots.importances(linear, n_features=2)
    table = linear.weights()
    heaviest = table["attribute"][np.argmax(np.abs(table["weight"]))]
    assert names(ax.get_yticklabels())[0] == heaviest
    assert ax.images[0].get_array().shape == (2, 3)


def test_marginals_stack_up_to_one_with_labels_above(trees):
    ax = plots.marginals(trees, ROWS[0], CODES[0])
    heights = [patch.get_data() for patch in ax.patches if hasattr(patch, "get_data")]
    probs = trees.predict_marginals([ROWS[0]])[0]
    for code, (top, _, bottom) in enumerate(heights):
        np.testing.assert_allclose(top - bottom, probs[:, code])
    np.testing.assert_allclose(heights[-1][0], 1)
    assert texts(ax) == [*map(str, trees.predict([ROWS[0]])[0]), "predicted", "0", "1", "0", "true"]


def test_rare_labels_share_a_colour():
    labels = [f"label {i:02d}" for i in range(12)]
    crf = LinearCRF(max_iter=3, tol=0).fit([[[label] for label in labels]], [labels])
    legend = plots.marginals(crf, [[label] for label in labels]).get_legend()
    assert len(legend.get_texts()) == 9
    assert legend.get_texts()[-1].get_text() == "others"


def test_a_tree_shows_its_questions_and_leaves(trees):
    table = trees.trees(round=1, label=1)
    ax = plots.tree(trees, 1, 1)
    found = [text.replace("\n", " ").replace("\N{MINUS SIGN}", "-") for text in texts(ax)]
    leaves = table["left"] < 0
    assert sorted(text for text in found if text in set(table["question"][~leaves])) == sorted(
        table["question"][~leaves]
    )
    assert all(f"{value:+.3f}" in found for value in table["value"][leaves])
    assert sum(text.startswith("yes") for text in found) == (~leaves).sum()
    assert ax.get_title() == "round 1, label 1"


def test_what_cannot_be_drawn(linear, trees):
    with pytest.raises(TypeError, match="a LinearCRF has no trees to draw; expected a TreeCRF"):
        plots.tree(linear, 1, "D")
    with pytest.raises(ValueError, match="metric is 'f1'; expected 'loss' or 'accuracy'"):
        plots.learning_curve(trees, "f1")
    alone = LinearCRF(order=0).fit(X, Y)
    with pytest.raises(ValueError, match="this LinearCRF has no accuracy to draw; fit it with"):
        plots.learning_curve(alone, "accuracy")
    with pytest.raises(ValueError, match="this LinearCRF has no weights of label pairs; fit it"):
        plots.transitions(alone)
    with pytest.raises(ValueError, match="y has 1 labels, but x has 3 positions"):
        plots.marginals(linear, X[0], ["D"])
    with pytest.raises(ValueError, match="no feature is in use: the model has no splits"):
        plots.importances(TreeCRF(n_rounds=1).fit(np.zeros((3, 1)), CODES[0]))
    with pytest.raises(ValueError, match="this TreeCRF is not fitted yet"):
        plots.learning_curve(TreeCRF())


def test_without_matplotlib_the_error_says_what_to_install(linear, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = r'plots need matplotlib: pip install "hedgerow\[plots\]"'
    with pytest.raises(ImportError, match=message):
        plots.transitions(linear)
