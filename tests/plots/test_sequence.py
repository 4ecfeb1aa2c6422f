"""Marginals of a sequence."""

import numpy as np
import pytest
from matplotlib import pyplot

from hedgerow import DataWarning, LinearCRF, plots
from hedgerow.label_colours import COLOURS, HATCHES

STATES = ["idle", "run", "_stop$"]


@pytest.fixture(scope="module")
def machine():
    X = [[[code + 0.3 * (t % 2)] for t, code in enumerate([0, 0, 1, 1, 1, 2])] * 2]
    y = [[STATES[code] for code in [0, 0, 1, 1, 1, 2]] * 2]
    return LinearCRF(n_jobs=1).fit(X, y), X[0], y[0]


def legend_names(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_bands_are_the_marginals(machine):
    crf, x, _ = machine
    ax = plots.marginals(crf, x)
    bands = [area.get_paths()[0] for area in ax.collections[: len(STATES)]]
    (probs,) = crf.predict_marginals([x])
    tops = np.cumsum(probs, axis=1)
    for t, code in np.argwhere(probs > 0.01):
        middle = tops[t, code] - probs[t, code] / 2
        found = [band.contains_point((t, middle)) for band in bands]
        assert np.flatnonzero(found).tolist() == [code]
    assert legend_names(ax) == ["run", "idle", r"_stop\$"]


def test_strips_hold_the_labels_and_crosses_the_errors(machine):
    crf, x, _ = machine
    predicted = crf.predict([x])[0].tolist()
    truth = list(predicted)
    truth[3] = next(label for label in STATES if label != truth[3])
    truth[4] = None
    ax = plots.marginals(crf, x, truth)
    (crosses,) = ax.get_lines()
    assert crosses.get_xdata().tolist() == [3]
    assert [text.get_text() for text in ax.get_yticklabels()][-2:] == ["predicted", "true"]
    assert [text.get_text() for text in plots.marginals(crf, x).get_yticklabels()][-1] == (
        "predicted"
    )


def test_names_stand_where_they_fit(machine):
    crf, x, y = machine
    assert crf.predict([x])[0].tolist() == y
    strip = [
        text.get_text() for text in plots.marginals(crf, x).texts if text.get_position()[1] < 0
    ]
    assert strip == ["idle", "run"] * 2  # one position has no room for the third name
    narrow = pyplot.subplots(figsize=(1.5, 1.5))[1]
    assert not plots.marginals(crf, x, ax=narrow).texts


def test_of_many_labels_the_least_probable_share_a_band(tree_crf, words):
    X, y = words
    ax = plots.marginals(tree_crf, X[0], y[0])
    (probs,) = tree_crf.predict_marginals(X[:1])
    shown = set(legend_names(ax))
    assert "others" in shown
    classes = tree_crf.classes_.tolist()
    probable = {classes[code] for code in np.flatnonzero(probs.max(axis=0) >= 0.1)}
    expected = probable | set(y[0]) | set(tree_crf.predict(X[:1])[0].tolist())
    assert shown - {"others"} == expected


def test_every_label_looks_different(tree_crf, words):
    ax = plots.marginals(tree_crf, np.concatenate(words[0]), np.concatenate(words[1]))
    handles = ax.get_legend().get_patches()
    looks = {(patch.get_facecolor(), patch.get_hatch()) for patch in handles}
    assert len(handles) == len(looks) == 26
    assert len(COLOURS) * len(HATCHES) >= 26


def test_one_sequence_is_plotted(tree_crf, words):
    X, y = words
    with pytest.raises(
        ValueError, match=r"x is a list of 60 sequences; expected the sequence itself"
    ):
        plots.marginals(tree_crf, X)
    with pytest.raises(ValueError, match=r"y\[0\] has 1 label but X\[0\] has"):
        plots.marginals(tree_crf, X[0], y[0][:1])
    with pytest.raises(ValueError, match=r"unknown label 7 at y\[0\]\[0\]"):
        plots.marginals(tree_crf, X[0], [7] * len(y[0]))


def test_labels_that_the_model_does_not_know_are_mistakes(machine, tree_crf, words):
    crf, x, y = machine
    truth = ["fly", "fly", None, *y[3:]]
    with pytest.warns(DataWarning, match="y has labels that did not occur in training: 'fly', at"):
        ax = plots.marginals(crf, x, truth)
    (crosses,) = ax.get_lines()
    assert crosses.get_xdata().tolist() == [0, 1]
    assert "fly" in [text.get_text() for text in ax.texts]
    assert legend_names(ax) == ["run", "idle", r"_stop\$"]
    with pytest.warns(DataWarning, match="did not occur in training: '!', "):  # of many labels
        ax = plots.marginals(tree_crf, words[0][0], ["!"] * len(words[1][0]))
    assert len(ax.get_lines()[0].get_xdata()) == len(words[1][0])


def test_positions_are_whole_numbers():
    crf = LinearCRF(n_jobs=1).fit([[["u"]], [["v"]]], [["a"], ["b"]])
    ax = plots.marginals(crf, [["u"]])
    assert [tick for tick in ax.get_xticks() if -0.5 <= tick <= 0.5] == [0]


def test_a_decoder_that_is_asked_for(machine):
    crf, x, _ = machine
    for decode in ("viterbi", "marginal"):
        truth = crf.predict([x], decode=decode)[0].tolist()
        (crosses,) = plots.marginals(crf, x, truth, decode=decode).get_lines()
        assert crosses.get_xdata().tolist() == []
    message = "decode is 'best'; expected 'viterbi', 'marginal' or None"
    with pytest.raises(ValueError, match=message):
        plots.marginals(crf, x, decode="best")
