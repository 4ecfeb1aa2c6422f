"""Explanations: every number of `explain`, against a slow model and the list of all labellings."""

from dataclasses import replace
from typing import Any

import numpy as np

from abuse.differential import Question, questions
from abuse.kind import Case, Kind
from reference.automata import Enumeration, PatternChain, enumerate_patterns, list_labellings
from reference.fitted_model import count_positions
from reference.linear import NaiveModel


def check_explain(case: Case) -> None:
    """`explain`: all its parts recomputed, and their sum."""
    question = Question.of(case)
    seed = case["training"]["data"]["seed"]
    s = seed % len(question.xs)
    exact, x = question.exact[s], question.xs[s]
    position = seed // 7 % count_positions(x)
    if np.count_nonzero(exact.marginals[position]) < 2:
        return
    known = None if question.known is None else question.known[s]
    asked = question.asked.ask_parameters | {"known": question.parameters.get("known")}
    predicted = question.split(question.crf.predict(question.asked.X, **asked))[s]
    asked_about, _ = question.asked.sequences()[s]
    explanation = question.crf.explain(asked_about, position, known=known)
    codes = question.codes(predicted)
    check_explanation(question.model, exact, x, codes, explanation, 8 * question.slack)


def check_explanation(
    model: NaiveModel,
    exact: Enumeration,
    x: Any,
    codes: tuple[int, ...],
    explanation: Any,
    slack: float,
) -> None:
    """Every part of an explanation; `codes` are the labels that are predicted."""
    position = explanation.position
    label, against = model.codes([explanation.label, explanation.against])
    assert label == codes[position]
    others = np.delete(exact.marginals[position], label)
    assert exact.marginals[position, against] >= others.max() - slack
    log_odds = log_odds_of(exact, position, label, against)
    np.testing.assert_allclose(explanation.log_odds, log_odds, rtol=0, atol=slack)
    probs = explanation.prob, explanation.prob_against
    expected = exact.marginals[position, [label, against]]
    np.testing.assert_allclose(probs, expected, rtol=0, atol=slack)
    table = explanation.to_table()
    np.testing.assert_allclose(table["contribution"].sum(), log_odds, rtol=0, atol=slack)
    check_features(model, x, codes, explanation, slack)
    check_transitions(model, exact, x, codes, explanation, slack)


def log_odds_of(exact: Enumeration, position: int, label: int, against: int) -> float:
    """Log of the ratio of the probabilities of two labels."""
    labels = exact.chain.labellings[:, position]
    sums = [np.logaddexp.reduce(exact.scores[labels == k]) for k in (label, against)]
    return sums[0] - sums[1]


def check_features(
    model: NaiveModel, x: Any, codes: tuple[int, ...], explanation: Any, slack: float
) -> None:
    """Contributions of features; those of 0 may be listed or not."""
    before = [model.classes[code] for code in codes[: explanation.position]]
    bias, added = model.contributions(
        x, explanation.position, explanation.label, explanation.against, before
    )
    context = model.context(before, explanation.label)
    np.testing.assert_allclose(explanation.bias, bias, rtol=0, atol=slack)
    features = explanation.feature_table
    keys = list(zip(features["feature"], features["offset"].tolist(), strict=True))
    assert len(set(keys)) == len(keys)
    found = dict(zip(keys, features["contribution"].tolist(), strict=True))
    for key in found.keys() | added.keys():
        np.testing.assert_allclose(found.get(key, 0.0), added.get(key, 0.0), rtol=0, atol=slack)
    for (feature, offset), value in zip(keys, features["value"], strict=True):
        assert value == model.value(x, explanation.position + offset, feature, context)
    assert (np.diff(np.abs(features["contribution"])) <= 0).all()


def check_transitions(
    model: NaiveModel,
    exact: Enumeration,
    x: Any,
    codes: tuple[int, ...],
    explanation: Any,
    slack: float,
) -> None:
    """Weights of the patterns that end at each position, and contributions of previous labels."""
    chain, position = exact.chain, explanation.position
    label, against = model.codes([explanation.label, explanation.against])
    transitions = explanation.transition_table
    sums = [0.0, 0.0]  # what ends here, and later
    for row, offset in enumerate(transitions["offset"].tolist()):
        end = position + offset
        weights = []
        for code in (label, against):
            labels = (*codes[:position], code, *codes[position + 1 :])
            weight = sum(
                weight
                for pattern, weight in zip(chain.patterns, chain.weights_at(end), strict=True)
                if labels[: end + 1][-len(pattern) :] == pattern
            )
            if chain.edges is not None:
                weight += chain.edges[end, labels[end - 1], labels[end]]
            if chain.more is not None and offset > 0:  # those that end here are features
                weight += model.edge_score(x, [model.classes[code] for code in labels], end)
            weights.append(weight)
        found = transitions["weight"][row], transitions["weight_against"][row]
        np.testing.assert_allclose(found, weights, rtol=0, atol=slack)
        names = transitions["labels"][row]
        labels = (*codes[:position], label, *codes[position + 1 :])
        assert model.codes(names) == labels[end + 1 - len(names) : end + 1]
        sums[offset > 0] += weights[0] - weights[1]
    so_far = enumerate_patterns(cut(chain, position + 1, model, x))
    odds_so_far = log_odds_of(so_far, position, label, against)
    own = chain.nodes[position, label] - chain.nodes[position, against]
    if chain.more is not None:
        for code, sign in ((label, 1), (against, -1)):
            labels = [model.classes[each] for each in (*codes[:position], code)]
            own += sign * model.edge_score(x, labels, position)
    after = log_odds_of(exact, position, label, against) - odds_so_far
    np.testing.assert_allclose(explanation.before, odds_so_far - own - sums[0], atol=slack)
    np.testing.assert_allclose(explanation.after, after - sums[1], atol=slack)


def cut(chain: PatternChain, length: int, model: NaiveModel, x: Any) -> PatternChain:
    """The beginning of a sequence; it may end with any label unless it is the whole."""
    labellings = list_labellings(length, chain.nodes.shape[1])
    return replace(
        chain,
        nodes=chain.nodes[:length],
        weights=chain.weights if np.ndim(chain.weights) == 1 else chain.weights[:length],
        edges=None if chain.edges is None else chain.edges[:length],
        end=chain.end if length == len(chain.nodes) else None,
        known=None if chain.known is None else chain.known[:length],
        more=None if chain.more is None else model.prefix_scores(x, labellings),
    )


KINDS = [Kind("differential-explain", questions(), check_explain, in_suite=5)]
