"""Relational features with both estimators: pipelines, cross-validation, files, explanations."""

import pickle

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from hedgerow import Checkpoint, load
from hedgerow.model_selection import SequenceKFold, cross_val_predict
from hedgerow.relational import Atoms, RelationalFeatures
from hedgerow.report import write_report

MODES = ["cd(+t,+-f)", "ls(+t,+-f)", "own(+f,#who)"]


def draw_sessions(n_sessions, first, seed=0):
    """Commands on files that no other session has; the label says whether the file is the same."""
    rng = np.random.default_rng(seed)
    sequences, labels = [], []
    for session in range(first, first + n_sessions):
        files = [f"f{session}.{number}" for number in rng.integers(0, 2, 8)]
        sequences.append([{(str(rng.choice(["cd", "ls"])), file)} for file in files])
        labels.append(["new", *np.where(np.array(files[1:]) == files[:-1], "same", "new")])
    return Atoms(sequences, background=[("own", "f0.0", "ann")]), labels


X, Y = draw_sessions(20, 0)
X_TEST, Y_TEST = draw_sessions(10, 100, seed=1)


@pytest.fixture(scope="module")
def pipeline(make):
    parameters = {"max_iter": 30} if "Linear" in type(make()).__name__ else {"n_rounds": 10}
    crf = make(order=0, **parameters)
    return make_pipeline(RelationalFeatures(MODES, window=1), crf).fit(X, Y)


def test_constants_that_training_has_not_seen(pipeline, make):
    assert pipeline.score(X_TEST, Y_TEST) == 1
    flat = make_pipeline(RelationalFeatures(window=1), make(order=0)).fit(X, Y)
    most = max(np.mean(np.concatenate(Y_TEST) == label) for label in ("new", "same"))
    assert flat.score(X_TEST, Y_TEST) <= most + 0.1


def test_what_comes_after(pipeline, tmp_path):
    features, crf = pipeline
    names = features.transform(X_TEST)
    crf.save(tmp_path / "model")
    features.save(tmp_path / "queries")
    loaded = RelationalFeatures.load(tmp_path / "queries"), load(tmp_path / "model")
    expected = pipeline.predict(X_TEST)
    for each in (
        loaded[1].predict(loaded[0].transform(X_TEST)),
        pickle.loads(pickle.dumps(pipeline)).predict(X_TEST),
        crf.predict([list(sequence) for sequence in names]),
    ):
        assert [labels.tolist() for labels in each] == [labels.tolist() for labels in expected]
    place = next(t for t, row in enumerate(names[0]) if any("& previous: " in n for n in row))
    assert "(X) & previous: " in str(crf.explain(names[0], place))
    assert any(" & " in name for name in features.importances(crf)["query"])
    write_report(crf, tmp_path / "page.html", names, Y_TEST)
    assert "(X) &" in (tmp_path / "page.html").read_text()


def test_training_with_all_that_fit_takes(make, tmp_path):
    features = RelationalFeatures(MODES, window=1)
    names, test = features.fit_transform(X), features.transform(X_TEST)
    weights = np.linspace(0.5, 2, len(names))
    missing = [[None, *labels[1:]] for labels in Y]
    path = Checkpoint(tmp_path / "kept", every=1)
    crf = make().fit(
        names, missing, sample_weight=weights, eval_set=(test, Y_TEST), checkpoint=path
    )
    lists = [list(sequence) for sequence in names]
    again = make().fit(lists, missing, sample_weight=weights, eval_set=(test, Y_TEST))
    crf.save(tmp_path / "names")
    again.save(tmp_path / "lists")
    assert (tmp_path / "names").read_bytes() == (tmp_path / "lists").read_bytes()
    make().fit(names, Y, init=crf)


def test_cross_validation(make):
    pipeline = make_pipeline(RelationalFeatures(MODES, window=1), make(order=0))
    scores = cross_val_score(pipeline, X, Y, cv=SequenceKFold(3))
    assert scores.min() > 0.5
    assert len(cross_val_predict(pipeline, X, Y, cv=SequenceKFold(2))) == len(X)
    name = "relationalfeatures__"
    search = GridSearchCV(
        pipeline, {f"{name}depth": [1, 2], f"{name}min_count": [1, 3]}, cv=SequenceKFold(2)
    ).fit(X, Y)
    assert search.best_params_[f"{name}depth"] == 2
