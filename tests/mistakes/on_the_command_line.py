"""Mistakes on the command line, in a folder with two files and a model; `prepare` makes them."""

from pathlib import Path

import pandas as pd

from hedgerow.cli import main
from mistakes.data import LABELS, LISTED, TABLE
from mistakes.mistake import Refused, Terminal, Told, mistake, shell

WALKS = TABLE.round(3).assign(label=LABELS)
WORDS = "the DT B-NP\ndog NN I-NP\nbarks VBZ O\n\nit PRP B-NP\nsleeps VBZ O\n"
TRAIN = "hedgerow train walks.csv -m walks.hedgerow --group walk --set n_rounds=1 --quiet"
MODEL = []


def prepare():
    """walks.csv, walks.parquet, words.txt, and a model of the walks, trained once."""
    WALKS.to_csv("walks.csv", index=False)
    WALKS.to_parquet("walks.parquet")
    Path("words.txt").write_text(WORDS)
    if not MODEL:
        assert main(TRAIN.split()[1:]) == 0
        MODEL.append(Path("walks.hedgerow").read_bytes())
    Path("walks.hedgerow").write_bytes(MODEL[0])


@mistake("B", Refused, "nowhere.csv: No such file or directory")
def a_file_that_is_not_there():
    shell("hedgerow train nowhere.csv -m new.hedgerow --group walk")


@mistake("A", Refused, "there is no command 'trian'; did you mean train? See hedgerow --help")
def a_command_misspelt():
    shell("hedgerow trian walks.csv -m new.hedgerow --group walk")


@mistake(
    "A", Refused, "there is no option --groups; did you mean --group? See hedgerow train --help"
)
def an_option_misspelt():
    shell("hedgerow train walks.csv -m new.hedgerow --groups walk")


@mistake(
    "A", Refused, "the following arguments are required: -m/--model-file; see hedgerow train --help"
)
def no_place_for_the_model():
    shell("hedgerow train walks.csv --group walk")


@mistake(
    "A",
    Refused,
    "walks.csv: a table needs a group column, which contains the sequence ids; name it",
    "with group=, or --group on the command line: the columns are 'walk', 'speed', 'noise',",
    "'label'",
)
def a_table_without_groups():
    shell("hedgerow train walks.csv -m new.hedgerow")


@mistake(
    "A",
    Refused,
    "walks.csv: there is no column 'labels'; the columns are 'walk', 'speed', 'noise', 'label'",
)
def a_column_of_labels_that_is_not_there():
    shell("hedgerow train walks.csv -m new.hedgerow --group walk --label labels")


@mistake(
    "A",
    Refused,
    "walks.csv: column 'walk' is both the group and the label; say which column holds the labels:",
    "the columns are 'walk', 'speed', 'noise', 'label'",
)
def labels_that_are_the_groups():
    shell("hedgerow train walks.csv -m new.hedgerow --group walk --label walk")


@mistake(
    "A",
    Refused,
    "walks.csv: column 'speed' holds the number 0.126, but labels are text or whole numbers;",
    "choose another column of labels, or turn numbers into classes first, such as low and high",
)
def labels_that_are_numbers():
    shell("hedgerow train walks.csv -m new.hedgerow --group walk --label speed")


@mistake(
    "A", Refused, "walks.csv: column 'label' cannot be a feature: it is the label or the group"
)
def features_that_are_the_label():
    shell("hedgerow train walks.csv -m new.hedgerow --group walk --features speed,label")


@mistake(
    "A",
    Refused,
    "mixed.csv: group 'w1' of column 'walk' occurs again in row 5; the rows of a group must be",
    "consecutive: sort the table by group first",
)
def rows_that_are_not_sorted_by_group():
    WALKS.sort_values("speed").to_csv("mixed.csv", index=False)
    shell("hedgerow train mixed.csv -m new.hedgerow --group walk")


@mistake(
    "A",
    Refused,
    "dates.csv: column 'day' is of type date32[day]; expected numbers, bools or text: convert it,",
    "or choose other columns",
)
def dates_as_features():
    WALKS.assign(day="2024-05-01")[["walk", "day", "label"]].to_csv("dates.csv", index=False)
    shell("hedgerow train dates.csv -m new.hedgerow --group walk")


