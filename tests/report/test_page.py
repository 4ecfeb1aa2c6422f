"""What stands in the page, read back from its file."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from hedgerow import DataWarning, LinearCRF, TreeCRF, load
from hedgerow.metrics import chunk_scores, label_scores
from hedgerow.metrics.known_chunks import score_known_chunks
from hedgerow.report import browser, calibration, features, trees, weights, write_report
from hedgerow.stats.sequence_bootstrap import resample
from hedgerow.stats.tallies import ChunkMetric, tally_metric
from reference.report_page import Page, network_addresses

RANDOM = np.random.default_rng(5)
NUMBERS = [RANDOM.normal(size=(n, 3)).round(2) for n in (5, 1, 7, 3)]
NAMES = [np.where(x[:, 0] + np.roll(x[:, 1], 1) > 0, "up", "down") for x in NUMBERS]
SENTENCES = ["the old man", "a man", "the sea", "old man and the sea"]
WORDS = [[{"word": w, "long": float(len(w)), "s": w[-1:]} for w in s.split()] for s in SENTENCES]
CHUNKS = [["B-NP", "I-NP", "I-NP"], ["B-NP", "I-NP"], ["B-NP", "I-NP"], list("OO") + ["O"] * 3]
TREES = TreeCRF(n_rounds=3, window=1, min_child_weight=0, max_depth=3, n_jobs=1).fit(NUMBERS, NAMES)
LINEAR = LinearCRF(reg_lambda=0.1).fit(WORDS, CHUNKS)


def scores_of(page):
    """All scores of a page, by name."""
    return {score["name"]: score["value"] for score in page.data["scores"]}


@pytest.fixture
def write(tmp_path):
    def write_page(*args, **options):
        write_page.notes = write_report(args[0], tmp_path / "page.html", *args[1:], **options)
        return Page(tmp_path / "page.html")

    return write_page


def test_is_one_page_without_network(write):
    page = write(TREES, NUMBERS, NAMES)
    policy = next(a["content"] for t, a, _ in page.elements if a.get("http-equiv"))
    assert policy == (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    )
    assert network_addresses(page.html) == set()
    assert {t for t, a, _ in page.elements if "src" in a} == set()
    assert [a["href"] for _, a, _ in page.elements if "href" in a] == ["data:,"]
    assert write.notes == page.data["notes"] == []


def test_sums_a_model_up(write):
    data = write(TREES).data
    assert data["title"] == "TreeCRF report"
    assert data["model"]["labels"] == ["down", "up"]
    assert dict(data["model"]["parameters"]) == {
        "n_rounds": "3",
        "window": "1",
        "min_child_weight": "0",
        "max_depth": "3",
    }
    sizes = dict(data["model"]["sizes"])
    assert sizes["Rounds"] == 3
    assert sizes["Trees"] == 6
    assert sizes["Columns"] == 3
    assert set(data["history"]["curves"]) == {"loss", "accuracy"}
    assert data["history"]["curves"]["loss"] == pytest.approx(TREES.history_["loss"], rel=1e-5)
    assert "browser" not in data
    assert "confusion" not in data


def test_sums_a_linear_model_up(write):
    data = write(LINEAR, title="On the sea").data
    assert data["title"] == "On the sea"
    assert dict(data["model"]["sizes"])["Weights"] == LINEAR.n_weights_
    assert data["history"]["step"] == "iteration"
    assert data["trees"] is None


def test_long_parameters_are_cut(write):
    many = [("down", "up")] * 50
    crf = TreeCRF(n_rounds=1, forbidden=many).fit([[[0.0], [1.0]]], [["up", "down"]])
    parameters = dict(write(crf).data["model"]["parameters"])
    assert parameters["forbidden"] == repr([["down", "up"]] * 50)[:200] + "…"


def test_parameters_are_those_of_the_model_file(write, tmp_path):
    crf = TreeCRF(n_rounds=1, start_labels={"up", "down"}, end_labels=np.array(["up", "down"]))
    crf.fit([[[0.0], [1.0]]], [["up", "down"]]).save(tmp_path / "model")
    pages = [write(model).data["model"]["parameters"] for model in (crf, load(tmp_path / "model"))]
    assert pages[0] == pages[1]
    assert dict(pages[0])["start_labels"] == "['down', 'up']"


def test_labels_and_marginals(write):
    page = write(TREES, NUMBERS, NAMES)
    labels = np.array(page.data["labels"])
    predicted = np.concatenate(TREES.predict(NUMBERS))
    assert labels[page.browser("predicted")].tolist() == predicted.tolist()
    assert labels[page.browser("truth")].tolist() == np.concatenate(NAMES).tolist()
    marginals = TREES.predict_proba(NUMBERS)
    (codes, probs), _ = page.data["browser"]["tops"]
    assert page.array(codes).tolist() == marginals.argmax(axis=1).tolist()
    assert page.array(probs) / 255 == pytest.approx(marginals.max(axis=1), abs=0.002)
    truth = marginals[np.arange(16), page.browser("truth")]
    assert page.browser("truth_probs") / 255 == pytest.approx(truth, abs=0.002)
    lengths = [5, 1, 7, 3]
    assert page.browser("lengths").tolist() == lengths
    likelihoods = TREES.log_likelihood(NUMBERS, NAMES) / lengths
    assert page.browser("scores") == pytest.approx(likelihoods, rel=1e-5)


def test_scores(write):
    page = write(TREES, NUMBERS, NAMES)
    scores, cells = scores_of(page), page.data["confusion"]
    expected = label_scores(NAMES, TREES.predict(NUMBERS))
    assert scores["Accuracy"] == pytest.approx(expected.accuracy)
    assert scores["Sequences without an error"] == pytest.approx(expected.sequence_accuracy)
    likelihood = TREES.log_likelihood(NUMBERS, NAMES).sum() / 16
    assert scores["Log-likelihood per position"] == pytest.approx(likelihood, rel=1e-5)
    confusion = np.zeros((2, 2))
    confusion[cells["truth"], cells["predicted"]] = cells["count"]
    assert confusion.tolist() == expected.confusion.tolist()
    assert "Chunk F1" not in scores


def test_intervals_of_scores(write):
    partly = [[None, *labels[1:]] for labels in CHUNKS]
    partly[1] = [None, None]  # nothing to draw
    predicted = [labels.tolist() for labels in LINEAR.predict(WORDS)]
    kept = [0, 2, 3]
    sides = [[side[s][1:] for s in kept] for side in (partly, predicted)]
    scores = write(LINEAR, WORDS, partly).data["scores"]
    found = {score["name"]: score["interval"] for score in scores if score["interval"]}
    for name, metric in (
        ("Accuracy", "accuracy"),
        ("Sequences without an error", "sequence_accuracy"),
        ("Chunk F1", ChunkMetric("f1")),
    ):
        expected = resample([tally_metric(metric, *sides).measure], 3)
        assert found.pop(name) == [expected.low, expected.high]
    assert not found
    alone = write(LINEAR, WORDS[:1], CHUNKS[:1]).data["scores"]
    assert all(score["interval"] is None for score in alone)


def test_chunk_scores(write):
    wrong = [["B-NP", "I-NP", "B-NP"], *CHUNKS[1:]]
    scores = scores_of(write(LINEAR, WORDS, wrong))
    predicted = [labels.tolist() for labels in LINEAR.predict(WORDS)]
    chunks = chunk_scores(wrong, predicted)
    assert scores["Chunk F1"] == pytest.approx(chunks.f1)
    assert scores["Chunk precision"] == pytest.approx(chunks.precision)
    partly = [[None, *CHUNKS[0][1:]], *CHUNKS[1:]]
    scores = scores_of(write(LINEAR, WORDS, partly))
    assert scores["Chunk F1"] == pytest.approx(score_known_chunks(partly, predicted).f1)


def test_calibration(write):
    data = write(TREES, NUMBERS, NAMES).data["calibration"]
    marginals, truth = TREES.predict_proba(NUMBERS), np.concatenate(NAMES) == "up"
    for row, (probs, right) in enumerate(
        [
            (marginals.max(axis=1), marginals.argmax(axis=1) == truth),
            (marginals[:, 0], ~truth),
            (marginals[:, 1], truth),
        ]
    ):
        error = 0.0
        for b in range(calibration.N_BINS):
            inside = np.minimum((probs * 10).astype(int), 9) == b
            assert data["counts"][row][b] == inside.sum()
            if inside.any():
                assert data["probs"][row][b] == pytest.approx(probs[inside].mean(), rel=1e-5)
                assert data["right"][row][b] == pytest.approx(right[inside].mean(), rel=1e-5)
                error += abs(probs[inside].mean() - right[inside].mean()) * inside.mean()
        assert data["errors"][row] == pytest.approx(error, rel=1e-4)


def test_batches_make_no_difference(write, monkeypatch):
    whole = write(TREES, NUMBERS, NAMES)
    monkeypatch.setattr("hedgerow.report.reading.BATCH", 4)
    parts = write(TREES, NUMBERS, NAMES)
    for name in ("predicted", "truth", "truth_probs"):
        assert parts.browser(name).tolist() == whole.browser(name).tolist()
    assert parts.browser("scores") == pytest.approx(whole.browser("scores"), rel=1e-6)
    assert parts.data["calibration"] == whole.data["calibration"]


def test_pairs_and_patterns(write):
    crf = LinearCRF(order=2).fit(WORDS, CHUNKS)
    page = write(crf)
    assert page.data["pairs"]["weight"] == pytest.approx(
        crf.transition_weights()["weight"], abs=1e-5
    )
    names = np.array(page.data["model"]["labels"])
    assert names[page.data["pairs"]["from"]].tolist() == crf.transition_weights()["from"].tolist()
    weight_of = dict(zip(*crf.patterns().values(), strict=True))
    patterns = page.data["patterns"]
    assert len(patterns["weight"]) == len(weight_of)
    for codes, weight in zip(patterns["patterns"], patterns["weight"], strict=True):
        assert weight == pytest.approx(weight_of[tuple(names[codes].tolist())], rel=1e-4, abs=1e-9)
    assert np.all(np.diff(np.abs(patterns["weight"])) <= 0)
    assert write(LINEAR).data["patterns"] is None
    assert write(LinearCRF(order=0).fit(WORDS, CHUNKS)).data["pairs"] is None


def test_pairs_of_transition_attributes(write):
    crf = LinearCRF(transition_attributes=True).fit(WORDS, CHUNKS)
    assert len(write(crf).data["pairs"]["weight"]) == 9
    of_patterns = write(LinearCRF(pattern_attributes=True, order=2).fit(WORDS, CHUNKS)).data
    plain = write(LinearCRF(order=2).fit(WORDS, CHUNKS)).data
    for part in ("pairs", "patterns"):
        assert len(of_patterns[part]["weight"]) == len(plain[part]["weight"])


def test_few_patterns_of_many(write, monkeypatch):
    monkeypatch.setattr(weights, "MAX_PATTERNS", 2)
    page = write(LinearCRF(order=2).fit(WORDS, CHUNKS))
    assert len(page.data["patterns"]["weight"]) == 2
    assert write.notes == [
        "2 of 5 label patterns are listed, those with the largest absolute weights."
    ]


def test_importances(write, monkeypatch):
    table = TREES.importances()
    data = write(TREES).data["features"]
    total = table["gain"].sum()
    for feature, offset, gain in zip(*table.values(), strict=True):
        row, column = data["names"].index(feature), data["offsets"].index(offset)
        assert data["shares"][row][column] == pytest.approx(gain / total, rel=1e-5)
    assert sum(map(sum, data["shares"])) == pytest.approx(1)
    monkeypatch.setattr(weights, "MAX_FEATURES", 1)
    assert len(write(TREES).data["features"]["names"]) == 1
    n_used = len(set(table["feature"]))
    assert write.notes == [f"1 of {n_used} features are listed, those with the largest gain."]


def test_heaviest_weights(write):
    by_label = write(LINEAR).data["features"]["labels"]
    table = LINEAR.weights()
    for label, shown in zip(LINEAR.classes_, by_label, strict=True):
        mine = table["label"] == label
        weight_of = dict(zip(table["attribute"][mine], table["weight"][mine], strict=True))
        assert shown["weights"] == sorted(shown["weights"], reverse=True)
        assert shown["weights"][0] == pytest.approx(max(weight_of.values()), rel=1e-5)
        for name, weight in zip(shown["names"], shown["weights"], strict=True):
            assert weight == pytest.approx(weight_of[name], rel=1e-5)


def test_trees(write):
    page = write(TREES)
    places = page.data["trees"]
    assert places["rounds"] == [1, 2, 3]
    begins = page.array(places["begins"]).tolist()
    questions = page.value(places["questions"])
    table = TREES.trees(round=2, label="up")
    assert page.array(places["tree_round"]).tolist() == [1, 1, 2, 2, 3, 3]
    assert page.array(places["tree_label"]).tolist() == [0, 1] * 3
    tree = slice(*begins[3:5])
    asked = page.array(places["question"])[tree]
    assert [questions[q] for q in asked] == table["question"].tolist()
    assert page.array(places["value"])[tree] == pytest.approx(table["value"])
    for name in ("left", "right"):
        # A leaf has 0, the root, which is nobody's child.
        assert page.array(places[name])[tree].tolist() == np.maximum(table[name], 0).tolist()


def test_trees_of_some_rounds(write, monkeypatch):
    monkeypatch.setattr(trees, "MAX_NODES", 2 * len(TREES.trees(round=1)["node"]))
    page = write(TREES)
    assert page.data["trees"]["rounds"] == [1, 3]
    assert write.notes == ["The page has the trees of 2 of 3 rounds."]


def test_without_truth(write):
    page = write(TREES, NUMBERS)
    assert "truth" not in page.data["browser"]
    assert "confusion" not in page.data
    assert page.data["scores"] == []
    marginals = TREES.predict_marginals(NUMBERS)
    codes = [np.searchsorted(TREES.classes_, labels) for labels in TREES.predict(NUMBERS)]
    expected = [
        np.log(p[np.arange(len(c)), c]).mean() for p, c in zip(marginals, codes, strict=True)
    ]
    assert page.browser("scores") == pytest.approx(expected, rel=1e-5)


def test_missing_labels(write):
    some = [labels.tolist() for labels in NAMES]
    some[0][1] = some[2][0] = None
    some[1] = [None]
    page = write(TREES, NUMBERS, some)
    truth = page.browser("truth")
    assert np.flatnonzero(truth == 2).tolist() == [1, 5, 6]
    assert sum(page.data["confusion"]["count"]) == 13
    assert page.browser("scores")[1] == 0
    known = [4, 1, 6, 3]
    likelihoods = TREES.log_likelihood(NUMBERS, some) / known
    assert page.browser("scores") == pytest.approx(likelihoods, rel=1e-5)
    nothing = write(TREES, NUMBERS, [[None] * len(x) for x in NUMBERS])
    assert nothing.data["scores"] == []
    assert "calibration" not in nothing.data


@pytest.mark.parametrize(("decode", "other"), [("viterbi", "marginal"), ("marginal", "viterbi")])
def test_both_decoders_are_shown(decode, other, tmp_path):
    crf = TreeCRF(n_rounds=1, learning_rate=0.05, min_child_weight=0).fit(NUMBERS, NAMES)
    write_report(crf, tmp_path / "page.html", NUMBERS, NAMES, decode=decode)
    page = Page(tmp_path / "page.html")
    assert page.data["model"]["decode"] == decode
    scores, name = scores_of(page), "marginals" if other == "marginal" else "Viterbi"
    assert scores["Accuracy"] == pytest.approx(crf.score(NUMBERS, NAMES, decode=decode))
    expected = crf.score(NUMBERS, NAMES, decode=other)
    assert scores[f"Accuracy by {name}"] == pytest.approx(expected)
    labels = np.array(page.data["labels"])[page.browser("predicted")]
    predicted = np.concatenate(crf.predict(NUMBERS, decode=decode))
    assert labels.tolist() == predicted.tolist()


def test_a_decoder_that_does_not_exist(tmp_path):
    message = "decode is 'best'; expected 'viterbi', 'marginal' or None"
    with pytest.raises(ValueError, match=message):
        write_report(TREES, tmp_path / "page.html", NUMBERS, NAMES, decode="best")


def test_labels_that_the_model_does_not_know(write):
    strange = [labels.tolist() for labels in NAMES]
    strange[0][0], strange[3][1] = "sideways", "round"
    with pytest.warns(DataWarning, match="did not occur in training: 'round', 'sideways', at 2 po"):
        page = write(TREES, NUMBERS, strange)
    assert page.data["labels"] == ["down", "up", "round", "sideways"]
    assert page.browser("truth")[[0, 14]].tolist() == [3, 2]
    assert page.browser("truth_probs")[0] == 0
    expected = label_scores(strange, TREES.predict(NUMBERS)).accuracy
    assert scores_of(page)["Accuracy"] == pytest.approx(expected)


def test_whole_numbers_as_labels(write):
    crf = LinearCRF().fit(NUMBERS, [np.arange(len(x)) % 2 for x in NUMBERS])
    with pytest.warns(DataWarning, match="did not occur in training: 7, at 16 positions"):
        page = write(crf, NUMBERS, [[7] * len(x) for x in NUMBERS])
    assert page.data["labels"] == ["0", "1", "7"]


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<!--<script>", "{{data}}"])
def test_hostile_texts_stay_texts(write, text):
    X = [[{text: "x", "w": text}, {"w": "\u2029\0"}]]
    crf = LinearCRF().fit(X, [[text, "\u2028"]])
    page = write(crf, X, [[text, "\u2028"]], title=text)
    tame = write(LINEAR, WORDS, CHUNKS)
    assert page.data["labels"] == sorted([text, "\u2028"])
    assert page.data["title"] == text
    assert [t for t, _, _ in page.elements] == [t for t, _, _ in tame.elements]
    columns, loose = page.features()[0]
    assert text in {columns.get("w"), *(name[2:] for name, _ in loose)}


def test_a_flat_table_with_groups(write):
    X, y = np.concatenate(NUMBERS), np.concatenate(NAMES)
    groups = np.repeat(["a", "b", "c", "<d>"], [5, 1, 7, 3])
    page = write(TREES, X, y, groups=pd.Series(groups))
    assert page.data["browser"]["names"] == ["a", "b", "c", "<d>"]
    assert page.browser("lengths").tolist() == [5, 1, 7, 3]
    assert write(TREES, X, y, groups=groups.tolist()).data == page.data
    assert "names" not in write(TREES, X, y).data["browser"]


def test_a_table_that_carries_its_groups(write):
    frame = pd.DataFrame(np.concatenate(NUMBERS), columns=list("abc"))
    frame["day"] = np.repeat([3, 1, 4, 2], [5, 1, 7, 3])
    y = np.concatenate(NAMES)
    crf = TreeCRF(n_rounds=1, group_column="day").fit(frame, y)
    page = write(crf, frame, y)
    assert page.data["browser"]["names"] == ["3", "1", "4", "2"]
    assert set(page.features()[0][0]) == {"a", "b", "c"}
    beside = write(crf, frame.drop(columns="day"), y, groups=frame["day"])
    assert beside.data == page.data


def test_iterators_are_read_once(write):
    page = write(LINEAR, iter(WORDS), iter(CHUNKS))
    assert len(page.features()) == sum(map(len, CHUNKS))


def test_columns_of_numbers(write):
    X = [x.copy() for x in NUMBERS]
    X[0][1, 2] = np.nan
    X[2][:, 0] = np.arange(7) * 1000
    X[2][0, 1] = 1e300
    with np.errstate(over="ignore"):
        flat = np.concatenate(X).astype(np.float32)
    for row, (columns, _) in zip(flat, write(TREES, X).features(), strict=True):
        expected = {f"x{j}": value for j, value in enumerate(row.tolist()) if value == value}
        assert columns == expected


@pytest.mark.parametrize(
    ("low", "high", "dtype"), [(0, 1, "u1"), (-3, 300, "i2"), (0, 10**5, "i4")]
)
def test_whole_numbers_are_kept_small(write, low, high, dtype):
    X = [np.array([[low, 0.5], [high, 0.25]])]
    place = write(TreeCRF(n_rounds=1).fit(X, [["a", "b"]]), X).data["browser"]["features"]
    assert [column["values"]["dtype"] for column in place["columns"]] == [dtype, "f4"]


def test_frames_with_text(write):
    frames = [
        pl.DataFrame({"word": s.split(), "n": [len(w) for w in s.split()], "tag": None})
        for s in SENTENCES
    ]
    frames[0] = frames[0].with_columns(word=pl.Series(["the", None, "man"]))
    crf = TreeCRF(n_rounds=1).fit(frames, CHUNKS)
    columns = [columns for columns, _ in write(crf, frames, CHUNKS).features()]
    assert columns[:3] == [{"word": "the", "n": 3}, {"n": 3}, {"word": "man", "n": 3}]


def test_few_texts_do_not_stand_for_a_position(write):
    frames = [pl.DataFrame({"side": ["left", "right"]})]
    crf = TreeCRF(n_rounds=1).fit(frames, [["a", "b"]])
    assert write(crf, frames).data["browser"]["features"]["headline"] is None
    assert write(LINEAR, WORDS).data["browser"]["features"]["headline"] == 0


def test_sparse_columns(write):
    X = [csr_array([[0.0, 2.5], [1.0, 0.0]])]
    crf = TreeCRF(n_rounds=1).fit(X, [["a", "b"]])
    assert [loose for _, loose in write(crf, X).features()] == [[("x1", 2.5)], [("x0", 1)]]


def test_the_worst_sequences_are_kept(write, monkeypatch):
    monkeypatch.setattr(browser, "BUDGET", 200)
    page = write(TREES, NUMBERS, NAMES)
    worst = np.argsort(TREES.log_likelihood(NUMBERS, NAMES) / [5, 1, 7, 3])
    kept = page.browser("numbers").tolist()
    assert 0 < len(kept) < 4
    assert sorted(kept) == sorted(worst[: len(kept)].tolist())
    number = f"{len(kept)} " if len(kept) > 1 else ""
    assert write.notes == [f"The section Sequences contains the {number}worst of 4 sequences."]
    flat = np.concatenate([NUMBERS[s] for s in kept]).astype(np.float32)
    assert [list(columns.values()) for columns, _ in page.features()] == flat.tolist()
    assert page.data["n_positions"] == 16


def test_a_sequence_that_is_too_long_is_cut(write, monkeypatch):
    monkeypatch.setattr(browser, "BUDGET", 100)
    page = write(TREES, np.concatenate(NUMBERS), np.concatenate(NAMES))
    n_kept = int(page.browser("lengths")[0])
    assert 0 < n_kept < 16
    assert write.notes == [
        f"The section Sequences contains the first {n_kept} of 16 positions of sequence 0."
    ]


def test_columns_that_change_most_are_kept(write, monkeypatch):
    monkeypatch.setattr(features, "MAX_NUMBERS", 1)
    X = [np.array([[0, 1], [0, 2], [5, 3]])]
    page = write(TreeCRF(n_rounds=1).fit(X, [["a", "b", "a"]]), X)
    assert page.features()[0][0] == {"x1": 1}
    assert write.notes == [
        "The section Sequences shows 1 of 2 columns of numbers, those that change most often from "
        "position to position."
    ]


def test_what_cannot_be_reported_on(tmp_path):
    with pytest.raises(TypeError, match="model is of type str; expected a fitted TreeCRF or"):
        write_report("model", tmp_path / "page.html")
    with pytest.raises(NotFittedError, match="this TreeCRF is not fitted yet"):
        write_report(TreeCRF(), tmp_path / "page.html")
    with pytest.raises(
        ValueError,
        match=re.escape("y, groups, parents, base_scores and X_base go with X; call write_report("),
    ):
        write_report(TREES, tmp_path / "page.html", y=NAMES)
    with pytest.raises(FileNotFoundError, match=r"cannot save to .*: the folder .* does not exist"):
        write_report(TREES, tmp_path / "nowhere" / "page.html")
    assert list(tmp_path.iterdir()) == []
