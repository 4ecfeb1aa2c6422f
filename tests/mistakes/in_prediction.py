"""Mistakes with fitted and unfitted models."""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError

from hedgerow import ModelFileError, TreeCRF, load
from hedgerow.report import write_report
from mistakes.data import BY_COLUMN, FEATURES, FITTED, IDS, LABELS, LISTED, ROWS, X, Y, trees
from mistakes.mistake import mistake

NO_NOISE = (
    "X has different columns from those that TreeCRF was fitted on: column 'noise' of the "
    "training X is missing in this X; pass the columns used in training, and no others"
)


@mistake("A", NotFittedError, "this TreeCRF is not fitted yet; call fit before using it")
def predict_before_fit():
    TreeCRF().predict(X)


@mistake("A", ValueError, NO_NOISE)
def predict_without_a_column():
    FITTED.predict(FEATURES[["speed"]], groups=IDS)


@mistake(
    "A",
    ValueError,
    "X has different columns from those that TreeCRF was fitted on: column 'place' of this X",
    "is not in the training X; pass the columns used in training, and no others",
)
def predict_with_a_column_too_many():
    FITTED.predict(FEATURES.assign(place=1), groups=IDS)


@mistake("A", ValueError, NO_NOISE)
def predict_with_a_column_renamed():
    FITTED.predict(FEATURES.rename(columns={"noise": "nose"}), groups=IDS)


@mistake(
    "A",
    ValueError,
    "column 'noise' was numeric when TreeCRF was fitted and is text now; convert it",
)
def predict_with_text_for_numbers():
    FITTED.predict(FEATURES.astype({"noise": str}), groups=IDS)


@mistake("B", ValueError, "X has 1 features, but LinearCRF is expecting 2 features as input")
def predict_with_fewer_columns():
    LISTED.predict([x[:, :1] for x in X])


@mistake(
    "A",
    ValueError,
    "X holds dicts or attribute strings, but LinearCRF was fitted on 2 columns (arrays,",
    "DataFrames or sparse matrices); pass X in the form used in training",
)
def predict_dicts_with_a_model_of_columns():
    LISTED.predict([[{"speed": 1.0}]])


@mistake(
    "A",
    ValueError,
    "group_column is 'walk', but X has the columns 'speed', 'noise'; pass X with the column of",
    "group ids to fit and to predict, or pass the argument groups",
)
def predict_without_the_group_column():
    BY_COLUMN.predict(FEATURES)


@mistake(
    "A",
    UserWarning,
    "column 'place' has only categories that did not occur in training, such as 'in', so all of",
    "them are treated as missing; the model was fitted on '0', '1', '2'; use the same values as in",
    "training",
)
def predict_with_categories_of_another_kind():
    table = FEATURES.assign(place=pd.Categorical(np.arange(16) % 3))
    crf = trees().fit(table, LABELS, groups=IDS)
    crf.predict(table.assign(place=pd.Categorical(["in", "out"] * 8)), groups=IDS)


@mistake("A", ValueError, "decode is 'beam'; expected 'viterbi', 'marginal' or None")
def a_decoder_that_does_not_exist():
    LISTED.predict(X, decode="beam")


@mistake("A", ValueError, "unknown label 'swim' at known[0][0]; known labels: 'run', 'walk'")
def a_known_label_that_does_not_exist():
    LISTED.predict(X, known=[["swim", None, None], *([None] * len(y) for y in Y[1:])])


@mistake("A", ValueError, "k is 0; expected an integer of at least 1")
def no_best_labelling():
    LISTED.predict_k_best(X, 0)


@mistake("A", ValueError, "position is 3, but x has 3 positions; expected an integer from 0 to 2")
def explain_a_position_beyond_the_end():
    LISTED.explain(X[0], 3)


@mistake(
    "A",
    ValueError,
    "x is a list of 4 sequences; expected the sequence itself, such as X[0]",
)
def explain_several_sequences():
    LISTED.explain(X, 0)


@mistake("A", ValueError, "label has the unknown label 'swim'; known labels: 'run', 'walk'")
def explain_a_label_that_does_not_exist():
    LISTED.explain(X[0], 0, label="swim")


@mistake("A", ValueError, "every label of y is missing; score needs at least one")
def a_score_of_missing_labels():
    LISTED.score(X, [[None] * len(y) for y in Y])


@mistake(
    "A",
    ModelFileError,
    "cannot load 'notes.txt': the file is not a hedgerow model file; pass the path of a model",
    "file, as written by save() or the command 'hedgerow train'",
)
def load_a_file_that_is_no_model():
    Path("notes.txt").write_text("not a model")
    load("notes.txt")


@mistake(
    "A",
    FileNotFoundError,
    "cannot load 'nowhere.hedgerow': there is no such file; pass the path of a model file, as",
    "written by save() or the command 'hedgerow train'",
)
def load_a_file_that_is_not_there():
    load("nowhere.hedgerow")


@mistake(
    "A",
    TypeError,
    "path is of type list; expected the name of the file to write: write_report(model, path, X, y)",
)
def a_report_with_the_data_first():
    write_report(LISTED, X, Y, "report.html")


@mistake(
    "A",
    TypeError,
    "cannot load None; expected the path of a model file, its bytes, or a file opened in binary",
    "mode",
)
def load_nothing():
    load(None)


@mistake(
    "A",
    FileNotFoundError,
    "cannot save to 'models/walks.hedgerow': the folder 'models' does not exist",
)
def save_into_a_folder_that_is_not_there():
    LISTED.save("models/walks.hedgerow")


@mistake("A", NotFittedError, "this TreeCRF is not fitted yet; call fit before using it")
def save_before_fit():
    TreeCRF().save("walks.hedgerow")


@mistake("A", TypeError, "init is of type LinearCRF; expected a fitted TreeCRF")
def go_on_from_another_kind_of_model():
    trees().fit(X, Y, init=LISTED)


@mistake("B", ValueError, "unknown label 'swim' at y[0]; known labels: 'run', 'walk'")
def go_on_with_labels_that_are_new():
    trees().fit(ROWS, ["swim"] * 16, init=trees().fit(ROWS, LABELS))


@mistake(
    "A",
    ValueError,
    "base_scores are given, but TreeCRF was fitted without them; leave them out here,",
    "or pass base_scores to its fit too",
)
def base_scores_for_prediction_alone():
    FITTED.predict(FEATURES, groups=IDS, base_scores=np.zeros((len(FEATURES), 2)))


@mistake(
    "A",
    ValueError,
    "TreeCRF was fitted with base_scores and needs them here too; pass base_scores from",
    "the same model as in training, or an array of zeros if there are none",
)
def base_scores_for_training_alone():
    crf = trees().fit(X, Y, base_scores=[np.zeros((len(y), 2)) for y in Y])
    crf.predict(X)
