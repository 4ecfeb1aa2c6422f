"""A fitted model, computed slowly from its public tables, its parameters and the user's X.

`read_model` computes the scores of all positions; predictions are found by enumerating all
labellings, see `NaiveModel` and `assert_enumerated`. `Losses` contains the objectives, by their
definitions.
"""

import itertools
import json
import re
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import scipy.sparse

from reference.automata import draw_labels, enumerate_patterns, weighted_log_likelihood
from reference.linear import NaiveModel
from reference.tree_tables import (
    MISSING,
    OUTSIDE,
    add_surrogates,
    look_up,
    split_trees,
    value_at,
    walk_all_ways,
)

SMALLEST_PROBABILITY = 1e-300


def read_model(crf, training_xs):
    """The model of any estimator; the training sequences determine its known categories."""
    if hasattr(crf, "trees"):
        return TreeModel(crf, training_xs)
    return LinearModel(crf)


def to_positions(x, group_column=None):
    """One sequence in any format as dicts of numbers by attribute."""
    if isinstance(x, pd.DataFrame):
        x = x.drop(columns=[group_column] if group_column else []).to_dict("records")
    elif not isinstance(x, list):
        dense = x.toarray() if scipy.sparse.issparse(x) else x
        x = [{f"x{j}": value for j, value in enumerate(row)} for row in dense.tolist()]
    return [
        {
            f"{name}:{value}" if isinstance(value, str) else name: (
                1.0 if isinstance(value, str) else float(value)
            )
            for name, value in position.items()
        }
        for position in x
    ]


class LinearModel(NaiveModel):
    """A LinearCRF, for X in any format."""

    def __init__(self, crf):
        self.group_column = crf.group_column
        super().__init__(crf)

    def scores(self, x):
        return super().scores(to_positions(x, self.group_column))

    def weights_of_patterns(self, x):
        return super().weights_of_patterns(to_positions(x, self.group_column))

    def magnitude(self, x):
        """At most what the terms of the score of a labelling add up to, signs left out."""
        tables = self.node_weights, self.edge_weights, self.pattern_weights, self.pattern_attributes
        largest = max(abs(weight) for table in tables for weight in table.values())
        positions = to_positions(x, self.group_column)
        terms = sum(1.0 + 2.0 * sum(map(abs, position.values())) for position in positions)
        return largest * (terms + len(positions) * len(self.pattern_weights))

    def contributions(self, x, position, label, against, before=()):
        """What there is without features, and what each adds: {(feature, offset): number}."""
        values = to_positions(x, self.group_column)[position]

        def weight(name):
            return self.node_weights.get((name, label), 0.0) - self.node_weights.get(
                (name, against), 0.0
            )

        added = {(name, 0): value * weight(name) for name, value in values.items()}
        return weight("(bias)"), added

    def value(self, x, position, feature, context=()):
        """The value of an attribute at a position."""
        return to_positions(x, self.group_column)[position][feature]


