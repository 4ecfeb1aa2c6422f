"""What all plots have in common: the axes, the errors, and matplotlib only when it is needed."""

import importlib
import re
import sys
from functools import cache

import pytest
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError

from hedgerow import LinearCRF, TreeCRF, plots
from hedgerow.plots.canvas import measure_text, readable_on, show

PLOTS = {
    "learning_curve": lambda crf, x, ax: plots.learning_curve(crf, ax),
    "transitions": lambda crf, x, ax: plots.transitions(crf, ax),
    "importances": lambda crf, x, ax: plots.importances(crf, ax),
    "marginals": lambda crf, x, ax: plots.marginals(crf, x, ax=ax),
    "tree": lambda crf, x, ax: plots.tree(crf, 1, "a", ax),
}


@cache
def small_model():
    X, y = [[[0.1], [0.9], [0.2]], [[0.8], [0.1]]], [["a", "b", "a"], ["b", "a"]]
    return TreeCRF(n_rounds=2, min_child_weight=0, n_jobs=1).fit(X, y), X[0]


def test_all_plots_are_tested():
    assert sorted(PLOTS) == sorted(plots.__all__)


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_is_drawn_on_a_new_figure_or_on_the_axes_given(name):
    crf, x = small_model()
    new = PLOTS[name](crf, x, None)
    assert pyplot.get_fignums() == [new.figure.number]
    _, (untouched, given) = pyplot.subplots(1, 2)
    assert PLOTS[name](crf, x, given) is given
    assert len(pyplot.get_fignums()) == 2
    assert not untouched.has_data()


@pytest.mark.parametrize("name", PLOTS)
def test_only_fitted_models_are_plotted(name):
    _, x = small_model()
    with pytest.raises(TypeError, match=r"crf is of type str; expected a fitted TreeCRF or Lin"):
        PLOTS[name]("model", x, None)
    for crf in (TreeCRF(), LinearCRF()):
        with pytest.raises(NotFittedError, match="is not fitted yet; call fit"):
            PLOTS[name](crf, x, None)


@pytest.mark.parametrize("name", PLOTS)
def test_without_matplotlib_it_is_said_how_to_get_it(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=re.escape('pip install "hedgerow[plots]"')):
        PLOTS[name](*small_model(), None)


def test_importing_needs_no_matplotlib(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith("hedgerow.plots")]:
        monkeypatch.delitem(sys.modules, name)
    assert importlib.import_module("hedgerow.plots").tree is not plots.tree


def test_names_are_shortened_and_hold_no_formulas():
    assert show("a" * 40, 5) == "aaaa…"
    assert show("PRP$ or $x$") == r"PRP\$ or \$x\$"
    assert show("two\nlines") == r"two\nlines"
    assert show(7) == "7"


def test_width_of_a_text():
    figure = pyplot.figure(dpi=72)
    for name in ("", "word", "two words", "$x$", "ÄÖ…"):
        text = figure.text(0, 0, show(name), fontsize=12)
        assert measure_text(show(name), 12) == pytest.approx(text.get_window_extent().width, abs=2)


def test_text_stands_out():
    assert readable_on("white") == readable_on("#f0e442") == "#20262c"
    assert readable_on("black") == readable_on("#1f65b0") == "white"
