"""Relational features: names, words, limits, files, and mistakes."""

import json
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from hedgerow import LinearCRF, ModelFileError, TreeCRF
from hedgerow.relational import At, Atoms, RelationalFeatures
from hedgerow.relational.joins import Joiner

SESSIONS = Atoms(
    [
        [{("cd", "thesis")}, {("ls", "thesis")}, {("ls", "a.tex")}, {("rm", "a.tex", "b & c")}],
        [{("cd", "music")}, {("ls", "x.mp3")}],
    ],
    background=[("ext", "a.tex", "tex"), ("ext", "x.mp3", "mp3"), ("ext", "y.tex", "tex")],
)
MODES = ["cd(+t,+-f)", "ls(+t,+-f)", "ls(+t,#f)", "ext(+f,#e)", "rm(+t,#f,#f)", "rm(+t,+f,-f)"]


def fitted(**parameters):
    return RelationalFeatures(MODES, **{"window": 1, "depth": 2} | parameters).fit(SESSIONS)


def test_names_and_words():
    table = fitted(depth=3).queries()
    words = dict(zip(table["query"], table["words"], strict=True))
    expected = {
        "ls=a.tex": "this position has ls=a.tex",
        "previous: ls=thesis": "the previous position has ls=thesis",
        "ls(X) & previous: cd(X)": "this position has ls(X) and the previous position has cd(X)",
        "ls(X) & ext(X)=tex": "this position has ls(X) and ext(X)=tex",
        'rm("a.tex","b & c")': 'this position has rm("a.tex","b & c")',
        "next: rm(X,Y) & ls(X) & ext(X)=tex": None,
    }
    for name, sentence in expected.items():
        name = name if sentence else "ls(X) & next: rm(X,Y) & ext(X)=tex"
        sentence = sentence or (
            "this position has ls(X) and the next position has rm(X,Y) and ext(X)=tex"
        )
        assert words[name] == sentence
    assert len(words) == len(table["query"]) == fitted(depth=3).n_queries_
    assert dict(zip(table["query"], table["count"], strict=True))["ls(X)"] == 3
    assert dict(zip(table["query"], table["n_literals"], strict=True))["ls(X) & ext(X)=tex"] == 2


def test_names_of_positions():
    X = Atoms(
        [
            [[("w", "a"), ("to", At(1))], [("w", "b"), ("to", At(2))], [("w", '"a" & b')]],
            [[("w", 'q"')]],
        ],
        per_sequence=[[("topic", "x")], [("topic", "y")]],
    )
    modes = ["w(+t,#w)", "to(+t,-t)", "to(+t,+t)", "topic(#s)", "w(+t,-w)"]
    names = set(RelationalFeatures(modes, window=2, depth=3).fit(X).get_feature_names_out())
    assert names >= {
        "topic=x",
        "to(next)",
        "2 before: w=a",
        "2 after: w=" + json.dumps('"a" & b'),
        'w=q"',
        "to(P) & P: w=b",
        "to(P) & P: to(Q)",
        "to(P) & P: to(Q) & Q: w=" + json.dumps('"a" & b'),
        "to(P) & P: to(2 after)",
    }
    table = RelationalFeatures(modes, depth=3).fit(X).queries()
    assert "this position has to(P) and position P has to(Q) and w=b" in table["words"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_as_frames(library):
    features = fitted().set_output(transform=library)
    assert type(features.queries()).__module__.startswith(library)
    assert type(clone(features).fit(SESSIONS).queries()).__module__.startswith(library)
    assert list(features.queries()["query"]) == list(features.get_feature_names_out())
    crf = LinearCRF(max_iter=2, tol=0).fit(features.transform(SESSIONS), [list("abab"), list("ab")])
    assert type(features.importances(crf)).__module__.startswith(library)
    make_pipeline(features, crf).set_output(transform="default")
    assert type(features.queries()).__name__ == "Table"


def test_a_ground_query_for_each_fact_in_order():
    X = [[[("b", "1"), ("a", "2"), ("b", "0"), ("c",)], [("a", "0"), ("b", "0")]], [[]]]
    names = RelationalFeatures().fit_transform(X)
    assert list(names) == [[("b=1", "a=2", "b=0", "c"), ("a=0", "b=0")], [()]]


@pytest.mark.parametrize(
    "crf", [LinearCRF(max_iter=5, tol=0), TreeCRF(n_rounds=3, min_child_weight=0)]
)
def test_ground_facts_are_attributes(crf, tmp_path):
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 4, (length, 3)).tolist() for length in (5, 3, 6, 4)]
    y = [["A" if sum(row) > 4 else "B" for row in x] for x in rows]
    atoms = [[list(zip(["one", "two", "x"], row, strict=True)) for row in x] for x in rows]
    dicts = [[{f"{name}={value}": True for name, value in row} for row in x] for x in atoms]
    clone(crf).fit(dicts, y).save(tmp_path / "dicts")
    features = RelationalFeatures()
    clone(crf).fit(features.fit_transform(atoms), y).save(tmp_path / "atoms")
    assert (tmp_path / "dicts").read_bytes() == (tmp_path / "atoms").read_bytes()


