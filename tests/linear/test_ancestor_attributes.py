"""Attributes of ancestors equal explicit copies."""

import numpy as np
import pandas as pd
import pytest

from hedgerow import LinearCRF, ModelFileError, load, persist
from reference.parents import ancestors_of, random_parents

RNG = np.random.default_rng(2)
LENGTHS = RNG.integers(1, 9, 20)
PARENTS = [random_parents(RNG, length) for length in LENGTHS]
WORDS = [[f"w{RNG.integers(4)}" for _ in range(length)] for length in LENGTHS]
X = [[{"w": word, "n": 0.5 * len(words)} for word in words] for words in WORDS]
Y = [[str(RNG.integers(2)) for _ in range(length)] for length in LENGTHS]
NAMES = ("parent", "grandparent", "parent^3")
OPTIONS = {"max_iter": 20, "tol": 0, "n_jobs": 1}


def spell_out(x, parents, n):
    """Explicit copies of the attributes of ancestors, under other names."""
    rows = []
    for t, own in enumerate(x):
        row = {f"w:{own['w']}": 1.0, "n": own["n"]}
        for name, above in zip(NAMES, ancestors_of(parents, t, n), strict=False):
            if above is not None:
                row |= {f"w:{x[above]['w']}[{name}]": 1.0, f"n[{name}]": x[above]["n"]}
        rows.append(row)
    return rows


def fit(X=X, **options):
    return LinearCRF(**(OPTIONS | options)).fit(X, Y, parents=PARENTS)


def weights(crf):
    table = crf.weights()
    return dict(
        zip(zip(table["attribute"], table["label"], strict=True), table["weight"], strict=True)
    )


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("form", ["dicts", "frames"])
def test_they_equal_attributes_spelled_out(n, form, tmp_path):
    given = X if form == "dicts" else [pd.DataFrame(x) for x in X]
    spelled = [spell_out(x, p, n) for x, p in zip(X, PARENTS, strict=True)]
    crf, same = fit(given, ancestors=n), fit(spelled)
    ours, theirs = weights(crf), weights(same)
    assert ours.keys() == theirs.keys()
    for key, weight in theirs.items():
        assert ours[key] == pytest.approx(weight, abs=1e-6)
    found = crf.predict_proba(given, parents=PARENTS)
    np.testing.assert_allclose(found, same.predict_proba(spelled, parents=PARENTS), atol=1e-6)
    one_by_one = [crf.predict_proba([x], parents=[p]) for x, p in zip(given, PARENTS, strict=True)]
    np.testing.assert_allclose(np.concatenate(one_by_one), found, rtol=1e-12)
    crf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(given, parents=PARENTS), found)
    s = int(np.argmax(LENGTHS))
    explained = crf.explain(given[s], 0, "0", "1", parents=PARENTS[s])
    t = int(np.argmax(PARENTS[s] >= 0))
    assert "[parent]" in str(crf.explain(given[s], t, "0", "1", parents=PARENTS[s]))
    assert np.isfinite(explained.log_odds)


def test_rare_attributes_are_known_at_ancestors():
    # The word occurs once, but is the parent of three.
    X = [[{"w": "rare"}, {"w": "x"}, {"w": "x"}, {"w": "x"}], [{"w": "x"}] * 4]
    y, parents = [list("abbb"), list("aaaa")], [[-1, 0, 0, 0], [-1, 0, 0, 0]]
    crf = LinearCRF(min_count=2, ancestors=1, max_iter=50, n_jobs=1, order=0, decode="viterbi")
    crf.fit(X, y, parents=parents)
    assert "w:rare[parent]" in crf.attributes_
    assert [labels.tolist()[1:] for labels in crf.predict(X, parents=parents)] == [
        y[0][1:],
        y[1][1:],
    ]


def test_warm_start_knows_them_by_name():
    first = fit(ancestors=1)
    again = LinearCRF(**OPTIONS | {"max_iter": 1}, ancestors=2)
    again.fit(X, Y, parents=PARENTS, init=first)
    assert again.loss_ <= first.loss_ + 1e-9


def test_ancestors_that_make_no_sense_are_refused(tmp_path):
    crf = fit(ancestors=1)
    for wrong in (-1, 256, "1", None):
        state = crf.to_state()
        state.metadata["ancestors"] = wrong
        persist.write(tmp_path / "model", "LinearCRF", state)
        with pytest.raises(ModelFileError, match="the contents of the file are not valid"):
            load(tmp_path / "model")


def test_a_name_that_is_taken():
    X = [[{"w[parent]": 1.0}, {"w": 2.0}]]
    with pytest.raises(
        ValueError, match=r"X has the attribute 'w\[parent\]', a name that is meant"
    ):
        LinearCRF(ancestors=1).fit(X, [["a", "b"]], parents=[[-1, 0]])
