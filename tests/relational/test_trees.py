"""Relational trees: splits on queries, refined along the path, against matching by enumeration."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from hedgerow import Checkpoint, LinearCRF, ModelFileError, TreeCRF, load, persist
from hedgerow.data_warning import DataWarning
from hedgerow.model_selection import SequenceKFold, cross_val_predict
from hedgerow.relational import At, Atoms, RelationalFeatures
from hedgerow.relational.mode import Mode
from hedgerow.relational.queries_state import pack_queries
from hedgerow.relational.refiner import Refiner
from hedgerow.report import write_report
from hedgerow.state import State
from reference.relational_databases import databases, facts_of, found_by
from reference.relational_queries import canonical, enumerate_queries

LANGUAGES = [
    ["a(+t,-c)", "a(+t,+c)", "is(+c,#c)"],
    ["a(+t,+-c)", "is(+c,-c)", "is(-c,+c)"],
    ["link(+t,-t)", "link(-t,+t)", "a(+t,#c)"],
    ["link(+t,-t)", "a(+t,+-c)", "first(+t)"],
    ["next(+t,-t)", "prev(+t,-t)", "a(+t,#c)"],
]
GROWING = {"min_child_weight": 0.0, "order": 0, "decode": "marginal"}


def literals_of(query):
    """The literals of a query in canonical form."""
    return [(predicate, tuple(terms)) for predicate, terms in eval(query)]


def extends(query, refined, modes):
    """Whether a query is another one with one more literal that modes allow there."""
    literals = literals_of(query)
    for place, (predicate, terms) in enumerate(literals):
        rest = literals[:place] + literals[place + 1 :]
        bound = {term for _, others in rest for term in others if term[0] == "variable"}
        if rest and canonical(rest) == refined and bound & set(terms):
            for mode in modes:
                signs = [sign for sign, _ in mode.arguments]
                if mode.predicate == predicate and all(
                    sign == "#"
                    if kind == "constant"
                    else "+" in sign
                    if kind == "near" or (kind, what) in bound
                    else "-" in sign
                    for (kind, what), sign in zip(terms, signs, strict=True)
                ):
                    return True
    return False


def check_weights(crf, where, X):
    """Every node of every tree has the examples whose queries say so."""
    holding = dict(zip(crf.queries_.get_feature_names_out(), where.values(), strict=True))
    table = crf.trees()
    columns = (table[name] for name in ("node", "feature", "left", "right", "weight"))
    for node, feature, left, right, weight in zip(*columns, strict=True):
        if node == 0:
            members = {0: set(range(sum(map(len, X))))}
        assert weight == len(members[node])
        if feature:
            members[left] = members[node] & holding[feature]  # left says yes
            members[right] = members[node] - holding[feature]


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_splits_against_matching_by_enumeration(data):
    sequences, background, own = data.draw(databases())
    # Every predicate occurs, and there are enough positions for a split.
    sequences.append([[("a", "u"), ("link", At(1)), ("first",)], [("a", "u"), ("a", "v")]])
    background.append(("is", "u", "v"))
    own.append([])
    modes = data.draw(st.sampled_from(LANGUAGES))
    X = Atoms(sequences, background=background, per_sequence=own)
    read = tuple(map(Mode.parse, modes))
    facts, sequence_of = facts_of(sequences, background, own)
    pairs = [(mode.predicate, [tuple(argument) for argument in mode.arguments]) for mode in read]
    limits = {"window": 0, "max_variables": 3, "min_count": 1}
    queries = RelationalFeatures(modes, depth=data.draw(st.integers(1, 2)), **limits)
    labels = data.draw(st.lists(st.sampled_from("AB"), min_size=len(sequence_of)))
    y = X.cut(["A", "B", *labels][: len(sequence_of)])
    crf = TreeCRF(
        queries=queries, max_literals=3, n_rounds=2, newton=False, trim=0, max_depth=3, **GROWING
    )
    crf.fit(X, y)
    expected = enumerate_queries(pairs, facts, sequence_of, depth=3, **limits)
    where = found_by(crf.queries_, crf.queries_.transform(X))
    assert where.items() <= expected.items()
    check_weights(crf, where, X)
    by_number = list(where)
    for number in crf.queries_.refined_:
        refined = by_number[number]
        for query, positions in expected.items():
            if positions < where[refined] and extends(query, refined, read):
                assert query in where


def test_a_constant_may_be_added_that_sorts_before_that_of_the_query():
    facts = [("is", "u", "c"), ("is", "u", "d"), ("is", "v", "d")]
    X = Atoms([[[("a", "u")], [("a", "v")], [("a", "w")]]], background=facts)
    queries = RelationalFeatures(["a(+t,-c)", "is(+c,#c)"], depth=2, window=0, min_count=1)
    _, found = queries.learn(X)
    refiner = Refiner(queries, found, 3)
    (name,) = (name for name in refiner.queries if "d" in name)
    (refined,) = refiner.refine(name, np.array([0, 1], np.int32))
    assert refined.name == f"{name.replace('d', 'c')} & {name.split(' & ')[1]}"
    assert refined.positions.tolist() == [0]


def draw_sessions(n_sessions, first, seed=0):
    """The label says whether the file is that of two commands before, and its owner is Ann."""
    rng = np.random.default_rng(seed)
    sequences, own, labels = [], [], []
    for session in range(first, first + n_sessions):
        files = [f"f{session}.{number}" for number in rng.integers(0, 3, 10)]
        owners = {file: str(rng.choice(["ann", "bob"])) for file in sorted(set(files))}
        sequences.append([[("use", file)] for file in files])
        own.append([("own", file, owner) for file, owner in owners.items()])
        same = [t > 1 and files[t - 2] == file for t, file in enumerate(files)]
        labels.append(
            [
                "hot" if is_same and owners[file] == "ann" else "cold"
                for is_same, file in zip(same, files, strict=True)
            ]
        )
    return Atoms(sequences, per_sequence=own), labels


X, Y = draw_sessions(25, 0)
X_TEST, Y_TEST = draw_sessions(25, 100, seed=1)
# One literal at a time: what is asked about a file depends on the splits above.
QUERIES = RelationalFeatures(["use(+t,-f)", "use(+t,+f)", "own(+f,#o)"], depth=1, window=2)

FOUND = "use(X) & 2 before: use(X) & own(X)=ann"


@pytest.fixture(scope="module")
def crf():
    return TreeCRF(queries=QUERIES, n_rounds=6, **GROWING).fit(X, Y)


def bytes_of(crf, path):
    crf.save(path)
    return path.read_bytes()


def test_variables_are_bound_along_the_path(crf):
    assert crf.score(X_TEST, Y_TEST) == 1
    flat = TreeCRF(queries=QUERIES, max_literals=1, n_rounds=6, **GROWING).fit(X, Y)
    assert flat.score(X_TEST, Y_TEST) < 0.95
    assert crf.trees(round=1, label="hot")["feature"][0] == FOUND


def test_what_comes_after(crf, tmp_path):
    file = bytes_of(crf, tmp_path / "model")
    loaded = load(file)
    expected = crf.predict_proba(X_TEST)
    for same in (loaded, pickle.loads(pickle.dumps(crf))):
        np.testing.assert_array_equal(same.predict_proba(X_TEST), expected)
        assert bytes_of(same, tmp_path / "again") == file
    assert loaded.queries.get_params() == QUERIES.get_params()
    number = next(number for number, y in enumerate(Y_TEST) if "hot" in y)
    assert FOUND in str(crf.explain(X_TEST[number], Y_TEST[number].index("hot")))
    assert FOUND in list(crf.queries_.queries()["query"])
    assert {"use", "own"} == set(crf.queries_.importances(crf, by="predicate")["predicate"])
    assert FOUND in {feature["name"] for feature in json.loads(crf.to_json())["features"]}
    write_report(crf, tmp_path / "page.html", X_TEST, Y_TEST)
    assert "2 before: use(X)" in (tmp_path / "page.html").read_text()
    assert len(cross_val_predict(clone(crf), X, Y, cv=SequenceKFold(2))) == len(X)


def test_the_number_of_threads_and_resuming_change_nothing(crf, tmp_path):
    def fit(n_rounds, **more):
        return TreeCRF(queries=QUERIES, n_rounds=n_rounds, n_jobs=2, **GROWING).fit(X, Y, **more)

    expected = crf.predict_proba(X_TEST)
    np.testing.assert_array_equal(fit(6).predict_proba(X_TEST), expected)
    np.testing.assert_array_equal(fit(4, init=fit(2)).predict_proba(X_TEST), expected)
    watched = {"eval_set": (X_TEST, Y_TEST)}
    path = Checkpoint(tmp_path / "kept", every=1)
    fit(2, checkpoint=path, **watched)
    resumed = fit(6, checkpoint=path, **watched)
    whole = fit(6, **watched)
    assert bytes_of(resumed, tmp_path / "one") == bytes_of(whole, tmp_path / "two")
    assert resumed.history_["eval_accuracy"][-1] == 1


def test_a_base_that_refines_queries():
    crf = TreeCRF(base=TreeCRF(n_rounds=6, **GROWING), queries=QUERIES, n_rounds=1, **GROWING)
    crf.fit(X, Y)
    assert crf.base_.queries_.n_queries_ > 5
    assert crf.score(X_TEST, Y_TEST) == crf.base_.score(X_TEST, Y_TEST) == 1


def test_ground_facts_are_attributes(make):
    sequences = [[[("w", w), ("n", len(w))] for w in text.split()] for text in ("a bb a", "bb c")]
    y = [list("xyx"), list("yz")]
    attributes = [[[f"{name}={value}" for name, value in p] for p in s] for s in sequences]
    facts, names = make(window=1) if make is TreeCRF else make(), make()
    names.set_params(**{k: v for k, v in facts.get_params(deep=False).items() if k == "window"})
    facts.fit(Atoms(sequences), y)
    names.fit(attributes, y)
    ours, theirs = facts.to_state(), names.to_state()
    del ours.tensors["queries"]
    assert ours.tensors.keys() == theirs.tensors.keys()
    for name, array in ours.tensors.items():
        np.testing.assert_array_equal(array, theirs.tensors[name])
    np.testing.assert_array_equal(
        facts.predict_proba(Atoms(sequences)), names.predict_proba(attributes)
    )


def test_trees_of_one_split_are_those_of_attributes():
    queries = clone(QUERIES).set_params(depth=2)
    parameters = {"n_rounds": 4, "max_depth": 1, **GROWING}
    ours = TreeCRF(queries=queries, **parameters).fit(X, Y)
    theirs = TreeCRF(**parameters).fit(queries.fit_transform(X), Y)
    assert list(ours.trees()["question"]) == list(theirs.trees()["question"])


def test_no_more_queries_than_allowed():
    queries = clone(QUERIES).set_params(max_queries=8)
    with pytest.warns(DataWarning, match=r"there are \d+ queries, and max_queries is 8: no more"):
        crf = TreeCRF(queries=queries, n_rounds=3, **GROWING).fit(X, Y)
    assert crf.queries_.n_queries_ >= 8


def test_weights_of_queries():
    queries = clone(QUERIES).set_params(depth=3)
    crf = LinearCRF(queries=queries, order=0).fit(X, Y)
    assert crf.score(X_TEST, Y_TEST) == 1
    assert FOUND in crf.queries_.importances(crf)["query"][:3]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"monotone_constraints": {}}, "monotone_constraints is {}, which cannot be combined"),
        ({"interaction_constraints": "pairwise"}, "interaction_constraints is 'pairwise', which"),
        ({"missing": "impute"}, "missing is 'impute', which cannot be combined with trees that"),
        ({"transitions": "trees", "order": 1}, "set max_literals=1 to turn this off"),
    ],
)
def test_what_cannot_be_combined_with_refinement(parameters, message):
    with pytest.raises(ValueError, match=message):
        TreeCRF(queries=QUERIES, **GROWING | parameters).fit(X, Y)
    TreeCRF(queries=QUERIES, max_literals=1, n_rounds=1, **GROWING | parameters).fit(X, Y)


def test_models_without_facts_have_no_queries():
    crf = LinearCRF().fit([[["a"], ["b"]]], [["x", "y"]])
    with pytest.raises(AttributeError, match="X contained no facts, so there are no queries"):
        _ = crf.queries_


def test_a_checkpoint_of_other_queries(tmp_path):
    path = tmp_path / "kept"
    other = clone(QUERIES).set_params(window=1)
    TreeCRF(queries=other, n_rounds=1, **GROWING).fit(X, Y, checkpoint=Checkpoint(path, every=1))
    with pytest.raises(ValueError, match="belongs to another training run"):
        TreeCRF(queries=QUERIES, **GROWING).fit(X, Y, checkpoint=Checkpoint(path))


def test_an_interrupt_leaves_the_estimator_as_it_was(monkeypatch):
    crf = TreeCRF(queries=QUERIES, n_rounds=1, **GROWING).fit(X, Y)
    expected = crf.predict_proba(X_TEST)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Refiner, "refine", interrupt)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X_TEST, Y_TEST)
    np.testing.assert_array_equal(crf.predict_proba(X_TEST), expected)


def test_a_checkpoint_with_damaged_queries(tmp_path):
    path = tmp_path / "kept"

    def fit(n_rounds):
        crf = TreeCRF(queries=QUERIES, n_rounds=n_rounds, **GROWING)
        return crf.fit(X, Y, checkpoint=Checkpoint(path, every=1))

    other = LinearCRF(queries=clone(QUERIES).set_params(window=1), max_iter=1, tol=0).fit(X, Y)
    fit(1)
    _, state = persist.read(path.read_bytes())
    for more in ({}, pack_queries(other.queries_).tensors):
        tensors = {name: array for name, array in state.tensors.items() if name != "queries"}
        persist.write(path, persist.CHECKPOINT, State(tensors | more, state.metadata))
        with pytest.raises(
            ModelFileError, match="the contents of the file are not valid: its quer"
        ):
            fit(2)


def test_damaged_numbers_of_refined_queries(crf):
    document = json.loads(crf.queries_.to_bytes())
    document["refined"] = [len(document["counts"])]
    with pytest.raises(ModelFileError, match="a refined query does not exist"):
        RelationalFeatures.from_bytes(json.dumps(document).encode())