def test_batches_and_unseen_constants():
    features = fitted(depth=3)
    whole = list(features.transform(SESSIONS))
    assert whole == [features.transform([sequence])[0] for sequence in SESSIONS]
    (unseen,) = features.transform(
        Atoms([[{("cd", "new")}, {("ls", "new")}]], background=[("ext", "new", "none")])
    )
    assert "ls(X) & previous: cd(X)" in unseen[1]
    assert not any("=" in name for name in unseen[1])


def test_fewer_bindings():
    """The first ones in the order of the facts, whatever else is in the data."""
    X = [[[("a", "1"), ("a", "2"), ("b", "2")], [("a", "2"), ("a", "1"), ("b", "2")]]]
    modes = ["a(+t,-c)", "b(+t,+c)"]
    features = RelationalFeatures(modes, max_bindings=1)
    assert list(features.fit_transform(X)[0]) == [("a(X)",), ("a(X)", "a(X) & b(X)")]
    more = [[[("a", "2"), ("a", "3")]], *X]
    assert features.transform(more)[1] == features.transform(X)[0]
    assert "a(X) & b(X)" in RelationalFeatures(modes, max_bindings=2).fit_transform(X)[0][0]
    # Bindings are those of a query: with its constants.
    both = RelationalFeatures(["a(+t,#c)"], max_bindings=1)
    assert list(both.fit_transform(X)[0]) == [("a=1", "a=2"), ("a=2", "a=1")]


def test_blocks_of_rows_change_nothing(monkeypatch):
    expected = list(fitted(depth=3).transform(SESSIONS))
    monkeypatch.setattr("hedgerow.relational.joins.BLOCK", 2)
    features = fitted(depth=3)
    assert list(features.transform(SESSIONS)) == list(features.fit_transform(SESSIONS)) == expected


@pytest.mark.parametrize("estimator", [LinearCRF, TreeCRF])
def test_importances(estimator):
    features = fitted()
    names = features.transform(SESSIONS)
    small = (
        {"min_child_weight": 0, "n_rounds": 2}
        if estimator is TreeCRF
        else {"max_iter": 3, "tol": 0}
    )
    crf = estimator(**small).fit(names, [list("abab"), list("ab")])
    by_query = features.importances(crf)
    assert list(by_query) == ["query", "words", "importance"]
    assert (np.diff(by_query["importance"]) <= 0).all()
    by_predicate = features.importances(crf, by="predicate")
    assert set(by_predicate["predicate"]) <= {"cd", "ls", "ext", "rm"}
    np.testing.assert_allclose(by_predicate["importance"].sum(), by_query["importance"].sum())
    with pytest.raises(ValueError, match="by is 'label'; expected 'query' or 'predicate'"):
        features.importances(crf, by="label")
    with pytest.raises(TypeError, match="crf is of type list; expected a fitted TreeCRF or Linear"):
        features.importances([])


