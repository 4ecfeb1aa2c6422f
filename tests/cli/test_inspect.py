"""hedgerow inspect: the contents of a model, and explanations."""

import pytest

import hedgerow
from hedgerow.cli import main
from hedgerow.counting import count_of
from hedgerow.files import Recipe, read_file
from reference.command_line import complaint, run, train


def test_a_linear_model(chunk_model, capsys):
    out = run(capsys, "inspect", chunk_model, "--top", 3)
    model = hedgerow.load(chunk_model)
    assert f"LinearCRF, {model.n_iter_} iterations, loss {model.loss_:.6g}" in out
    assert "\nparameters: constraints='BIO'\n" in out
    assert "\n6 labels: B-NP B-PP B-VP I-NP I-VP O\n" in out
    assert f"\nweights: {model.n_weights_} ({len(model.attributes_)} attributes)\n" in out
    assert "\nfiles: conll, label column 2, feature columns 0 1\n" in out
    table = model.weights()
    place = abs(table["weight"]).argmax()
    heading, first, _, _, gap = out[out.index("largest weights") :].splitlines()[:5]
    assert heading.split() == ["largest", "weights", "label", "weight"]
    weight = f"{table['weight'][place]:+.3f}"
    assert first.split() == [table["attribute"][place], table["label"][place], weight]
    assert gap == ""
    matrix = out[out.index("from \\ to") :].splitlines()
    pairs = dict(zip(*model.patterns().values(), strict=True))
    assert matrix[1].split()[:2] == ["B-NP", f"{pairs['B-NP', 'B-NP']:+.2f}"]


def test_trees(chunks, tmp_path, capsys):
    options = ["--model", "trees", "--order", 2, "--window", 1, "--dev", chunks]
    settings = ["--set", "n_rounds=2", "--set", "min_child_weight=0"]
    path = train(chunks, tmp_path / "trees", *options, *settings)
    out = run(capsys, "inspect", path, "--top", 4)
    model = hedgerow.load(path)
    assert f"TreeCRF, 2 rounds, loss {model.loss_:.6g}, decodes by " in out
    assert f"\ndev accuracy: {model.history_['eval_accuracy'][-1]:.6g} at the end\n" in out
    table = model.importances()
    first = out[out.index("most important features") :].splitlines()[1].split()
    offset = table["offset"][0]
    share = table["gain"][0] / table["gain"].sum()
    assert first == [table["feature"][0], f"{offset:+d}" if offset else "0", f"{share:.1%}"]
    patterns = out[out.index("label patterns") :].splitlines()
    assert len(patterns) == 5
    weights = dict(zip(*model.patterns().values(), strict=True))
    *pattern, weight = patterns[1].split()
    assert f"{weights[tuple(pattern)]:+.3f}" == weight
    assert abs(float(weight)) == pytest.approx(max(map(abs, weights.values())), abs=1e-3)


def test_attributes_on_label_patterns(chunks, tmp_path, capsys):
    settings = ["--set", "pattern_attributes=True", "--set", "max_iter=3", "--set", "tol=0"]
    path = train(chunks, tmp_path / "model", "--order", 2, *settings)
    lines = run(capsys, "inspect", path, "--top", 40).split("label patterns", 1)[1].splitlines()
    assert lines[0].split() == ["attribute", "weight"]
    table = hedgerow.load(path).patterns()
    place = abs(table["weight"]).argmax()
    attribute = [table["attribute"][place]] if table["attribute"][place] else []
    weight = f"{table['weight'][place]:+.3f}"
    assert lines[1].split() == [*table["pattern"][place], *attribute, weight]
    assert {len(line.split()) for line in lines[1:]} > {3, 4}


def test_a_model_of_python_without_transitions(tmp_path, capsys):
    path = tmp_path / "model"
    hedgerow.LinearCRF(order=0).fit([[("a",), ("b",)]], [[1, 2]]).save(path)
    out = run(capsys, "inspect", path)
    assert "files:" not in out
    assert out.endswith("\nno label pattern has a weight\n")


def test_trees_that_never_split(tmp_path, capsys):
    path = tmp_path / "model"
    hedgerow.TreeCRF(n_rounds=1).fit([[[0.0], [0.0]]], [["a", "b"]]).save(path)
    assert "most important features" in run(capsys, "inspect", path)