class TreeModel(NaiveModel):
    """A TreeCRF: every tree is walked at every position."""

    def __init__(self, crf, training_xs):
        self.categories = {
            name: {value for x in training_xs for value in x[name]}
            for x in training_xs[:1]
            if isinstance(x, pd.DataFrame)
            for name in x.columns
        }
        self.base = read_model(crf.base_, training_xs) if hasattr(crf, "base_") else None
        super().__init__(crf)

    def read_scores(self, crf):
        self.trees = split_trees(crf.trees())
        add_surrogates(self.trees, json.loads(crf.to_json()))
        self._values = {}
        self.n_rounds = crf.n_rounds_

    def scores(self, x):
        nodes, edges = np.zeros((count_positions(x), len(self.classes))), None
        if self.base is not None:
            nodes, edges = self.base.scores(x)
        look = self._looker(x)
        for (_, label), tree in self.trees.items():
            code = self.classes.index(label)
            for t in range(0 if asks_labels(tree) else len(nodes)):
                nodes[t, code] += value_at(tree, x, t, look)
        return nodes, edges

    def chain(self, x, known=None):
        """One sequence; trees that split on previous labels score whole labellings."""
        chain = super().chain(x, known)
        chain.more = self.prefix_scores(x, chain.labellings)
        return chain

    def _score_labels(self, x, codes):
        """The score of a labelling by trees that split on labels."""
        labels = [self.classes[k] for k in codes]
        return sum(self.edge_score(x, labels, t) for t in range(len(labels)))

    def _value_of(self, x, t, label, context):
        # Stored with its values, since another sequence may get the id of a deleted one.
        _, values = self._values.setdefault(id(x), (x, {}))
        if (t, label, context) not in values:
            look = self._label_looker(x, context)
            values[t, label, context] = sum(
                value_at(tree, x, t, look)
                for (_, name), tree in self.trees.items()
                if name == label and asks_labels(tree)
            )
        return values[t, label, context]

    def _label_looker(self, x, context, looks=None):
        """`look_up`, or another function in its place, that knows labels before a position."""
        looks = looks or self._looker(x)

        def look(x, t, feature):
            lag = LABEL_BEFORE.fullmatch(feature)
            if lag is None:
                return looks(x, t, feature)
            return context[-int(lag[1])] if int(lag[1]) <= len(context) else MISSING

        return look

    def edge_score(self, x, labels, t):
        """The score of the label of a position by trees that split on labels."""
        return self._value_of(x, t, labels[t], self.context(labels[:t], labels[t]))

    def prefix_scores(self, x, labellings):
        """Their scores of labellings of the beginning of a sequence; None if there are none."""
        if not any(map(asks_labels, self.trees.values())):
            return None
        return np.array([self._score_labels(x, codes) for codes in labellings])

    def context(self, before, label):
        """The previous labels that a model distinguishes, as strings.

        Together with the label they are the longest suffix of a labelling that is a label pair, or
        a prefix of a label pattern.
        """
        ends = ((*before[first:], label) for first in range(len(before)))
        return tuple(map(str, next((end for end in ends if end in self._strings), ())[:-1]))

    @cached_property
    def _strings(self):
        patterns = [pattern for (pattern,) in self.pattern_weights]
        strings = {pattern[:n] for pattern in patterns for n in range(1, len(pattern) + 1)}
        return strings | {*itertools.product(self.classes, repeat=2)}

    def magnitude(self, x):
        """At most what the terms of the score of a labelling add up to, signs left out."""
        values = [abs(row["value"]) for tree in self.trees.values() for row in tree]
        weights = list(map(abs, self.pattern_weights.values()))
        largest = self.n_rounds * max(values, default=0.0) + sum(weights)
        return count_positions(x) * largest

    def contributions(self, x, position, label, against, before=()):
        """What there is without features, and what each adds: {(feature, offset): number}."""
        bias, added = 0.0, {}
        for (_, name), tree in self.trees.items():
            sign = (name == label) - (name == against)
            if not sign:
                continue
            look = self._label_looker(x, self.context(before[:position], name))
            bias += sign * tree[0]["value"]
            for path, asked, share in walk_all_ways(tree, x, position, look):
                for key, (row, child) in zip(asked, itertools.pairwise(path), strict=True):
                    change = sign * share * (child["value"] - row["value"])
                    added[key] = added.get(key, 0.0) + change
        return bias, added

    def value(self, x, position, feature, context=()):
        """The value of a column at a position, even a category unknown in training; None if
        missing."""
        value = self._label_looker(x, context, look_up)(x, position, feature)
        return None if value is MISSING or value is OUTSIDE else value

    def _looker(self, x):
        """`look_up` that remembers, and to which categories unknown in training are missing."""
        found = {}

        def look(x, t, feature):
            if (t, feature) not in found:
                value = look_up(x, t, feature)
                if isinstance(value, str) and value not in self.categories[feature]:
                    value = MISSING
                found[t, feature] = value
            return found[t, feature]

        return look


