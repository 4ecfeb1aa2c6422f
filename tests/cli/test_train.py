"""hedgerow train: options, files, models, and error messages."""

import os
import signal
import sys

import pytest

import hedgerow
from abuse.children import fork, wait
from hedgerow.cli import main
from hedgerow.lock import Lock
from reference.command_line import SENTENCES, complaint, conll, give, run


@pytest.fixture
def place(tmp_path):
    return tmp_path / "model"


def train(capsys, file, place, *options):
    """The model of a training run."""
    run(capsys, "train", file, "-m", place, "--quiet", *options)
    return hedgerow.load(place)


def test_a_model_is_that_of_the_library(chunks, place, capsys):
    from hedgerow.files import make_recipe, read_file

    model = train(capsys, chunks, place, "--set", "reg_lambda=0.5", "--seed", 3, "--jobs", 1)
    data = read_file(chunks, make_recipe(chunks))
    crf = hedgerow.LinearCRF(reg_lambda=0.5, random_state=3).fit(data.X, data.y)
    crf.recipe_ = model.recipe_
    crf.save(place.with_name("other"))
    assert place.read_bytes() == place.with_name("other").read_bytes()


def test_options_are_parameters(chunks, place, capsys):
    settings = ["n_rounds=3", "max_step=null", "newton=False", 'forbidden=[["O", "O"]]']
    model = train(
        capsys,
        *(chunks, place, "--model", "trees", "--objective", "pointwise", "--order", 2),
        *("--window", "1,2", "--constraints", "BIO"),
        *(word for setting in settings for word in ("--set", setting)),
    )
    assert isinstance(model, hedgerow.TreeCRF)
    changed = {
        name: value
        for name, value in model.get_params().items()
        if value != hedgerow.TreeCRF().get_params()[name]
    }
    assert changed == {
        "n_rounds": 3,
        "max_step": None,
        "newton": False,
        "forbidden": [["O", "O"]],
        "objective": "pointwise",
        "order": 2,
        "window": [1, 2],
        "constraints": "BIO",
    }


def test_common_parameters_have_options(chunks, place, capsys):
    steps = ("--rounds", 3, "--early-stopping", 2, "--dev", chunks)
    model = train(capsys, chunks, place, "--model", "trees", "--learning-rate", 0.5, *steps)
    assert (model.n_rounds, model.learning_rate, model.early_stopping_rounds) == (3, 0.5, 2)
    model = train(capsys, chunks, place, *steps, "--set", "tol=0")
    assert (model.max_iter, model.early_stopping_rounds) == (3, 2)


def test_costs_of_mistakes(chunks, place, capsys):
    costs = ("--objective", "softmax_margin", "--label-costs")
    assert train(capsys, chunks, place, *costs, "2.5").label_costs == 2.5
    model = train(
        capsys, chunks, place, *costs, '{"O": {"B-NP": 4}}', "--model", "trees", "--rounds", 3
    )
    assert model.label_costs == {"O": {"B-NP": 4}}


def test_text_needs_no_quotes(chunks, place, capsys):
    assert train(capsys, chunks, place, "--set", "class_weight=balanced").class_weight == "balanced"


def test_a_template_says_what_the_model_looks_at(chunks, place, tmp_path, capsys):
    template = tmp_path / "template"
    template.write_text("U00:%x[0,1]\nB\n")
    model = train(capsys, chunks, place, "--template", template)
    assert set(model.attributes_) == {
        f"U00:{tag}" for tag in ("DT", "JJ", "NN", "VBZ", ".", "NNS", "VBP", "VBN", "PRP", "IN")
    }
    assert model.order == 1
    template.write_text("U00:%x[0,1]\n")
    assert train(capsys, chunks, place, "--template", template).order == 0
    assert train(capsys, chunks, place, "--template", template, "--order", 1).order == 1


def test_pair_lines_of_a_template_need_weights(chunks, place, tmp_path, capsys):
    template = tmp_path / "template"
    template.write_text("U00:%x[0,1]\nB01:%x[0,0]\n")
    model = train(capsys, chunks, place, "--template", template)
    assert "B01:dog" in model.transition_weights()["attribute"].tolist()
    message = complaint(
        capsys, "train", chunks, "-m", place, "--template", template, "--model", "trees"
    )
    assert message == (
        f"{template}: lines such as B01:%x[0,0] need --model linear or --base linear; leave them "
        "out for trees alone"
    )


def test_standard_input(chunks, place, capsys, monkeypatch):
    expected = train(capsys, chunks, place).predict_proba([[("a",)]])
    give(monkeypatch, chunks.read_bytes())
    model = train(capsys, "-", place)
    assert (model.predict_proba([[("a",)]]) == expected).all()


