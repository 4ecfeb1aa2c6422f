"""What a notebook shows."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline

from hedgerow import TreeCRF, load, notebook
from hedgerow.history import History
from hedgerow.tables import Table
from reference.estimators import small

BAD = '<b>&"bad"\''
X = [[[BAD], ["v"], ["w"]], [["v"], ["w"]]]
Y = [[BAD, "v", "w"], ["v", "w"]]


def parse(html):
    """The tree of our own HTML, which is valid XML too; nothing in it may be markup by accident."""
    assert BAD not in html
    assert "<b>&" not in html
    return ElementTree.fromstring(f"<div>{re.sub('(?s)<style>.*?</style>', '', html)}</div>")


def text_of(tree):
    return " ".join(" ".join(tree.itertext()).split())


@pytest.fixture
def crf(estimator):
    return small(estimator).fit(X, Y, eval_set=(X, Y))


def test_an_estimator_tells_how_its_training_went(crf, tmp_path):
    crf.save(tmp_path / "model")
    box = sklearn.utils.estimator_html_repr(crf)
    for model in (crf, load(tmp_path / "model")):
        html = model._repr_html_()
        ours = html[html.index("<style>") : html.index('<div class="sk-', 1)]
        own = re.search(
            r'<style>\n.hedgerow.*?<div class="hedgerow">(.*?)</div></div></div>', html, re.S
        )
        shown = text_of(parse(f"<div>{own.group(1)}</div></div>"))
        assert shown.startswith(f"{type(crf).__name__} 3 labels {BAD}, v, w size ")
        assert f"{crf.step_name}s " in shown
        assert "eval_loss" in shown
        assert "decoding " in shown
        assert ours.count("<svg") == html.count("<svg ") - box.count("<svg ") >= 1
        assert "sk-top-container" in html
        assert model._repr_mimebundle_()["text/html"].count("<svg") == html.count("<svg")


def test_scikit_learn_decides_whether_there_is_a_picture(crf, estimator):
    with sklearn.config_context(display="text"):
        assert not hasattr(crf, "_repr_html_")
        assert list(crf._repr_mimebundle_()) == ["text/plain"]
    assert 'class="hedgerow"' not in small(estimator)._repr_html_()  # nothing to tell yet
    assert "sk-top-container" in make_pipeline("passthrough", crf)._repr_html_()


def test_a_model_of_columns_and_no_history(estimator):
    crf = small(estimator).fit(np.eye(15), np.arange(15) % 14)
    crf.history_ = History()
    html = crf._repr_html_()
    assert "x0, x1, " in html
    assert ", … 3 more" in html
    assert "14 labels" in html


def test_early_stopping_shows_what_was_kept():
    crf = TreeCRF(n_rounds=9, n_jobs=1, min_child_weight=0, early_stopping_rounds=2)
    wrong = [labels[::-1] for labels in Y]
    html = crf.fit(X, Y, eval_set=(X, wrong))._repr_html_()
    assert f"{crf.n_rounds_} of {len(crf.history_['loss'])}, the best on the eval set" in html
    assert f"at round {crf.best_round_}" in html
    html = crf.set_params(n_rounds=1).fit(X * 5, Y * 5)._repr_html_()
    assert ", the best on held-out sequences: 1" in html


def test_an_explanation(crf):
    found = crf.explain(X[0], 0)
    tree = parse(found._repr_html_())
    shown = text_of(tree)
    assert shown.startswith(f"position 0: {BAD} (probability")
    assert "= log-odds" in shown
    assert f"{found.log_odds:+.4f}" in shown
    assert len(tree.findall(".//i")) == len(str(found).splitlines()) - 3


def test_a_table():
    table = Table({BAD: np.array([BAD, "x"]), "n": np.array([1.5, np.nan])})
    tree = parse(table._repr_html_())
    assert text_of(tree) == f"{BAD} n {BAD} 1.5 x nan"


def test_a_history():
    history = History({"loss": [0.5, np.inf, 0.2], f"{BAD}_loss": [0.4, 0.3], "none": []})
    assert repr(history).splitlines() == [
        "3 steps          first  best  at step  last",
        "loss               0.5   0.2        3   0.2",
        f"{BAD}_loss    0.4   0.3        3   0.3",
    ]
    tree = parse(history._repr_html_())
    assert len(tree.findall(".//svg")) == 1
    assert history.at(2) == {"loss": np.inf, f"{BAD}_loss": 0.4}
    assert history.at(4) == history.at(0) == {}
    assert repr(History()) == "0 steps  first  best  at step  last"
    assert history == dict(history)


@pytest.mark.parametrize(
    ("history", "panels"),
    [
        ({}, []),
        ({"loss": [np.nan]}, []),
        ({"loss": [3.0]}, [["loss"]]),
        ({"loss": [1.0, 0.5], "eval_loss": [1.5, 1.2]}, [["loss", "eval_loss"]]),
        ({"loss": [900.0, 500.0], "eval_loss": [0.7, 0.5]}, [["loss"], ["eval_loss"]]),
        (
            {"loss": [1.0], "accuracy": [0.9], "a_accuracy": [0.5], "a_f1_macro": [0.4]},
            [["loss"], ["accuracy", "a_accuracy"], ["a_f1_macro"]],
        ),
    ],
)
def test_curves_of_one_metric_go_together(history, panels):
    tree = parse(notebook.curves(history))
    found = [[key.text or key[0].tail for key in figure.findall(".//span")] for figure in tree]
    assert found == panels


def test_a_long_curve_is_thinned_out():
    svg = notebook.curves({"loss": np.linspace(1, 0, 100_000).tolist()}, "round", best=5)
    assert len(svg) < 20_000
    assert "stroke-dasharray" in svg
    assert notebook.curves({"loss": [1.0, np.nan, 0.5, 0.4]}).count("M") == 3  # axes, two parts
