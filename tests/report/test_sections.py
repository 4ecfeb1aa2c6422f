"""Parts of the page that say more of errors: decoders, segments, explanations, two models."""

import os
from itertools import pairwise

import numpy as np
import pytest

from hedgerow import DataWarning, LinearCRF, TreeCRF
from hedgerow.metrics import chunk_scores, label_scores
from hedgerow.report import explanations, write_report
from hedgerow.stats import mcnemar
from hedgerow.stats.sequence_bootstrap import resample
from hedgerow.stats.tallies import tally_metric
from reference.report_page import Page

RANDOM = np.random.default_rng(11)
X = [RANDOM.normal(size=(n, 3)).round(2) for n in (6, 1, 9, 4, 7, 5)]
Y = [np.where(x[:, 0] + np.roll(x[:, 1], 1) > 0, "up", "down").tolist() for x in X]
TREES = TreeCRF(n_rounds=3, window=1, min_child_weight=0, max_depth=2, n_jobs=1).fit(X[:3], Y[:3])
LINEAR = LinearCRF().fit(X[:3], Y[:3])
# Labels that depend on labels two positions before, and trees that ask about the label before.
HIGH_ORDER = TreeCRF(n_rounds=2, order=2, min_child_weight=0, max_depth=2, n_jobs=1).fit(X, Y)
PAIR_TREES = TreeCRF(
    n_rounds=2, transitions="trees", min_child_weight=0, max_depth=2, n_jobs=1
).fit(X, Y)
TAGS = [["B-NP", "I-NP", "O", "B-VP"], ["O", "B-NP"], ["B-NP", "B-NP", "I-NP"]]
WORDS = [[{"tag": tag[0], "t": str(t % 2)} for t, tag in enumerate(tags)] for tags in TAGS]


@pytest.fixture
def write(tmp_path):
    def write_page(*args, **options):
        write_page.notes = write_report(args[0], tmp_path / "page.html", *args[1:], **options)
        return Page(tmp_path / "page.html")

    return write_page


def runs_of(labels):
    """Label, first position and length of every run, one position after the other."""
    found = []
    for t, label in enumerate(labels):
        if t and labels[t - 1] == label:
            found[-1][2] += 1
        else:
            found.append([label, t, 1])
    return [tuple(run) for run in found]


def test_both_decoders(write):
    data = write(TREES, X, Y).data
    assert data["decoders"]["names"] == ["Viterbi", "marginals"]
    predicted = [TREES.predict(X, decode=decode) for decode in ("viterbi", "marginal")]
    scores = [label_scores(Y, each) for each in predicted]
    rows = {name: values for name, *values in data["decoders"]["rows"]}
    assert rows["Accuracy"] == pytest.approx([each.accuracy for each in scores])
    assert rows["Sequences without an error"] == pytest.approx(
        [each.sequence_accuracy for each in scores]
    )
    flat = [np.concatenate(each) for each in predicted]
    assert data["decoders"]["n_differ"] == np.sum(flat[0] != flat[1])


def test_decoders_without_truth(write):
    page = write(TREES, X)
    assert page.data["decoders"]["rows"] == []
    assert page.data["segments"] is None
    both = [np.concatenate(TREES.predict(X, decode=d)) for d in ("viterbi", "marginal")]
    own = 0 if TREES.decode_ == "viterbi" else 1
    labels = np.array(page.data["labels"])
    assert labels[page.browser("otherwise")].tolist() == both[1 - own].tolist()


def test_segments_are_runs_of_a_label(write):
    found = write(LINEAR, X, Y).data["segments"]
    predicted = [labels.tolist() for labels in LINEAR.predict(X)]
    assert found["kind"] == "runs"
    for code, name in enumerate(found["names"]):
        sides = [
            {(s, run) for s, y in enumerate(side) for run in runs_of(y) if run[0] == name}
            for side in (Y, predicted)
        ]
        assert found["matched"][code] == len(sides[0] & sides[1])
        for side, part in zip(sides, (found["true"], found["predicted"]), strict=True):
            lengths = [run[2] for _, run in side]
            assert part["count"][code] == len(lengths)
            assert part["mean"][code] == pytest.approx(np.mean(lengths or [0]), rel=1e-5)
            assert part["median"][code] == pytest.approx(np.median(lengths or [0]))
            bins = [0, *found["bins"]]
            expected = [
                sum(low < length <= high for length in lengths) for low, high in pairwise(bins)
            ]
            assert part["histogram"][code] == expected


def test_segments_end_where_labels_are_missing(write):
    partly = [[None if t == 1 else label for t, label in enumerate(y)] for y in Y]
    found = write(LINEAR, X, partly).data["segments"]
    runs = [run for y in partly for run in runs_of(y) if run[0] is not None]
    assert sum(found["true"]["count"]) == len(runs)