def test_files(tmp_path):
    features, path = fitted(depth=3), tmp_path / "queries"
    features.save(path)
    loaded = RelationalFeatures.load(path)
    assert list(loaded.transform(SESSIONS)) == list(features.transform(SESSIONS))
    assert loaded.get_params() == features.get_params()
    assert list(loaded.queries()["query"]) == list(features.queries()["query"])
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert list(loaded.fit_transform(SESSIONS)) == list(features.transform(SESSIONS))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("format"), "relational features: its format is not hedgerow-relational"),
        (lambda d: d.update(version=2), "is of version 2 of its format, but this hedgerow reads"),
        (lambda d: d.pop("forms"), "the file of relational features is damaged: KeyError"),
        (lambda d: d["counts"].pop(), "is damaged: the numbers of its queries are not 0, 1"),
        (
            lambda d: d["steps"][0].update(types=["f", "g"]),
            "is damaged: the literals of a query are not",
        ),
        (
            lambda d: d["steps"][0].update(terms=[[7, 0]]),
            "is damaged: the literals of a query are not",
        ),
        (lambda d: d["steps"][0].update(terms=3), "is damaged: TypeError"),
    ],
)
def test_damaged_files(change, message, tmp_path):
    path = tmp_path / "queries"
    fitted().save(path)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=message):
        RelationalFeatures.load(path)
    path.write_bytes(b"{")
    with pytest.raises(ModelFileError, match="not a file of relational features"):
        RelationalFeatures.load(path)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"depth": 0}, "depth is 0; expected an integer from 1 to 6"),
        ({"min_count": 0.5}, "min_count is 0.5; expected an integer of at least 1"),
        ({"window": -1}, "window is -1; expected an integer from 0 to 1000"),
        ({"max_variables": -1}, "max_variables is -1; expected an integer of at least 0"),
        ({"max_bindings": 0}, "max_bindings is 0; expected an integer of at least 1"),
        ({"max_queries": 0}, "max_queries is 0; expected an integer of at least 1"),
        ({"min_count": 9}, r"no query of modes cd\(\+t,\+-f\), .* holds at 9 positions"),
        (
            {"max_queries": 10},
            r"at least \d+ queries hold at 1 position or more \(.* with 1 literal.*; the last \d+ "
            r"of the form '.*'\), but max_queries is 10; raise min_count, lower depth or window",
        ),
    ],
)
def test_mistakes_in_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        fitted(**parameters)


def test_mistakes_in_prediction():
    with pytest.raises(NotFittedError):
        RelationalFeatures().transform(SESSIONS)
    with pytest.raises(
        ValueError, match="X has no facts of 'ext', which fit had in the background"
    ):
        fitted().transform([[{("ls", "a.tex")}]])
    changed = Atoms([[{("ls", "a.tex", "b")}]], background=[("ext", "a", "b")])
    with pytest.raises(ValueError, match=r"facts of X are of the form ls\(t,c,c\), but fit had ls"):
        fitted().transform(changed)


def test_a_fit_that_fails_leaves_the_queries_as_they_were():
    features = fitted()
    before = list(features.transform(SESSIONS))
    with pytest.raises(ValueError, match="max_queries is 1"):
        features.set_params(max_queries=1).fit(SESSIONS)
    assert list(features.transform(SESSIONS)) == before


def test_ctrl_c_leaves_the_queries_as_they_were(monkeypatch):
    features = fitted()
    before, calls = list(features.transform(SESSIONS)), []
    join = Joiner.join

    def press(*arguments):
        calls.append(arguments)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return join(*arguments)

    monkeypatch.setattr(Joiner, "join", press)
    with pytest.raises(KeyboardInterrupt):
        features.set_params(depth=3).fit(SESSIONS)
    assert list(features.transform(SESSIONS)) == before


def test_threads_may_share_them():
    features = fitted(depth=3)
    expected, found = list(features.transform(SESSIONS)), []
    threads = [
        threading.Thread(target=lambda: found.append(list(features.transform(SESSIONS))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
