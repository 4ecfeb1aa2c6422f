"""The decoder of a model, and that all methods that label positions use it."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score

import hedgerow
from hedgerow import LinearCRF, TreeCRF
from hedgerow.decoding import DECODERS
from hedgerow.scorers import make_position_scorer
from reference.estimators import refuses
from reference.linear import make_data

X, Y = make_data(n_sequences=30, longest=6)
# Little is known of these: the decoders differ.
OTHERS, TRUTH = make_data(n_sequences=60, longest=9, seed=1)
NEAR = {"reg_lambda": 30.0, "order": 2}


@pytest.fixture(scope="module")
def both(make):
    """A model, and its labels of other sequences by each decoder, which differ."""
    crf = make(**NEAR).fit(X, Y)
    found = {decode: crf.predict(OTHERS, decode=decode) for decode in DECODERS}
    assert np.hstack(found["viterbi"]).tolist() != np.hstack(found["marginal"]).tolist()
    return crf, {decode: [labels.tolist() for labels in rows] for decode, rows in found.items()}


def spread(found):
    return "a" * len(found[0])


def labels_of(crf):
    return [labels.tolist() for labels in crf.predict(OTHERS)]


@pytest.mark.parametrize("decode", DECODERS)
def test_a_decoder_that_is_asked_for(make, both, decode, tmp_path):
    crf = make(decode=decode, **NEAR).fit(X, Y)
    crf.save(tmp_path / "model")
    for model in (crf, hedgerow.load(tmp_path / "model")):
        assert (model.decode, model.decode_) == (decode, decode)
        assert labels_of(model) == both[1][decode]
    assert clone(crf).decode == decode
    assert f"decode='{decode}'" in repr(crf)


@pytest.mark.parametrize("decode", DECODERS)
def test_the_better_one_on_the_last_eval_set(make, both, decode, tmp_path):
    other = [(OTHERS, TRUTH), (OTHERS, both[1][decode])]
    crf = make(**NEAR).fit(X, Y, eval_set=other)
    crf.save(tmp_path / "model")
    for model in (crf, hedgerow.load(tmp_path / "model")):
        assert (model.decode, model.decode_) == ("auto", decode)
        assert labels_of(model) == both[1][decode]
        assert model.score(OTHERS, both[1][decode]) == 1


def test_everything_that_labels_uses_it(both):
    crf, labels = both
    for decode, rows in labels.items():
        assert crf.score(OTHERS, rows, decode=decode) == 1
        for metric in (accuracy_score, "accuracy"):
            assert make_position_scorer(metric, decode=decode)(crf, OTHERS, rows) == 1
    s, t = next(
        (s, t)
        for s, (one, other) in enumerate(zip(*labels.values(), strict=True))
        for t in range(len(one))
        if one[t] != other[t]
    )
    for decode, rows in labels.items():
        assert crf.explain(OTHERS[s], t, decode=decode).label == rows[s][t]
    own = crf.explain(OTHERS[s], t)
    assert own.label == labels[crf.decode_][s][t]
    assert crf.score(OTHERS, labels[crf.decode_]) == 1


@pytest.mark.parametrize("decode", ["auto", *DECODERS])
@pytest.mark.parametrize("rules", [{}, {"forbidden": [("a", "b")]}])
def test_one_decoder_in_a_learning_curve(decode, rules):
    legal = [[*re.sub("ab+", spread, "".join(labels))] for labels in Y] if rules else Y
    crf = TreeCRF(n_rounds=4, decode=decode, order=2, **rules).fit(X, legal, eval_set=(X, legal))
    assert crf.history_["accuracy"] == crf.history_["eval_accuracy"]
    used = "marginal" if decode == "auto" else decode
    assert crf.history_["accuracy"][-1] == crf.score(X, legal, decode=used)


def test_the_curve_of_the_margin_is_by_viterbi():
    crf = LinearCRF(objective="max_margin").fit(X, Y, eval_set=(OTHERS, TRUTH))
    assert crf.history_["eval_accuracy"][-1] == crf.score(OTHERS, TRUTH, decode="viterbi")


def test_a_scorer_of_probabilities_decodes_nothing():
    message = "decode is 'marginal', but the scorer compares probabilities, which are not decoded"
    options = {"response_method": "predict_proba", "decode": "marginal"}
    refuses(ValueError, message, make_position_scorer, accuracy_score, **options)
    refuses(ValueError, message, make_position_scorer, "neg_log_loss", decode="marginal")
    message = "decode is 'best'; expected 'viterbi', 'marginal' or None"
    refuses(ValueError, message, make_position_scorer, accuracy_score, decode="best")
