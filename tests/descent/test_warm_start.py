"""Training that starts from another model."""

from dataclasses import replace

import numpy as np
import pytest

from hedgerow import LinearCRF
from hedgerow.descent.warm_start import start_from
from hedgerow.linear.weights import LinearWeights
from hedgerow.potentials import AttributeWeights, PatternWeights
from reference.descents import build_loss
from reference.linear import make_data, to_dicts

X, Y = make_data(n_sequences=15)
KINDS = pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"transition_attributes": True},
        {"reg_alpha": 0.2},
        {"all_pairs": True},
        {"order": 2},
        {"order": 2, "pattern_attributes": True},
    ],
    ids=lambda parameters: "".join(parameters) or "plain",
)


@KINDS
def test_a_model_at_its_minimum_stays_there(parameters):
    crf = LinearCRF(tol=0, max_iter=500, **parameters).fit(X, Y)
    again = LinearCRF(tol=0, max_iter=500, **parameters).fit(X, Y, init=crf)
    assert again.n_iter_ <= 2
    assert again.loss_ == pytest.approx(crf.loss_, rel=1e-12)
    np.testing.assert_allclose(again.predict_proba(X), crf.predict_proba(X), atol=1e-6)


@KINDS
def test_training_in_two_parts_comes_to_the_same_end(parameters):
    half = LinearCRF(max_iter=4, tol=0, **parameters).fit(X, Y)
    whole = LinearCRF(tol=1e-9, **parameters).fit(X, Y)
    rest = LinearCRF(tol=1e-9, **parameters).fit(X, Y, init=half)
    assert rest.history_["loss"][0] < half.loss_
    assert rest.loss_ == pytest.approx(whole.loss_, rel=1e-6)


@pytest.mark.parametrize("all_pairs", [False, True])
def test_every_weight_that_both_models_have_is_copied(all_pairs):
    # The new model lacks x1 and the label "a", and has one more of each.
    init = LinearCRF(reg_lambda=0.1, transition_attributes=True).fit(to_dicts(X), Y)
    new = LinearCRF(all_pairs=all_pairs, transition_attributes=True)
    items = [[{"x2": 1, "new": 1, "x0": 1}] * len(labels) for labels in Y]
    labels = [["z" if label == "a" else label for label in labels] for labels in Y]
    _, data, _, layout = build_loss(new, items, labels)
    own, patterns = np.split(start_from(init.model_, data, layout), [layout.n_weights])
    weights = LinearWeights.from_vector(own, layout)
    potentials = AttributeWeights(weights, data.index), PatternWeights(patterns)
    new.model_ = replace(
        init.model_,
        labels=data.labels,
        index=data.index,
        grammar=data.grammar,
        trellis=data.trellis,
        potentials=potentials,
    )
    old, copied = table_of(init), table_of(new)
    assert len(old.keys() & copied.keys()) > 10
    assert copied == {key: old.get(key, 0.0) for key in copied}


def table_of(crf):
    """All weights, by the names of what they belong to."""
    weights, transitions = crf.weights(), crf.transition_weights()
    keys = [
        *zip(weights["attribute"], weights["label"], strict=True),
        *zip(*(transitions[name] for name in ("attribute", "from", "to")), strict=True),
    ]
    values = np.concatenate([weights["weight"], transitions["weight"]])
    return dict(zip(keys, values.tolist(), strict=True))


def test_the_other_model_may_have_nothing_in_common():
    numbers = [[len(label) + ord(label) for label in labels] for labels in Y]
    init = LinearCRF(transition_attributes=True).fit([[{"other": 1}] * 2], [[1, 2]])
    crf = LinearCRF(transition_attributes=True).fit(to_dicts(X), Y, init=init)
    assert crf.loss_ == LinearCRF(transition_attributes=True).fit(to_dicts(X), Y).loss_
    assert LinearCRF().fit(X, numbers, init=crf).loss_ == LinearCRF().fit(X, numbers).loss_
