"""Copies of a model: files, pickles, refitted clones."""

import copy
import io
import pickle
import tempfile
from pathlib import Path

import joblib
from sklearn.base import clone

from abuse.kind import Case, Kind
from abuse.metamorphic.answers import answers, assert_same_answers, file_of
from abuse.training import Training
from abuse.trainings import trainings
from hedgerow import LinearCRF, TreeCRF, load

__all__ = ["KINDS"]


def dump_with_joblib(crf: LinearCRF | TreeCRF) -> LinearCRF | TreeCRF:
    """Save and load with joblib."""
    with tempfile.TemporaryDirectory() as folder:
        joblib.dump(crf, Path(folder, "dump"))
        return joblib.load(Path(folder, "dump"))


COPIES = {
    "bytes": lambda crf: load(file_of(crf)),
    "file": lambda crf: load(io.BytesIO(file_of(crf))),
    "pickle": lambda crf: pickle.loads(pickle.dumps(crf)),
    "oldest pickle": lambda crf: pickle.loads(pickle.dumps(crf, protocol=2)),
    "deepcopy": copy.deepcopy,
    "joblib": dump_with_joblib,
}


def check_copies(case: Case) -> None:
    """Every copy, and a copy of it, gives the same predictions and the same file."""
    training = Training.of(case)
    crf = training.fit()
    expected, file = answers(crf, training), file_of(crf)
    for name, make in COPIES.items():
        made = make(crf)
        assert file_of(made) == file, name
        assert file_of(make(made)) == file, f"{name} of {name}"
        assert_same_answers(answers(made, training), expected)
    parameters = training.start()
    cloned = clone(crf).fit(training.X, training.y, **parameters)
    assert file_of(cloned) == file, "clone"
    again = crf.fit(training.X, training.y, **parameters)
    assert file_of(again) == file, "fitted again"


KINDS = [Kind("metamorphic-copies", trainings(), check_copies, in_suite=2)]
