"""Running commands as a user would, and small files for them."""

import io

from hedgerow.cli import main

# Words, tags and chunks of a few sentences.
SENTENCES = [
    "The DT B-NP|old JJ I-NP|man NN I-NP|sees VBZ B-VP|a DT B-NP|dog NN I-NP|. . O",
    "Dogs NNS B-NP|bark VBP B-VP|. . O",
    "A DT B-NP|dog NN I-NP|has VBZ B-VP|seen VBN I-VP|the DT B-NP|man NN I-NP|. . O",
    "He PRP B-NP|sleeps VBZ B-VP|in IN B-PP|the DT B-NP|old JJ I-NP|house NN I-NP|. . O",
    "Men NNS B-NP|have VBP B-VP|slept VBN I-VP|in IN B-PP|houses NNS B-NP|. . O",
]


def conll(sentences, n_columns=3):
    """A CoNLL file of the sentences, without some of the last columns if requested."""
    lines = [
        "\n".join(" ".join(token.split(" ")[:n_columns]) for token in sentence.split("|"))
        for sentence in sentences
    ]
    return "\n\n".join(lines) + "\n"


def labels(text):
    """The last cells of all rows."""
    return [line.split()[-1] for line in text.splitlines() if line.strip()]


def run(capsys, *argv):
    """The standard output of a command that succeeds."""
    code = main([str(argument) for argument in argv])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def complaint(capsys, *argv):
    """The error message of a mistake, one line."""
    assert main([str(argument) for argument in argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hedgerow: ")
    assert err.count("\n") == 1
    return err.removeprefix("hedgerow: ").rstrip("\n")


def train(file, model, *options):
    """Train a model quietly, and save it to a file."""
    arguments = ["train", file, "-m", model, "--quiet", *options]
    assert main(list(map(str, arguments))) == 0
    return model


def two_divisions(folder):
    """A table of 8 rows, and two models: one reads it as 2 sequences, the other as 4."""
    table = folder / "t.csv"
    rows = (f"{row // 4},{row // 2},{row},{'ab'[row % 2]}" for row in range(8))
    table.write_text("\n".join(["day,half,x,state", *rows]) + "\n")
    shared = ["--features", "x", "--label", "state", "--rounds", 1, "--group"]
    return table, [
        train(table, folder / f"{group}.hedgerow", *shared, group) for group in ("day", "half")
    ]


def give(monkeypatch, data):
    """Bytes on standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