def test_labels_that_change_everywhere_make_no_segments(write):
    y = [["up" if t % 2 else "down" for t in range(len(x))] for x in X]
    assert write(LINEAR, X, y).data["segments"] is None


def test_segments_are_chunks_where_labels_mark_them(write):
    crf = LinearCRF().fit(WORDS, TAGS)
    guess = [labels.tolist() for labels in crf.predict(WORDS)]
    found, scores = write(crf, WORDS, TAGS).data["segments"], chunk_scores(TAGS, guess)
    assert found["kind"] == "chunks"
    assert found["names"] == ["NP", "VP"]
    for code, name in enumerate(found["names"]):
        of_type = scores.by_type[name]
        assert found["true"]["count"][code] == of_type.n_true
        assert found["predicted"]["count"][code] == of_type.n_predicted
        assert found["matched"][code] == of_type.n_correct
    assert found["true"]["histogram"] == [[2, 2], [1, 0]]


@pytest.mark.parametrize("crf", [TREES, LINEAR, HIGH_ORDER, PAIR_TREES])
def test_explanations_are_those_of_explain(write, crf):
    page = write(crf, X, Y)
    places, found = page.browser_part("explanations", "places", "found")
    offsets = np.concatenate([[0], np.cumsum(list(map(len, X)))])
    assert places.tolist() == list(range(offsets[-1]))
    names = page.data["labels"]
    truth, predicted = np.concatenate(Y), np.concatenate(crf.predict(X))
    for t, (label, against, log_odds, bias, features, n_more, more, transitions) in enumerate(
        found
    ):
        s = int(np.searchsorted(offsets, t, side="right")) - 1
        assert names[label] == predicted[t]
        if truth[t] != predicted[t]:
            assert names[against] == truth[t]
        expected = crf.explain(X[s], t - offsets[s], names[label], names[against])
        table = expected.feature_table
        assert log_odds == pytest.approx(expected.log_odds, rel=1e-4, abs=1e-4)
        assert bias == pytest.approx(expected.bias, rel=1e-4, abs=1e-6)
        shown = np.array([line[3] for line in features])
        assert shown == pytest.approx(table["contribution"][: len(shown)], rel=1e-4, abs=1e-6)
        assert n_more == len(table["feature"]) - len(shown)
        assert more == pytest.approx(table["contribution"][len(shown) :].sum(), rel=1e-3, abs=1e-5)
        of_transitions = [size for _, _, size in transitions]
        assert of_transitions == pytest.approx(
            expected.transition_table["contribution"], rel=1e-4, abs=1e-6
        )


def test_explanations_of_errors_come_first(write, monkeypatch):
    monkeypatch.setattr(explanations, "MAX_POSITIONS", 5)
    page = write(LINEAR, X, Y)
    places, _ = page.browser_part("explanations", "places", "found")
    wrong = np.concatenate(Y) != np.concatenate(LINEAR.predict(X))
    assert wrong.sum() >= 5
    assert wrong[places].all()
    n = len(wrong)
    assert write.notes == [
        f"Explanations are included for 5 of {n} positions: errors first, then the least certain "
        "labels."
    ]


def test_one_label_has_nothing_to_explain(write):
    with pytest.warns(DataWarning, match="label"):
        crf = LinearCRF().fit([[{"a": 1.0}]], [["x"]])
    places, found = write(crf, [[{"a": 1.0}]]).browser_part("explanations", "places", "found")
    assert len(places) == len(found) == 0


def test_two_models(write):
    page = write(TREES, X, Y, compare=LINEAR, title="a", compare_title="b")
    data = page.data["comparison"]
    assert data["names"] == ["a", "b"]
    truth = np.concatenate(Y)
    guesses = [[y.tolist() for y in crf.predict(X)] for crf in (TREES, LINEAR)]
    right = [np.concatenate(guess) == truth for guess in guesses]
    assert data["n_differ"] == np.sum(np.concatenate(guesses[0]) != np.concatenate(guesses[1]))
    assert data["positions"] == {
        "both": np.sum(right[0] & right[1]),
        "only_a": np.sum(right[0] & ~right[1]),
        "only_b": np.sum(right[1] & ~right[0]),
        "neither": np.sum(~right[0] & ~right[1]),
    }
    whole = [[a == b for a, b in zip(guess, Y, strict=True)] for guess in guesses]
    assert data["p_value"] == mcnemar(*whole).p_value
    assert sum(data["sequences"].values()) == len(X)
    expected = resample([tally_metric("accuracy", Y, g).measure for g in guesses], len(X))
    accuracy = data["scores"][0]
    assert accuracy["name"] == "Accuracy"
    assert accuracy["values"][0] - accuracy["values"][1] == pytest.approx(expected.value)
    assert accuracy["interval"] == pytest.approx([expected.low, expected.high])
    assert accuracy["p_value"] == expected.p_value
    by_label = data["labels"]
    code = page.data["labels"].index("up")
    assert by_label["total"][code] == np.sum(truth == "up")
    assert by_label["only_b"][code] == np.sum((truth == "up") & right[1] & ~right[0])
    labels = np.array(page.data["labels"])
    assert labels[page.browser("compared")].tolist() == np.concatenate(guesses[1]).tolist()


