"""hedgerow eval: the metrics of the library, as text or JSON."""

import json
import re

import pytest

import hedgerow
from hedgerow.files import Recipe, read_file
from hedgerow.metrics import chunk_scores, label_scores
from hedgerow.stats import bootstrap, mcnemar
from reference.command_line import SENTENCES, complaint, conll, give, run, train, two_divisions

HARD = [
    "The DT B-NP|dog NN I-NP|house NN I-NP|sleeps NNS B-VP|in IN B-PRT|. . O",
    "Old JJ B-NP|men NNS I-NP|see VBP B-VP|dogs NNS I-VP|. . O",
    *SENTENCES,
]


@pytest.fixture(scope="module")
def test_set(tmp_path_factory):
    path = tmp_path_factory.mktemp("eval") / "test.txt"
    path.write_text(conll(HARD))
    return path


@pytest.fixture(scope="module")
def other_model(chunks):
    return train(chunks, chunks.with_name("other.hedgerow"), "--features", 1, "--order", 0)


def answers(path, file):
    """The model, true labels and predicted ones."""
    model = hedgerow.load(path)
    data = read_file(file, Recipe.from_json(model.recipe_))
    return model, data, [labels.tolist() for labels in model.predict(data.X)]


def test_figures_for_programs(chunk_model, test_set, capsys):
    found = json.loads(run(capsys, "eval", chunk_model, test_set, "--json"))
    model, data, predicted = answers(chunk_model, test_set)
    scores, chunks = label_scores(data.y, predicted), chunk_scores(data.y, predicted)
    assert found["file"] == str(test_set)
    assert found["model"] == str(chunk_model)
    assert found["n_sequences"] == 7
    assert found["n_positions"] == scores.n_positions == 41
    assert found["accuracy"] == scores.accuracy < 1
    assert found["sequence_accuracy"] == scores.sequence_accuracy < 1
    assert found["by_label"] == {name: vars(one) for name, one in scores.by_label.items()}
    assert found["chunks"]["f1"] == chunks.f1 < 1
    assert found["chunks"]["by_type"] == {k: vars(one) for k, one in chunks.by_type.items()}
    assert found["labels"] == scores.labels
    assert found["confusion"] == scores.confusion.tolist()
    assert found["n_unknown_labels"] == 1  # B-PRT
    known = [[None if label == "B-PRT" else label for label in y] for y in data.y]
    expected = model.log_likelihood(data.X, known).sum()
    assert found["log_likelihood"] == pytest.approx(expected)


def test_figures_for_people(chunk_model, test_set, capsys):
    out = run(capsys, "eval", chunk_model, test_set, "--jobs", 1)
    _, data, predicted = answers(chunk_model, test_set)
    scores, chunks = label_scores(data.y, predicted), chunk_scores(data.y, predicted)
    assert f"{test_set}: 7 sequences, 41 positions\n" in out
    words = " ".join(out.split())
    assert f" accuracy {100 * scores.accuracy:.2f} % by " in words
    assert f" F1 of chunks {100 * chunks.f1:.2f} % " in words
    assert "\npositions with a label that the model does not know: 1\n" in out
    table = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    assert table["label"] == table["chunk"]
    one = scores.by_label["B-NP"]
    shares = [f"{100 * share:.2f}" for share in (one.precision, one.recall, one.f1)]
    expected = [*shares, *map(str, (one.n_true, one.n_predicted, one.n_correct))]
    assert f"B-NP {' '.join(expected)}" in " ".join(out.split())
    assert table["all"][2] == f"{100 * chunks.f1:.2f}"
    assert "true \\ predicted  B-NP  B-PP" in out


def test_many_labels_have_their_largest_confusions_listed(tmp_path, capsys):
    letters = "abcdefghijk"
    file = tmp_path / "letters.txt"
    file.write_text("".join(f"{letter} {letter.upper()}\n\n" for letter in letters))
    model = train(file, tmp_path / "model")
    assert run(capsys, "eval", model, file).endswith("\n\nno mistakes\n")
    file.write_text("".join(f"{letter} {letter.upper()}\n\n" for letter in letters + "abcd"))
    file.write_text(file.read_text().replace("a A", "a B").replace("b B", "b C", 1))
    out = run(capsys, "eval", model, file)
    assert "F1 of chunks" not in out
    rows = [line.split() for line in out[out.index("largest confusions") :].splitlines()[1:]]
    assert rows == [["B", "A", "2"], ["C", "B", "1"]]


def test_strict_schemes_and_labels_that_cannot_be(chunk_model, tmp_path, capsys):
    file = tmp_path / "loose.txt"
    file.write_text(conll(["Dogs NNS I-NP|bark VBP B-VP|. . O", *SENTENCES]))
    _, data, predicted = answers(chunk_model, file)
    found = json.loads(run(capsys, "eval", chunk_model, file, "--strict", "IOB2", "--json"))
    strict = chunk_scores(data.y, predicted, "IOB2")
    assert found["chunks"]["f1"] == strict.f1 != chunk_scores(data.y, predicted).f1
    assert found["log_likelihood"] is None  # the model allows no I-NP at the beginning
    assert "-inf" in run(capsys, "eval", chunk_model, file)
    message = complaint(capsys, "eval", chunk_model, file, "--strict", "XYZ")
    assert message.startswith("--strict: scheme is 'XYZ'; expected one of 'IOB2', ")


