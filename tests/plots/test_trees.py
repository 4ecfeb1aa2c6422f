"""Trees, drawn."""

import pytest
from matplotlib import pyplot
from matplotlib.patches import FancyBboxPatch

from hedgerow import plots
from reference.pictures import is_inside, overlaps, text_boxes

ANSWERS = {"yes", "no", "yes, missing", "no, missing", "yes, outside", "no, outside"}


def box_texts(ax):
    return [text.get_text() for text in ax.texts if text.get_text() not in ANSWERS]


def number(value):
    return f"{value:+.4f}".replace("-", "\N{MINUS SIGN}")


def test_boxes_hold_questions_and_leaves(tree_crf):
    table = tree_crf.trees(round=2, label="e")
    ax = plots.tree(tree_crf, 2, "e")
    is_leaf = table["left"] < 0
    expected = [question for question in table["question"] if question]
    expected += [number(value) for value in table["value"][is_leaf]]
    assert sorted(box_texts(ax)) == sorted(expected)
    assert sum(isinstance(patch, FancyBboxPatch) for patch in ax.patches) == len(is_leaf)
    answers = [text.get_text() for text in ax.texts if text.get_text() in ANSWERS]
    n_splits = int((~is_leaf).sum())
    assert len(answers) == 2 * n_splits
    assert sum("missing" in answer for answer in answers) == n_splits
    assert answers.count("yes, missing") == (table["missing"] == "left").sum()
    assert ax.get_title() == "Round 2, label e"


def test_yes_stands_above_no(tree_crf):
    table = tree_crf.trees(round=1, label="e")
    ax = plots.tree(tree_crf, 1, "e", max_depth=1)
    yes, no = (
        next(t for t in ax.texts if t.get_text().startswith(answer)) for answer in ("yes", "no")
    )
    assert (
        ax.transData.transform(yes.get_position())[1]
        > (ax.transData.transform(no.get_position())[1])
    )
    assert box_texts(ax)[0] == table["question"][0]


def test_what_lies_deeper_is_counted(tree_crf):
    table = tree_crf.trees(round=1, label="e")
    n_leaves = int((table["left"] < 0).sum())
    assert n_leaves > 2
    assert box_texts(plots.tree(tree_crf, 1, "e", max_depth=0)) == [f"… {n_leaves} leaves"]


@pytest.mark.parametrize("size", [None, (2, 12)])
def test_no_text_is_in_the_way_of_another(tree_crf, size):
    table = tree_crf.trees(round=1, label="e")
    ax = plots.tree(tree_crf, 1, "e", size and pyplot.subplots(figsize=size)[1])
    boxes = text_boxes(ax.texts, ax.figure)
    assert len(boxes) == len(table["node"]) + 2 * (table["left"] >= 0).sum()
    assert not overlaps(boxes)
    frame = ax.get_window_extent().padded(2)
    assert all(is_inside(box, frame) for box in boxes)


def test_errors_of_trees(tree_crf, linear_crf):
    with pytest.raises(TypeError, match="a LinearCRF has no trees to draw; expected a TreeCRF"):
        plots.tree(linear_crf, 1, "e")
    with pytest.raises(ValueError, match="round is None; expected an integer of at least 1"):
        plots.tree(tree_crf, None, "e")
    with pytest.raises(ValueError, match="round is 5, but the model has 4 rounds"):
        plots.tree(tree_crf, 5, "e")
    with pytest.raises(ValueError, match="label has the unknown label None"):
        plots.tree(tree_crf, 1, None)
    with pytest.raises(ValueError, match="max_depth is -1; expected an integer of at least 0"):
        plots.tree(tree_crf, 1, "e", max_depth=-1)