def test_what_it_says(chunks, place, tmp_path, capsys):
    dev = tmp_path / "dev.txt"
    dev.write_text(conll(SENTENCES[:2]))
    assert main(["train", str(chunks), "-m", str(place), "--dev", str(dev)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == f"{chunks}: 5 sequences, 30 positions, 6 labels"
    model = hedgerow.load(place)
    assert lines[1] == "features: attributes of 2 columns: 0, 1"
    trained = f"LinearCRF: {model.n_iter_} iterations, loss {model.loss_:.6g}"
    assert lines[2] == f"{trained}, decodes by marginals"
    assert lines[3] == f"{dev}: accuracy 100.00 %, F1 of chunks 100.00 %"
    assert lines[4].startswith(f"{place}: {place.stat().st_size / 1000:.3g} kB, ")
    assert len(lines) == 5
    assert "  eval_accuracy=1  " in err
    assert model.verbose == 0


def test_several_files_to_watch(chunks, place, tmp_path, capsys):
    files = [tmp_path / name for name in ("one.txt", "two.txt")]
    for file, sentences in zip(files, (SENTENCES[:2], SENTENCES[2:]), strict=True):
        file.write_text(conll(sentences))
    watched = [word for file in files for word in ("--dev", str(file))]
    assert main(["train", str(chunks), "-m", str(place), *watched]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in lines[3:5]] == list(map(str, files))
    assert {"one_accuracy", "two_accuracy"} < set(hedgerow.load(place).history_)
    assert "\ntwo accuracy: " in run(capsys, "inspect", place)
    files[1].write_text(conll(["Well UH B-INTJ|. . B-INTJ"]))
    assert main(["train", str(chunks), "-m", str(place), "--quiet", *watched]) == 2
    message = f"hedgerow: {files[1]}: none of the labels of y, such as 'B-INTJ', occurred"
    assert capsys.readouterr().err.splitlines()[-1].startswith(message)


def test_sequences_held_out_to_stop_by(chunks, place, capsys):
    options = ["--set", "early_stopping_rounds=2", "--set", "validation_fraction=0.2"]
    assert main(["train", str(chunks), "-m", str(place), *options]) == 0
    out, err = capsys.readouterr()
    model = hedgerow.load(place)
    best = model.history_["validation_accuracy"][model.best_iter_ - 1]
    assert f"\nheld out of {chunks}: accuracy {100 * best:.2f} %\n" in out
    assert "  validation_accuracy=" in err


def test_labels_without_chunks_have_no_f1(place, tmp_path, capsys):
    file = tmp_path / "tags.txt"
    file.write_text(conll(SENTENCES, n_columns=2))
    run_quietly = ["train", str(file), "-m", str(place), "--dev", str(file), "--model", "trees"]
    assert main([*run_quietly, "--set", "n_rounds=2", "--set", "early_stopping_rounds=1"]) == 0
    out = capsys.readouterr().out
    assert "TreeCRF: 2 rounds, loss " in out
    assert "F1" not in out


def test_labels_that_only_the_second_file_has(chunks, place, tmp_path, capsys):
    dev = tmp_path / "dev.txt"
    dev.write_text(conll([*SENTENCES, "Well UH B-INTJ|. . O"]))
    assert main(["train", str(chunks), "-m", str(place), "--dev", str(dev), "--quiet"]) == 0
    assert capsys.readouterr().err == (
        f"hedgerow: warning: {dev} has labels that did not occur in training: 'B-INTJ', at 1 "
        "position, first at y[5][0]; the model cannot predict them, so they count as mistakes, and "
        "are left out of losses and likelihoods\n"
    )


def test_warnings_are_lines(chunks, place, capsys):
    options = ["train", str(chunks), "-m", str(place), "--quiet", "--set", "max_iter=2"]
    assert main(options) == 0
    err = capsys.readouterr().err
    assert err.startswith("hedgerow: warning: training stopped after max_iter=2 iterations")
    assert err.count("\n") == 1


# Mistakes.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "c1=1"], "--set: LinearCRF has no parameter 'c1'; did you mean reg_alpha?"),
        (["--set", "xyz=1"], "LinearCRF has no parameter 'xyz'; its parameters are all_pairs, "),
        (["--set", "callbacks=1"], "--set callbacks: callbacks are functions, which only Python"),
        (["--set", "group_column=1"], "use --group for the column with the sequence ids"),
        (["--order", "2", "--set", "order=1"], "order is given twice; give it once"),
        (["--learning-rate", "0.1"], "--learning-rate is for --model trees; a linear model has"),
        (["--transitions", "trees"], "--transitions is for --model trees; in a linear model"),
        (["--device", "cuda"], "--device is for --model trees; a linear model is trained on the"),
        (["--rounds", "5", "--set", "max_iter=6"], "max_iter is given twice; give it once"),
        (["--dev", "x", "--dev", "x"], "--dev x is given twice; give it once"),
        (["--every", "5"], "--every needs --checkpoint FILE, which is then written every N"),
        (["--jobs", "0"], "n_jobs is 0; expected"),
        (
            ["--set", "early_stopping_rounds=5", "--set", "validation_fraction=None"],
            "early_stopping_rounds needs validation data, but validation_fraction is None; name",
        ),
        (["--dev", "no such file"], "no such file: No such file or directory"),
        (["--template", "no such file"], "no such file: No such file or directory"),
        (["--label", "7"], "there is no column 7; the columns have no names"),
        (["--features", "0,word"], "there is no column 'word'"),
        (["--group", "0", "--format", "conll"], "a group column is for tables"),
        (["--set", "missing_label=[1]"], "missing_label"),
        (["--label-costs", "high"], "label_costs is 'high'; expected 'hamming', a number, a dict"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes(options, message, chunks, place, capsys):
    assert message in complaint(capsys, "train", chunks, "-m", place, "--quiet", *options)
    assert not place.exists()


def test_mistakes_in_files(chunks, place, tmp_path, capsys):
    broken = tmp_path / "broken.txt"
    broken.write_text("The DT B-NP\nman NN\n")
    message = complaint(capsys, "train", broken, "-m", place)
    assert message.startswith(f"{broken}, line 2: expected 3 columns")
    message = complaint(capsys, "train", chunks, "-m", place, "--dev", broken)
    assert message.startswith(f"{broken}, line 2: expected 3 columns")
    broken.write_text("The DT I-NP\n")
    options = ["--dev", broken, "--constraints", "BIO", "--quiet"]
    message = complaint(capsys, "train", chunks, "-m", place, *options)
    assert message.startswith(f"{broken}: ")


def test_both_files_from_standard_input(place, capsys):
    message = complaint(capsys, "train", "-", "-m", place, "--dev", "-")
    assert message == "only one of TRAIN, --dev and --template can be standard input"


def test_the_place_of_the_model_is_looked_at_first(chunks, tmp_path, capsys):
    message = complaint(capsys, "train", "nothing", "-m", tmp_path)
    assert message == f"cannot save to {str(tmp_path)!r}: it is a folder; name a file"
    message = complaint(capsys, "train", "nothing", "-m", "-")
    assert message == "the model cannot go to standard output; name a file"
    model = tmp_path / "no" / "model"
    message = complaint(capsys, "train", "nothing", "-m", model)
    folder = str(model.parent)
    assert message == f"cannot save to {str(model)!r}: the folder {folder!r} does not exist"
    message = complaint(capsys, "train", chunks, "-m", chunks)
    assert message == f"the model would be written over {chunks}; name another file"
    checkpoint = tmp_path / "same"
    message = complaint(capsys, "train", chunks, "-m", checkpoint, "--checkpoint", checkpoint)
    assert message == f"the model would be written over {checkpoint}; name another file"


# Interrupted training runs.


def end_after(monkeypatch, n_steps):
    """Ctrl-C after this many steps."""

    def update(self, figures):
        nonlocal n_steps
        n_steps -= 1
        if n_steps == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr("hedgerow.progress.Progress.update", update)


@pytest.mark.parametrize("kind", ["linear", "trees"])
def test_a_training_goes_on_from_its_checkpoint(kind, chunks, place, capsys, monkeypatch):
    checkpoint = place.with_name("checkpoint")
    options = ["train", str(chunks), "-m", str(place), "--quiet", "--model", kind]
    if kind == "trees":
        options += ["--set", "n_rounds=7", "--set", "min_child_weight=0"]
    assert main(options) == 0
    expected = place.read_bytes()
    place.unlink()
    options += ["--checkpoint", str(checkpoint), "--every", "2"]
    with monkeypatch.context() as patch:
        end_after(patch, 5)
        assert main(options) == 130
    assert capsys.readouterr().err == (
        f"hedgerow: interrupted; no model was written; the same command resumes from {checkpoint}\n"
    )
    assert checkpoint.exists()
    assert not place.exists()
    assert main(options) == 0
    assert place.read_bytes() == expected
    assert not checkpoint.exists()


def test_an_interrupt_before_the_first_checkpoint(chunks, place, capsys, monkeypatch):
    checkpoint = place.with_name("checkpoint")
    end_after(monkeypatch, 2)
    options = ["--quiet", "--checkpoint", str(checkpoint)]
    assert main(["train", str(chunks), "-m", str(place), *options]) == 130
    assert capsys.readouterr().err == "hedgerow: interrupted; no model was written\n"
    assert not checkpoint.exists()


def test_a_checkpoint_that_is_in_use(chunks, place, capsys):
    checkpoint = place.with_name("checkpoint")
    lock = Lock.acquire(checkpoint)
    try:
        message = complaint(capsys, "train", chunks, "-m", place, "--checkpoint", checkpoint)
    finally:
        lock.release()
    assert f"the checkpoint {str(checkpoint)!r} is in use by process {os.getpid()} on" in message
    assert not place.exists()


@pytest.mark.parametrize("option", ["-m", "--checkpoint"])
def test_names_that_are_too_long(option, chunks, place, capsys):
    path = place.with_name("n" * 256)
    options = [option, path] if option == "-m" else ["-m", place, option, path]
    assert complaint(capsys, "train", chunks, *options) == f"{path}: File name too long"


def test_a_checkpoint_of_another_training(chunks, place, capsys, monkeypatch):
    checkpoint = place.with_name("checkpoint")
    options = ["train", str(chunks), "-m", str(place), "--quiet", "--checkpoint", str(checkpoint)]
    with monkeypatch.context() as patch:
        end_after(patch, 15)
        assert main(options) == 130
    capsys.readouterr()
    message = complaint(capsys, *options, "--set", "reg_lambda=9")
    assert str(checkpoint) in message
    assert "reg_lambda" in message
    assert checkpoint.exists()
    assert "every is 0; expected" in complaint(capsys, *options, "--every", 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are sent in another way there")
def test_ctrl_c_leaves_no_model(chunks, place):
    file = place.with_name("long.txt")
    file.write_text(chunks.read_text().replace("\n\n", "\n") * 60)
    options = ["--order", "4", "--set", "tol=0", "--set", "max_iter=100000"]
    read, write = os.pipe()

    def train_on():
        with os.fdopen(write, "w", buffering=1) as sys.stderr:
            return main(["train", str(file), "-m", str(place), *options])

    child = fork(train_on)  # which need not import anything
    os.close(write)
    with os.fdopen(read) as lines:
        assert "loss=" in lines.readline()  # training has begun
        os.kill(child, signal.SIGINT)
        err = lines.read()
    assert wait(child) == 130
    assert err.splitlines()[-1] == "hedgerow: interrupted; no model was written"
    assert "Traceback" not in err
    assert os.listdir(place.parent) == ["long.txt"]


def test_trees_on_top_of_a_linear_model(chunks, place, tmp_path, capsys):
    template = tmp_path / "template"
    template.write_text("U00:%x[0,1]\nB01:%x[0,0]\n")
    base = ("--model", "trees", "--base", "linear", "--set", "base__reg_lambda=0.5")
    few = (
        "--rounds",
        2,
        "--set",
        "base_folds=2",
        "--set",
        "base__max_iter=5",
        "--set",
        "base__tol=0",
    )
    model = train(capsys, chunks, place, *base, *few, "--template", template, "--jobs", 1)
    assert (model.base_.reg_lambda, model.base_.transition_attributes) == (0.5, "B")
    assert (model.n_jobs, model.base_.n_jobs, model.base.n_jobs) == (None, None, None)
    assert "B01:dog" in model.base_.transition_weights()["attribute"].tolist()
    out = run(capsys, "inspect", place, "--top", 3)
    assert "\nbase: LinearCRF, 5 iterations, loss" in out
    assert "\nbase model:\nlargest weights" in out
    assert "base: " in run(capsys, "inspect", place, chunks)
    command = ["train", chunks, "-m", place, *base, *few, "--dev", chunks]
    assert main(list(map(str, command))) == 0
    assert "\non top of a LinearCRF: 5 iterations, loss " in capsys.readouterr().out
    assert run(capsys, "tag", place, chunks)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--base", "linear"], "--base is for --model trees, which are trained on top of it"),
        (
            ["--model", "trees", "--set", "base__reg_lambda=1"],
            "--set base__reg_lambda is about a base model; add --base linear",
        ),
        (["--model", "trees", "--set", "base=1"], "--set base: use --base for a base model"),
    ],
)
def test_a_base_is_refused(chunks, place, capsys, options, message):
    assert message in complaint(capsys, "train", chunks, "-m", place, *options)


def test_a_gpu_is_looked_for_before_the_file_is_read(chunks, place, capsys, monkeypatch):
    from hedgerow.cuda import cupy_device

    monkeypatch.setitem(sys.modules, "cupy", None)
    cupy_device.find_device.cache_clear()
    told = complaint(capsys, "train", chunks, "-m", place, "--model", "trees", "--device", "cuda")
    assert "--device cuda: device='cuda' needs CuPy" in told
