"""The weights of a model, and attributes of training."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from hedgerow import LinearCRF
from reference.linear import PREFIXED, PREFIXED_LABELS, fit_prefixed, make_data

X, Y = make_data(n_sequences=12)


def test_weights_exist_for_what_occurs():
    items = [[{"p": 1, "q": 0.5}, {"q": 1}], [{"r": 2}]]
    crf = LinearCRF().fit(items, [["a", "b"], ["c"]])
    table = crf.weights()
    pairs = list(zip(table["attribute"], table["label"], strict=True))
    assert pairs == [
        *[("q", "a"), ("q", "b"), ("p", "a"), ("r", "c")],  # the most frequent attribute first
        *[("(bias)", "a"), ("(bias)", "b"), ("(bias)", "c")],
    ]
    table = crf.transition_weights()
    assert list(table) == ["from", "to", "weight"]
    pairs = list(zip(table["from"], table["to"], strict=True))
    assert pairs == [(before, label) for before in "abc" for label in "abc"]
    assert crf.n_weights_ == 4 + 3 + 9


def test_all_pairs_gives_every_attribute_every_label():
    items = [[{"p": 1, "q": 0.5}, {"q": 1}], [{"r": 2}]]
    crf = LinearCRF(all_pairs=True).fit(items, [["a", "b"], ["c"]])
    assert crf.n_weights_ == 3 * 3 + 3 + 3 * 3
    assert len(crf.weights()["weight"]) == 3 * 3 + 3
    both = LinearCRF(all_pairs=True, transition_attributes=True).fit(items, [["a", "b"], ["c"]])
    assert both.n_weights_ == 3 * 3 + 3 * 9 + 3 + 3 * 3
    assert len(both.transition_weights()["weight"]) == 3 * 9 + 9
    assert both.loss_ < crf.loss_ < LinearCRF().fit(items, [["a", "b"], ["c"]]).loss_


def test_transition_attributes_have_weights_for_the_pairs_they_occur_with():
    items = [[{"p": 1}, {"q": 1}, {"p": 1, "q": 1}], [{"r": 2}]]
    crf = LinearCRF(transition_attributes=True).fit(items, [["a", "b", "b"], ["c"]])
    table = crf.transition_weights()
    assert list(table) == ["attribute", "from", "to", "weight"]
    rows = list(zip(table["attribute"], table["from"], table["to"], strict=True))
    assert rows[:9] == [("", before, label) for before in "abc" for label in "abc"]
    assert rows[9:] == [("p", "b", "b"), ("q", "a", "b"), ("q", "b", "b")]


@pytest.mark.parametrize("parameters", [{}, {"all_pairs": True}, {"order": 0}, {"order": 2}])
def test_attributes_with_a_prefix_have_weights_for_pairs_only(parameters):
    crf = fit_prefixed(LinearCRF(transition_attributes="B", **parameters))
    assert set(crf.weights()["attribute"]) == {"U1", "U2", "(bias)"}
    assert set(crf.transition_weights()["attribute"]) - {""} == {"B1"}


def test_a_prefix_that_no_attribute_has():
    with pytest.raises(
        ValueError,
        match=r"but no attribute of X has a name that begins with it \(the first one is 'B1'",
    ):
        LinearCRF(transition_attributes="Q").fit(PREFIXED, PREFIXED_LABELS)


@pytest.mark.parametrize(
    ("min_count", "attributes"),
    [(0, ["q", "p", "r"]), (1, ["q", "p", "r"]), (2, ["q", "p"]), (3, ["q"]), (4, [])],
)
def test_min_count_leaves_out_rare_attributes(min_count, attributes):
    items = [[{"p": 1, "q": 1}, {"q": 1, "zero": 0}], [{"r": 5, "p": -1}, {"q": 1}]]
    y = [["a", "b"], ["b", "a"]]
    crf = LinearCRF(min_count=min_count).fit(items, y, eval_set=(items, y))
    assert crf.attributes_ == attributes
    kept = [
        [{key: value for key, value in item.items() if key in attributes} for item in sequence]
        for sequence in items
    ]
    same = LinearCRF().fit(kept, y)
    assert crf.loss_ == same.loss_
    np.testing.assert_array_equal(crf.predict_proba(items), same.predict_proba(kept))
    assert crf.history_["eval_accuracy"][-1] == same.score(kept, y, decode="marginal")


def test_min_count_of_columns_counts_what_is_not_zero():
    columns = [np.array([[1.0, 0.0], [2.0, 3.0]]), np.array([[0.5, 0.0]])]
    crf = LinearCRF(min_count=2).fit(columns, [["a", "b"], ["b"]])
    assert crf.attributes_ == ["x0"]
    assert crf.n_features_in_ == 2
    alone = LinearCRF().fit([x[:, :1] for x in columns], [["a", "b"], ["b"]])
    np.testing.assert_array_equal(
        crf.predict_proba(columns), alone.predict_proba([x[:, :1] for x in columns])
    )


# Attributes of training.


@pytest.mark.parametrize("reg_alpha", [0.0, 0.3])
def test_max_iter_ends_training_with_a_warning(reg_alpha):
    crf = LinearCRF(max_iter=3, reg_alpha=reg_alpha)
    message = "training stopped after max_iter=3 iterations before it converged to tol=1e-05"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        crf.fit(X, Y)
    assert caught[0].filename == __file__
    assert crf.n_iter_ == 3
    assert crf.score(X, Y) > 0.5


def test_min_count_counts_a_repeated_attribute_once_a_position():
    crf = LinearCRF(min_count=2).fit([[["n", "n"], ["m"]], [["m"]]], [["a", "b"], ["b"]])
    assert crf.attributes_ == ["m"]


def test_no_weight_is_learnt_for_accuracy():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3, 4, 2)), rng.choice(list("abc"), (3, 4)).tolist()
    crf = LinearCRF(objective="accuracy", reg_alpha=4.0, order=0)
    message = "no weights were learned: .* for the weights of attribute 'x.'; check the penalties"
    with pytest.warns(ConvergenceWarning, match=message):
        crf.fit(list(X), y)
    assert crf.n_iter_ == 0