@mistake(
    "A",
    Told,
    "warning: column 'second' rises from row to row in every sequence, like a time: probably not a",
    "feature, since new data will have other values; choose the feature columns with --features",
)
def a_clock_as_a_feature():
    again = pd.concat([WALKS, WALKS.assign(walk="x" + WALKS["walk"])])
    again.insert(1, "second", range(len(again)))
    again.to_csv("clock.csv", index=False)
    shell("hedgerow train clock.csv -m new.hedgerow --group walk --quiet --set n_rounds=1")


@mistake(
    "A",
    Told,
    "warning: all values of column 'speed' except '?' look like numbers, such as '-0.129', but",
    "are stored as text, so they are treated as categories; convert the column to numbers, with an",
    "empty cell or NaN for a missing value, for example by pandas.to_numeric(X['speed'],",
    "errors='coerce'). If they are codes, convert it to a categorical dtype (in a CSV file, put a",
    "letter before each code)",
)
def numbers_with_a_word_for_missing_ones():
    words = WALKS.astype({"speed": str})
    words.loc[3, "speed"] = "?"
    words.to_csv("gaps.csv", index=False)
    shell("hedgerow train gaps.csv -m new.hedgerow --group walk --quiet --set n_rounds=1")


@mistake("B", Refused, "torn.csv, line 3: Expected 3 columns, got 2: w0,run")
def a_row_with_a_cell_too_few():
    Path("torn.csv").write_text("walk,speed,label\nw0,1,run\nw0,run\n")
    shell("hedgerow train torn.csv -m new.hedgerow --group walk")


@mistake(
    "A", Refused, "torn.txt, line 2: expected 3 columns as in the lines before, got 2: 'dog NN'"
)
def a_token_without_a_label():
    Path("torn.txt").write_text("the DT B-NP\ndog NN\n")
    shell("hedgerow train torn.txt -m new.hedgerow")


@mistake(
    "A",
    Refused,
    "walks.xlsx: not supported: this is a zip archive or an Excel workbook; unpack it, or save",
    "the table as CSV, Parquet, Feather or JSON lines",
)
def a_spreadsheet():
    Path("walks.xlsx").write_bytes(b"PK\3\4" + bytes(60))
    shell("hedgerow train walks.xlsx -m new.hedgerow --group walk")


@mistake("A", Refused, "--set: TreeCRF has no parameter 'max_deph'; did you mean max_depth?")
def a_parameter_misspelt():
    shell("hedgerow train walks.csv -m new.hedgerow --group walk --set max_deph=3")


@mistake("A", Refused, "order is 'many'; expected an integer of at least 0")
def a_parameter_of_the_wrong_kind():
    shell("hedgerow train walks.csv -m new.hedgerow --group walk --set order=many")


@mistake("A", Refused, "argument --set: expected KEY=VALUE, not 'order'; see hedgerow train --help")
def a_parameter_without_a_value():
    shell("hedgerow train walks.csv -m new.hedgerow --group walk --set order")


@mistake(
    "A",
    Refused,
    "--window is for --model trees; a linear model sees neighbours through attributes, which",
    "--template makes from CoNLL columns",
)
def a_window_for_a_linear_model():
    shell("hedgerow train words.txt -m new.hedgerow --window 2")


@mistake(
    "B",
    Refused,
    "y[0][0] is 'I-NP' at the beginning of a sequence, which constraints='BIO' forbids; correct",
    "the labels or relax the constraints",
)
def a_scheme_that_the_labels_break():
    Path("odd.txt").write_text("dog NN I-NP\n\ncat NN B-NP\n")
    shell("hedgerow train odd.txt -m new.hedgerow --constraints BIO")


@mistake("A", Refused, "the model would be written over walks.csv; name another file")
def the_model_in_place_of_the_data():
    shell("hedgerow train walks.csv -m walks.csv --group walk")


@mistake("A", Refused, "cannot save to 'models/new.hedgerow': the folder 'models' does not exist")
def the_model_into_a_folder_that_is_not_there():
    shell("hedgerow train walks.csv -m models/new.hedgerow --group walk")