LABEL_BEFORE = re.compile(r"label\[-(\d+)\]")


def asks_labels(tree):
    """Whether a tree splits on previous labels."""
    return any(row["feature"].startswith("label[-") for row in tree)


def assert_enumerated(crf, model, X, known=None):
    """Compare all predictions for X with the enumeration of all labellings of its sequences."""
    more = {} if known is None else {"known": known}
    ends = np.cumsum(list(map(count_positions, X)))
    answers = zip(
        X,
        [None] * len(X) if known is None else known,
        crf.predict(X, decode="viterbi", **more),
        crf.predict_marginals(X, **more),
        crf.predict_pattern_marginals(X, **more),
        crf.predict_k_best(X, 2000, **more),
        crf.sample(X, 3, random_state=5, **more),
        np.split(np.random.RandomState(5).random_sample((3, ends[-1])), ends[:-1], axis=1),
        strict=True,
    )
    for x, given, best, marginals, pattern_marginals, k_best, drawn, uniforms in answers:
        expected, chain = model.enumerate(x, given), model.chain(x, given)
        for found, same in (
            (marginals, expected.marginals),
            (pattern_marginals, expected.pattern_marginals),
        ):
            np.testing.assert_allclose(found, same, rtol=1e-9, atol=1e-14)
            np.testing.assert_array_equal(found[same == 0], 0)
        log_probs = {codes: value for codes, value in expected.log_probs.items() if value > -np.inf}
        ranked = {model.codes(labels.tolist()): value for labels, value in k_best}
        assert ranked.keys() == log_probs.keys()
        by_rank = sorted(log_probs.values(), reverse=True)
        np.testing.assert_allclose(list(ranked.values()), by_rank, rtol=1e-9, atol=1e-12)
        of_each = [log_probs[codes] for codes in ranked]
        np.testing.assert_allclose(list(ranked.values()), of_each, rtol=1e-9, atol=1e-12)
        top = log_probs[model.codes(best.tolist())]
        np.testing.assert_allclose(top, by_rank[0], rtol=1e-9, atol=1e-12)
        codes = [draw_labels(chain, row) for row in uniforms]
        np.testing.assert_array_equal(drawn, crf.classes_[codes])


def count_positions(x):
    return x.shape[0] if hasattr(x, "shape") else len(x)


def has_chunks(classes):
    """Whether labels mark the beginning and the inside of chunks."""
    return any(re.match("[BIESLU]-", str(label)) for label in classes)


def cost_matrix(costs, classes):
    """The parameter ``label_costs`` as a matrix, by the places of the true and predicted label."""
    found = np.ones((len(classes), len(classes)))
    if isinstance(costs, float):
        found *= costs
    elif costs != "hamming":
        for (i, true), (j, label) in itertools.product(enumerate(classes), repeat=2):
            found[i, j] = costs[true][label] if i != j else 0.0
    np.fill_diagonal(found, 0.0)
    return found


