"""Heat maps of transitions and of features."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot

from hedgerow import LinearCRF, TreeCRF, plots
from hedgerow.labels import Labels
from hedgerow.plots.heat_map import draw_heat_map
from reference.pictures import overlaps, text_boxes


def shown(ax):
    """Rows, columns and numbers of a heat map."""
    rows = [text.get_text() for text in ax.get_yticklabels()]
    columns = [text.get_text() for text in ax.get_xticklabels()]
    return rows, columns, np.ma.filled(ax.images[0].get_array(), np.nan)


@pytest.mark.parametrize("kind", ["tree_crf", "linear_crf"])
def test_transitions_stand_where_their_labels_are(kind, request):
    crf = request.getfixturevalue(kind)
    ax = plots.transitions(crf)
    rows, columns, matrix = shown(ax)
    assert rows == columns == crf.classes_.tolist()
    table = crf.transition_weights()
    for before, after, weight in zip(table["from"], table["to"], table["weight"], strict=True):
        assert matrix[rows.index(before), columns.index(after)] == weight
    low, high = ax.images[0].get_clim()
    assert low == -high == -np.abs(matrix).max()
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("from", "to")


def test_pairs_without_a_weight_are_left_open(words):
    X, y = words
    crf = TreeCRF(n_rounds=2, label_patterns=[("a", "z"), ("z", "a")], n_jobs=1).fit(X, y)
    _, _, matrix = shown(plots.transitions(crf))
    assert np.isfinite(matrix).sum() == 2
    assert np.isfinite(matrix[0, 25])
    assert np.isfinite(matrix[25, 0])


def test_pairs_that_are_forbidden_are_left_open():
    crf = LinearCRF(constraints="BIO", n_jobs=1).fit([[["a"], ["b"], ["c"]]], [["B-X", "I-X", "O"]])
    rows, columns, matrix = shown(plots.transitions(crf))
    assert np.isnan(matrix[rows.index("O"), columns.index("I-X")])
    assert np.isfinite(matrix[rows.index("O"), columns.index("B-X")])


@pytest.mark.parametrize("parameter", ["transition_attributes", "pattern_attributes"])
def test_weights_of_pairs_with_attributes_are_not_mixed_in(parameter):
    X, y = [[["u"], ["v"], ["u"]]], [["a", "b", "a"]]
    crf = LinearCRF(**{parameter: True}, n_jobs=1).fit(X, y)
    _, _, matrix = shown(plots.transitions(crf))
    table = crf.transition_weights()
    plain = table["weight"][table["attribute"] == ""]
    assert matrix.ravel().tolist() == plain.tolist()
    assert {text.get_text() for text in plots.transitions(crf).texts} == {
        f"{weight:+.2f}".replace("-", "\N{MINUS SIGN}") for weight in plain
    }


def test_small_weights_are_written_with_more_digits():
    matrix = np.array([[0.0043, -0.0012]])
    ax = draw_heat_map(None, matrix, ["a"], ["b", "c"], square=True, signed=True, unit="weight")
    assert [text.get_text() for text in ax.texts] == ["+0.0043", "\N{MINUS SIGN}0.0012"]


@pytest.mark.parametrize("patterns", [{"order": 0}, {"label_patterns": []}])
def test_without_pairs_there_are_no_transitions(words, patterns):
    X, y = words
    crf = TreeCRF(n_rounds=1, n_jobs=1, **patterns).fit(X[:9], y[:9])
    message = (
        "no weights of label pairs to plot; fit one with an order of at least 1 or, if "
        "label_patterns is given, with pairs among them"
    )
    with pytest.raises(ValueError, match=message):
        plots.transitions(crf)


@pytest.mark.parametrize(("size", "long"), [(None, True), ((2.5, 2.5), False)])
def test_names_do_not_overlap(tree_crf, size, long, monkeypatch):
    if long:
        names = np.array([f"a rather long name {label}" for label in tree_crf.classes_])
        monkeypatch.setattr(tree_crf, "model_", replace(tree_crf.model_, labels=Labels(names)))
    ax = plots.transitions(tree_crf, size and pyplot.subplots(figsize=size)[1])
    for axis in (ax.xaxis, ax.yaxis):
        boxes = text_boxes(axis.get_ticklabels(), ax.figure)
        assert len(boxes) == 26 if size is None else len(boxes) >= 6
        assert not overlaps(boxes)


def test_importances_by_offset_are_shares_of_the_gain(tree_crf):
    rows, columns, matrix = shown(plots.importances(tree_crf, top=3))
    assert columns == ["-1", "0", "+1"]
    table = tree_crf.importances()
    gain = {
        (str(name), int(offset)): gain
        for name, offset, gain in zip(table["feature"], table["offset"], table["gain"], strict=True)
    }
    totals = [sum(gain.get((row, offset), 0) for offset in (-1, 0, 1)) for row in rows]
    names = {name for name, _ in gain}
    most = sorted((sum(gain.get((n, o), 0) for o in (-1, 0, 1)) for n in names), reverse=True)
    assert totals == pytest.approx(most[:3])
    for i, row in enumerate(rows):
        for j, offset in enumerate((-1, 0, 1)):
            share = 100 * gain.get((row, offset), np.nan) / table["gain"].sum()
            assert matrix[i, j] == pytest.approx(share, nan_ok=True)


def test_importances_at_one_offset_are_bars(words):
    X, y = words
    crf = TreeCRF(n_rounds=2, n_jobs=1).fit(X, y)
    ax = plots.importances(crf)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(widths, reverse=True)
    assert sum(widths) == pytest.approx(100)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == list(dict.fromkeys(map(str, crf.importances()["feature"])))


def test_importances_of_a_linear_crf_are_its_heaviest_weights(linear_crf):
    rows, columns, matrix = shown(plots.importances(linear_crf, top=2))
    table = linear_crf.weights()
    weights = {
        (str(name), str(label)): weight
        for name, label, weight in zip(
            table["attribute"], table["label"], table["weight"], strict=True
        )
    }
    heaviest = sorted(weights, key=lambda key: -abs(weights[key]))
    assert rows == list(dict.fromkeys(name for name, _ in heaviest))[:2]
    assert columns == linear_crf.classes_.tolist()
    for i, row in enumerate(rows):
        for j, label in enumerate(columns):
            assert matrix[i, j] == pytest.approx(weights.get((row, label), np.nan), nan_ok=True)


def test_without_splits_nothing_is_important(words):
    X, y = words
    crf = TreeCRF(n_rounds=1, min_child_weight=1e9, n_jobs=1).fit(X[:9], y[:9])
    with pytest.raises(ValueError, match="no tree of the model has a split"):
        plots.importances(crf)


def test_top_is_a_number(tree_crf):
    with pytest.raises(ValueError, match="top is 0; expected an integer of at least 1"):
        plots.importances(tree_crf, top=0)