@mistake(
    "A",
    Told,
    "warning: dev.csv has labels that did not occur in training: 'swim', at 1 position, first at",
    "y[0][0]; the model cannot predict them, so they count as mistakes, and are left out of",
    "losses and likelihoods",
)
def a_dev_file_with_a_label_of_its_own():
    WALKS.assign(label=["swim", *LABELS[1:]]).to_csv("dev.csv", index=False)
    shell(
        "hedgerow train walks.csv -m new.hedgerow --group walk --dev dev.csv --quiet "
        "--set n_rounds=1"
    )


@mistake(
    "A",
    Refused,
    "new.csv: column 'noise', which the model was trained on, is missing; the columns are",
    "'walk', 'speed', 'label'",
)
def a_file_to_tag_without_a_column():
    WALKS.drop(columns="noise").to_csv("new.csv", index=False)
    shell("hedgerow tag walks.hedgerow new.csv -o out.csv")


@mistake(
    "A",
    Refused,
    "walks.parquet holds parquet, which a terminal cannot show; write it to a file, -o",
    "labelled.parquet, or as text, -o labelled.csv",
)
def parquet_on_a_terminal():
    shell("hedgerow tag walks.hedgerow walks.parquet", Terminal())


@mistake(
    "A",
    Refused,
    "out.parquet would hold csv, as walks.csv does, but its name ends in .parquet; expected a name",
    "that ends in .csv, .tsv or .txt",
)
def csv_into_a_parquet_file():
    shell("hedgerow tag walks.hedgerow walks.csv -o out.parquet")


@mistake(
    "A",
    Refused,
    "out.xlsx would hold csv, as walks.csv does, but its name ends in .xlsx; expected a name that",
    "ends in .csv, .tsv or .txt",
)
def csv_into_an_excel_file():
    shell("hedgerow tag walks.hedgerow walks.csv -o out.xlsx")


@mistake(
    "A",
    Refused,
    "page.pdf would hold an HTML page, but its name ends in .pdf; expected a name that ends in",
    ".html or .htm",
)
def a_report_as_a_pdf():
    shell("hedgerow report walks.hedgerow -o page.pdf")


@mistake(
    "A",
    Refused,
    "model.json would hold a model, but its name ends in .json; expected a name that ends in",
    ".hedgerow",
)
def a_model_as_json():
    shell("hedgerow train walks.csv -m model.json --group walk")


@mistake("A", Refused, "the labels would be written over walks.hedgerow; name another file")
def the_labels_in_place_of_the_model():
    shell("hedgerow tag walks.hedgerow walks.csv -o walks.hedgerow")


@mistake(
    "A",
    Refused,
    "cannot load 'walks.csv': the file is not a hedgerow model file; pass the path of a model",
    "file, as written by save() or the command 'hedgerow train'",
)
def a_file_that_is_no_model():
    shell("hedgerow tag walks.csv walks.hedgerow")


@mistake(
    "A",
    Refused,
    "python.hedgerow was trained in Python, so it does not store how to read files; train it",
    "with hedgerow train, or use it in Python",
)
def a_model_that_was_trained_in_python():
    LISTED.save("python.hedgerow")
    shell("hedgerow tag python.hedgerow walks.csv")


@mistake("A", Refused, "--k-best is 100000; expected a number from 1 to 1,000")
def too_many_labellings():
    shell("hedgerow tag walks.hedgerow walks.csv -o out.csv --k-best 100000")


@mistake(
    "A",
    Refused,
    "new.csv: column 'label', which the model was trained on, is missing; the columns are",
    "'walk', 'speed', 'noise'",
)
def an_evaluation_without_labels():
    WALKS.drop(columns="label").to_csv("new.csv", index=False)
    shell("hedgerow eval walks.hedgerow new.csv")


@mistake("B", Refused, "new.csv has no labels to compare with")
def an_evaluation_of_empty_labels():
    WALKS.assign(label="").to_csv("new.csv", index=False)
    shell("hedgerow eval walks.hedgerow new.csv")


@mistake(
    "A", Refused, "--sequence is 9, but walks.csv has 4 sequences; sequences are counted from 0"
)
def explain_a_sequence_that_is_not_there():
    shell("hedgerow inspect walks.hedgerow walks.csv --sequence 9")


@mistake(
    "A", Refused, "the following arguments are required: -o/--output; see hedgerow report --help"
)
def a_report_without_a_place():
    shell("hedgerow report walks.hedgerow walks.csv")