@dataclass
class Losses:
    """Losses of a model on labelled sequences, by the definitions of the objectives.

    ``ys`` are labels, None where they are not known; ``weights`` has the weights (T,) of the
    positions of each sequence, ``sequence_weights`` those of the sequences; ``costs`` (K, K) are
    those of mistakes, ``f1_average`` how F1 is averaged.
    """

    model: NaiveModel
    xs: list
    ys: list
    weights: list
    sequence_weights: list
    costs: np.ndarray
    f1_average: str

    @cached_property
    def chains(self):
        return [self.model.chain(x) for x in self.xs]

    @cached_property
    def enumerations(self):
        return list(map(enumerate_patterns, self.chains))

    @cached_property
    def codes(self):
        return list(map(self.model.codes, self.ys))

    def of(self, objective, sharpness):
        """The loss of an objective by its name."""
        if objective == "likelihood":
            return sum(map(self._likelihood, range(len(self.ys)), self.chains))
        if objective == "softmax_margin":
            return sum(
                map(
                    self._likelihood,
                    range(len(self.ys)),
                    map(self._add_costs, self.chains, self.codes),
                )
            )
        if objective == "f1":
            return self._f1()
        if objective == "max_margin":
            return sum(map(self._margin, range(len(self.ys))))
        return -sum(
            weight * self._value(objective, sharpness, marginals, code)
            for exact, codes, weights in zip(
                self.enumerations, self.codes, self.weights, strict=True
            )
            for marginals, code, weight in zip(exact.marginals, codes, weights, strict=True)
            if code >= 0
        )

    def _likelihood(self, s, chain):
        """- sum_t w_t log P(y_t | labels before), or that of the labels that are known."""
        codes = self.codes[s]
        if -1 not in codes:
            return -weighted_log_likelihood(chain, codes, self.weights[s])
        agrees = ((chain.labellings == codes) | (np.array(codes) == -1)).all(axis=1)
        exact = enumerate_patterns(chain)
        given = np.logaddexp.reduce(exact.scores[agrees])
        return -self.sequence_weights[s] * (given - exact.log_z)

    def _add_costs(self, chain, codes):
        """A chain with costs added to the scores of wrong labels."""
        costs = [self.costs[code] if code >= 0 else np.zeros(len(self.costs)) for code in codes]
        return replace(chain, nodes=chain.nodes + np.reshape(costs, chain.nodes.shape))

    def _f1(self):
        """Minus the F1 of expected counts, times the weight of what is known."""
        marginals = np.concatenate([exact.marginals for exact in self.enumerations])
        codes, weights = np.concatenate(self.codes), np.concatenate(self.weights)
        is_known = codes >= 0
        marginals, codes, weights = marginals[is_known], codes[is_known], weights[is_known]
        classes = self.model.classes
        kept = [k for k, label in enumerate(classes) if label != "O" or not has_chunks(classes)]
        right = [weights[codes == k] @ marginals[codes == k, k] for k in kept]
        there = [weights[codes == k].sum() for k in kept]
        found = [weights @ marginals[:, k] for k in kept]
        counts = list(zip(right, there, found, strict=True))
        if self.f1_average == "micro":
            counts = [tuple(map(sum, zip(*counts, strict=True)))]
        scores = [2 * a / (b + c) for a, b, c in counts if b > 0]
        return -weights.sum() * np.mean(scores) if scores else 0.0

    def _margin(self, s):
        """max_y' [costs of wrong labels + score(y')] - score(y), and no less than 0."""
        weight, codes = self.sequence_weights[s], np.array(self.codes[s])
        costs = self.weights[s] / weight if weight else self.weights[s]
        labellings, scores = self.chains[s].labellings, self.enumerations[s].scores
        given = scores[(labellings == codes).all(axis=1)][0]
        worst = (scores + self.costs[codes, labellings] @ costs).max()
        return weight * max(0.0, worst - given)

    @staticmethod
    def _value(objective, sharpness, marginals, code):
        own = marginals[code]
        if objective == "pointwise":
            return np.log(max(own, SMALLEST_PROBABILITY))
        if objective == "expected_accuracy":
            return own
        assert objective == "accuracy"
        rival = np.delete(marginals, code).max(initial=0.0)
        return 1.0 / (1.0 + np.exp(-sharpness * (own - rival)))

    def count_right(self, slack):
        """Number of correct labels in allowed labellings with the largest sum of marginals.

        Minimum and maximum: sums that differ by at most `slack` per position are equal.
        """
        least = most = 0
        for chain, exact, codes in zip(self.chains, self.enumerations, self.codes, strict=True):
            labellings = chain.labellings[exact.scores > -np.inf]
            sums = exact.marginals[np.arange(len(codes)), labellings].sum(axis=1)
            best = labellings[sums >= sums.max() - 2 * slack * len(codes)]
            n_right = (best == np.array(codes)).sum(axis=1)
            least += n_right.min()
            most += n_right.max()
        return least, most