def test_a_figure_that_was_never_noted(tmp_path, capsys):
    path = tmp_path / "model"
    model = hedgerow.LinearCRF().fit([[("a",), ("b",)]], [[1, 2]])
    model.history_["eval_loss"] = []
    model.save(path)
    assert "dev loss" not in run(capsys, "inspect", path)


def test_a_position_is_explained(chunk_model, chunks, capsys):
    model = hedgerow.load(chunk_model)
    x = read_file(chunks, Recipe.from_json(model.recipe_)).X[2]
    where = ["inspect", chunk_model, chunks, "--sequence", 2, "--position", 3]
    assert run(capsys, *where) == f"{model.explain(x, 3)}\n"
    out = run(capsys, *where, "--label", "O", "--against", "B-NP")
    assert out == f"{model.explain(x, 3, label='O', against='B-NP')}\n"


def test_a_table_without_its_group_column_is_one_sequence(tmp_path, capsys):
    rows = ["day,x,state", "1,0.5,a", "1,2.0,b", "2,0.1,a"]
    for name, lines in (("days", rows), ("one", [row.partition(",")[2] for row in rows[:3]])):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    model = train(tmp_path / "days.csv", tmp_path / "model", "--group", "day", "--rounds", 2)
    capsys.readouterr()
    expected = run(capsys, "inspect", model, tmp_path / "days.csv", "--position", 1)
    one = ["inspect", model, tmp_path / "one.csv"]
    assert main(list(map(str, [*one, "--position", 1]))) == 0
    warning = "has no column 'day' of sequence ids, so all rows are read as one"
    assert capsys.readouterr() == (expected, f"hedgerow: warning: {one[-1]} {warning} sequence\n")
    assert main(list(map(str, [*one, "--sequence", 1]))) == 2
    assert f"--sequence is 1, but {one[-1]} has 1 sequence;" in capsys.readouterr().err
    (tmp_path / "one.csv").write_text("x,state\n")
    assert main(list(map(str, one))) == 2
    assert "has 0 sequences;" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sequence", "5"], "--sequence is 5, but {file} has 5 sequences; sequences are count"),
        (["--sequence", "-1"], "--sequence is -1, but {file} has 5 sequences"),
        (["--position", "7"], "--position is 7, but sequence 0 of {file} has 7 positions; positi"),
        (["--position", "-1"], "--position is -1, but sequence 0 of"),
        (["--label", "B-NX"], "--label: the model has no label 'B-NX'; did you mean B-NP"),
        (["--against", "x"], "--against: the model has no label 'x'; its labels are 'B-"),
        (["--label", "O", "--against", "O"], "O"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes(options, message, chunk_model, chunks, capsys):
    expected = message.format(file=chunks)
    assert expected in complaint(capsys, "inspect", chunk_model, chunks, *options)


def test_lists_have_rows(chunk_model, capsys):
    message = complaint(capsys, "inspect", chunk_model, "--top", 0)
    assert message == "--top is 0; expected a number of at least 1"


def test_the_round_that_was_kept_and_the_decoder(chunks, tmp_path, capsys):
    options = ["--model", "trees", "--dev", chunks, "--decode", "marginal"]
    settings = ["n_rounds=30", "min_child_weight=0", "early_stopping_rounds=2", "learning_rate=20"]
    path = train(
        chunks, tmp_path / "trees", *options, *(word for s in settings for word in ("--set", s))
    )
    model = hedgerow.load(path)
    best, n_rounds = model.best_round_, len(model.history_["loss"])
    assert model.decode == model.decode_ == "marginal"
    assert best < n_rounds
    out = run(capsys, "inspect", path)
    rounds = f"{best} of {count_of(n_rounds, 'round')} kept (up to the best one)"
    title = f"TreeCRF, {rounds}, loss {model.loss_:.6g}, decodes by"
    assert title in " ".join(out.split())
    for name, figure in (("training accuracy", "accuracy"), ("dev loss", "eval_loss")):
        kept = f"{model.history_[figure][best - 1]:.6g} in round {best}, which was kept\n"
        assert f"\n{name}: {kept}" in out


def test_an_explanation_by_another_decoder(chunk_model, chunks, capsys):
    model = hedgerow.load(chunk_model)
    x = read_file(chunks, Recipe.from_json(model.recipe_)).X[2]
    out = run(capsys, "inspect", chunk_model, chunks, "--sequence", 2, "--decode", "marginal")
    assert out == f"{model.explain(x, 0, decode='marginal')}\n"