def test_two_models_with_different_labels_and_features(write):
    renamed = [["up" if label == "up" else "low" for label in y] for y in Y]
    other = LinearCRF().fit([x[:, :1] for x in X], renamed)
    with pytest.warns(UserWarning, match="low|down"):
        page = write(TREES, X, Y, compare=other, X_compare=[x[:, :1] for x in X])
    labels = np.array(page.data["labels"])
    expected = np.concatenate(other.predict([x[:, :1] for x in X]))
    assert labels[page.browser("compared")].tolist() == expected.tolist()
    assert page.data["comparison"]["names"] == ["TreeCRF", "LinearCRF"]


def test_two_models_without_truth_or_with_one_sequence(write):
    assert set(write(TREES, X, compare=LINEAR).data["comparison"]) == {"names", "n_differ"}
    scores = write(TREES, X[:1], Y[:1], compare=LINEAR).data["comparison"]["scores"]
    assert all("interval" not in score for score in scores)


def test_what_cannot_be_compared(write):
    with pytest.raises(TypeError, match="compare is of type int; expected a fitted TreeCRF or"):
        write(TREES, X, Y, compare=3)
    with pytest.raises(ValueError, match=r"compare needs data; call write_report\(model, path, X"):
        write(TREES, compare=LINEAR)
    with pytest.raises(ValueError, match="X_compare is the data of a second model; pass"):
        write(TREES, X, Y, X_compare=X)
    with pytest.raises(ValueError, match="read different sequences: 32 positions of 6 sequences, "):
        write(TREES, X, Y, compare=LINEAR, X_compare=X[:2])


def test_names_of_sequences_and_their_file(write, tmp_path):
    file = tmp_path / "days.csv"
    file.write_text("x")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    data = write(TREES, X, names=list("abcdef"), source=file).data
    assert data["browser"]["names"] == list("abcdef")
    assert data["source"] == {"name": "days.csv", "modified": "2023-11-14 22:13 UTC"}
    assert write(TREES, X, source="nowhere").data["source"] == {"name": "nowhere", "modified": None}
    assert write(TREES, X).data["source"] is None
    with pytest.raises(ValueError, match="names has 1 name but X has 6 sequences; pass one name"):
        write(TREES, X, names=["a"])


def test_explanations_in_tree_shaped_graphs_and_on_base_scores(write):
    parents = [np.arange(len(x)) // 2 - (np.arange(len(x)) == 0) for x in X]
    scores = [np.column_stack([x[:, 2], -x[:, 2]]) for x in X]
    more = {"parents": parents, "base_scores": scores}
    crf = TreeCRF(n_rounds=2, min_child_weight=0, max_depth=2, n_jobs=1).fit(X, Y, **more)
    page = write(crf, X, Y, **more)
    _, found = page.browser_part("explanations", "places", "found")
    assert page.data["segments"] is None
    names, t = page.data["labels"], len(X[0]) + len(X[1]) + 1  # position 1 of the third sequence
    of_one = {name: value[2] for name, value in more.items()}
    expected = crf.explain(X[2], 1, names[found[t][0]], names[found[t][1]], **of_one)
    assert found[t][2] == pytest.approx(expected.log_odds, rel=1e-4)
    assert [size for _, _, size in found[t][7]] == pytest.approx(
        expected.transition_table["contribution"], rel=1e-4, abs=1e-6
    )


@pytest.mark.parametrize("swapped", [False, True])
def test_arguments_that_only_one_of_two_models_was_fitted_with(swapped, write):
    """A tree-shaped graph with base scores, compared with a chain."""
    parents = [np.arange(len(x)) // 2 - (np.arange(len(x)) == 0) for x in X]
    scores = [np.column_stack([x[:, 2], -x[:, 2]]) for x in X]
    more = {"parents": parents, "base_scores": scores}
    graph = TreeCRF(n_rounds=2, min_child_weight=0, max_depth=2, n_jobs=1).fit(X, Y, **more)
    first, second = (TREES, graph) if swapped else (graph, TREES)
    page = write(first, X, Y, compare=second, **more)
    guesses = [TREES.predict(X), graph.predict(X, **more)]
    differ = np.concatenate(guesses[0]) != np.concatenate(guesses[1])
    assert page.data["comparison"]["n_differ"] == differ.sum() > 0
    with pytest.raises(ValueError, match="X comes with parents, but TreeCRF was fitted without"):
        write(TREES, X, Y, compare=LINEAR, parents=parents)