def test_two_models(chunk_model, other_model, test_set, capsys):
    answered = [answers(path, test_set) for path in (chunk_model, other_model)]
    right = [
        [[a == b for a, b in zip(*both, strict=True)] for both in zip(data.y, guess, strict=True)]
        for _, data, guess in answered
    ]
    positions = [[answer for sequence in one for answer in sequence] for one in right]
    by_position = mcnemar(*positions)
    by_sequence = mcnemar(*(list(map(all, one)) for one in right))
    found = json.loads(run(capsys, "eval", chunk_model, test_set, other_model, "--json"))
    assert found["mcnemar"] == {"positions": vars(by_position), "sequences": vars(by_sequence)}
    assert [one["model"] for one in found["models"]] == [str(chunk_model), str(other_model)]
    shares = [sum(one) / len(one) for one in positions]
    assert [one["accuracy"] for one in found["models"]] == shares
    out = run(capsys, "eval", chunk_model, test_set, other_model)
    rows = {line.split(" ")[0]: line.split()[1:] for line in out.splitlines() if line}
    for name, test in (("positions", by_position), ("sequences", by_sequence)):
        assert rows[name] == [str(test.n_only_a), str(test.n_only_b), f"{test.p_value:.3g}"]


def test_confidence_intervals(chunk_model, other_model, test_set, capsys):
    answered = [answers(path, test_set) for path in (chunk_model, other_model)]
    y, guesses = answered[0][1].y, [guess for _, _, guess in answered]
    draws = {"n_resamples": 50, "random_state": 0}
    options = "--bootstrap", 50
    for models, sides in ([[chunk_model], guesses[:1]], [[chunk_model, other_model], guesses]):
        asked = "eval", models[0], test_set, *models[1:], *options
        found = json.loads(run(capsys, *asked, "--json"))["bootstrap"]
        out = " ".join(run(capsys, *asked).split())
        assert set(found) == {"accuracy", "sequence_accuracy", "chunk_f1"}
        for name, figures in found.items():
            expected = bootstrap(name, y, *sides, **draws)
            assert figures == {key: getattr(expected, key) for key in figures}
            interval = f"{100 * expected.low:.2f} % {100 * expected.high:.2f} %"
            assert interval in out
            if len(models) == 2:
                assert f"{interval} {expected.p_value:.3g}" in out
        assert "from 50 bootstrap samples of whole sequences" in out
    strict = json.loads(
        run(capsys, "eval", chunk_model, test_set, "--strict", "IOB2", *options, "--json")
    )
    assert strict["bootstrap"]["chunk_f1"]["value"] == strict["chunks"]["f1"]
    assert "bootstrap" not in json.loads(run(capsys, "eval", chunk_model, test_set, "--json"))


def test_resamples_that_cannot_be(chunk_model, test_set, tmp_path, capsys):
    message = complaint(capsys, "eval", chunk_model, test_set, "--bootstrap", 0)
    assert message == "--bootstrap: n_resamples is 0; expected an integer of at least 1"
    file = tmp_path / "one.txt"
    file.write_text(conll(SENTENCES[:1]))
    message = complaint(capsys, "eval", chunk_model, file, "--bootstrap", 10)
    expected = "--bootstrap: y_true has 1 sequence with labels; a bootstrap needs at least two"
    assert message.startswith(expected)


def test_two_models_of_other_labels(chunk_model, chunks, tmp_path, capsys):
    tags = train(chunks, tmp_path / "tags.hedgerow", "--label", 1, "--features", 0)
    message = complaint(capsys, "eval", chunk_model, chunks, tags)
    assert message == (
        f"{chunk_model} and {tags} read different labels or sequences from {chunks}; they were "
        "trained with different label or group columns: compare models that have the same ones"
    )


def test_two_models_of_other_groups(tmp_path, capsys):
    table, models = two_divisions(tmp_path)
    message = complaint(capsys, "eval", models[0], table, models[1])
    assert message.startswith(f"{models[0]} and {models[1]} read different labels or sequences")


def test_two_models_cannot_share_standard_input(chunk_model, chunks, capsys, monkeypatch):
    give(monkeypatch, chunks.read_bytes())
    message = complaint(capsys, "eval", chunk_model, "-", chunk_model)
    assert message == "two models cannot both read standard input; save it to a file"


def test_a_file_without_labels(chunk_model, tmp_path, capsys):
    file = tmp_path / "words.txt"
    file.write_text(conll(SENTENCES, n_columns=2))
    message = complaint(capsys, "eval", chunk_model, file)
    assert message.startswith(f"{file}, line 1: expected 3 columns, got 2")
    file.write_text("")
    assert complaint(capsys, "eval", chunk_model, file) == f"{file} has no labels to compare with"


def test_both_decoders_are_always_shown(chunk_model, test_set, capsys):
    model = hedgerow.load(chunk_model)
    data = read_file(test_set, Recipe.from_json(model.recipe_))
    for options, own in (
        ([], model.decode_),
        (["--decode", "viterbi"], "viterbi"),
        (["--decode", "marginal"], "marginal"),
    ):
        found = json.loads(run(capsys, "eval", chunk_model, test_set, "--json", *options))
        assert found["decode"] == own
        by_decoder = {
            decode: label_scores(data.y, model.predict(data.X, decode=decode)).accuracy
            for decode in ("viterbi", "marginal")
        }
        assert found["accuracy_by_decoder"] == by_decoder
        assert found["accuracy"] == by_decoder[own]
        out = run(capsys, "eval", chunk_model, test_set, *options)
        for words, decode in (("by Viterbi", "viterbi"), ("by marginals", "marginal")):
            assert re.search(rf"\n{words} +{100 * by_decoder[decode]:.2f} %\n", out)
        assert re.search(rf"\ndecoder +{own}\n", out)
