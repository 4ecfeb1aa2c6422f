"""A linear CRF, computed slowly from its tables of weights, by enumeration.

Here a position is a dict of numbers by attribute name; a row of an array has the attributes ``x0``,
``x1`` and so on.
"""

import itertools
import re
from collections import Counter
from functools import cache

import numpy as np

from hedgerow.shown import with_plain_tables
from reference.automata import PatternChain, enumerate_patterns, weighted_log_likelihood


def make_data(n_sequences=8, n_features=3, labels=("a", "b", "c"), longest=5, seed=0):
    """Random arrays with some zeros, and labels that depend on them with noise."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, n_sequences)
    lengths[:2] = longest, 1
    X = [rng.normal(size=(length, n_features)).round(2) for length in lengths]
    for x in X:
        x[rng.random(x.shape) < 0.2] = 0.0
    directions = rng.normal(size=(n_features, len(labels)))
    codes = [(2 * x @ directions + rng.gumbel(size=(len(x), len(labels)))).argmax(1) for x in X]
    return X, [[labels[code] for code in sequence] for sequence in codes]


def make_legal_data(legal, classes, n_sequences=12, longest=5, seed=0):
    """Random arrays, and labels drawn from all labellings that a function calls legal."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, longest + 1, n_sequences)
    X = [rng.normal(size=(length, 3)).round(2) for length in lengths]
    options = {
        length: list(filter(legal, itertools.product(classes, repeat=length)))
        for length in set(lengths.tolist())
    }
    return X, [list(options[n][rng.integers(len(options[n]))]) for n in lengths.tolist()]


def to_dicts(X):
    """Arrays as dicts of numbers."""
    return [[{f"x{j}": value for j, value in enumerate(row)} for row in x.tolist()] for x in X]


def hide(y, mark=None, share=0.4, seed=0):
    """The same labels, some of them missing; the third sequence has none."""
    rng = np.random.default_rng(seed)
    hidden = [[mark if rng.random() < share else label for label in labels] for labels in y]
    hidden[2] = [mark] * len(hidden[2])
    return hidden


# A chunk of the type that stands for T, with a space after each label; O is no chunk.
CHUNKS = {
    "BIO": "B-T (I-T )*",
    "IOB1": "I-T (I-T )*|(?<=[BI]-T )B-T (I-T )*",
    "BILOU": "U-T |B-T (I-T )*L-T ",
    "BIOES": "S-T |B-T (I-T )*E-T ",
}


def keeps_scheme(scheme, labels):
    """Whether labels form complete chunks."""
    types = {label[2:] for label in labels if label != "O"}
    chunks = "|".join(CHUNKS[scheme].replace("T", kind) for kind in sorted(types))
    return re.fullmatch(f"(O |{chunks})*" if types else "(O )*", "".join(f"{k} " for k in labels))


def keeps_rules(labels, *, allowed=None, forbidden=None, start_labels=None, end_labels=None, **_):
    """Whether labels satisfy the constraints of a model, checked one by one."""
    pairs = list(itertools.pairwise(labels))
    return (
        (start_labels is None or labels[0] in start_labels)
        and (end_labels is None or labels[-1] in end_labels)
        and (allowed is None or all(pair in allowed for pair in pairs))
        and (forbidden is None or not any(pair in forbidden for pair in pairs))
    )


@cache
def legal_steps(scheme, classes):
    """First labels, pairs and last labels of all legal labellings of up to four labels."""
    rows = [
        labels
        for length in (1, 2, 3, 4)
        for labels in itertools.product(classes, repeat=length)
        if keeps_scheme(scheme, labels)
    ]
    pairs = {pair for labels in rows for pair in itertools.pairwise(labels)}
    return {labels[0] for labels in rows}, pairs, {labels[-1] for labels in rows}


class NaiveModel:
    """Scores by looking up every weight by its name, constraints by the parameters."""

    def __init__(self, crf):
        crf = with_plain_tables(crf)
        self.classes = crf.classes_.tolist()
        self.pattern_weights, self.pattern_attributes = _split(crf.patterns(), "pattern")
        self.rules = rules_of(crf, self.classes)
        self.read_scores(crf)

    def read_scores(self, crf):
        """Read the tables that the scores of positions come from."""
        self.node_weights = _by_key(crf.weights(), "attribute", "label")
        self.edge_weights = {}
        if not self.pattern_attributes:  # which pairs are among
            _, self.edge_weights = _split(crf.transition_weights(), "from", "to")
        self.has_edges = bool(self.edge_weights)

    def scores(self, positions):
        """Scores of nodes (T, K) and of edges (T, K, K), None if there are none."""
        n_labels = len(self.classes)
        nodes = np.zeros((len(positions), n_labels))
        edges = np.zeros((len(positions), n_labels, n_labels))
        for t, position in enumerate(positions):
            values = {"(bias)": 1.0, **position}
            for k, label in enumerate(self.classes):
                nodes[t, k] = _sum(self.node_weights, values, label)
                for j, before in enumerate(self.classes if self.has_edges else ()):
                    edges[t, j, k] = _sum(self.edge_weights, position, before, label)
        return nodes, edges if self.has_edges else None

    def context(self, before, label):
        """The previous labels that scores depend on: none."""
        return ()

    def chain(self, positions, known=None):
        """One sequence; ``known`` are labels, None where any label is allowed."""
        nodes, edges = self.scores(positions)
        return PatternChain(
            nodes,
            [self.codes(pattern) for (pattern,) in self.pattern_weights],
            self.weights_of_patterns(positions),
            edges,
            known=None if known is None else self.codes(known),
            **self.rules,
        )

    def weights_of_patterns(self, positions):
        """Weights of patterns, (P,), or with contributions of attributes, (T, P)."""
        own = np.array(list(self.pattern_weights.values()))
        if not self.pattern_attributes:
            return own
        added = [
            [
                _sum(self.pattern_attributes, position, pattern)
                for (pattern,) in self.pattern_weights
            ]
            for position in positions
        ]
        return own + added

    def enumerate(self, positions, known=None):
        """The enumeration of one sequence; None if it has no labelling."""
        return enumerate_patterns(self.chain(positions, known))

    def marginals(self, positions, known=None):
        return self.enumerate(positions, known).marginals

    def log_likelihood(self, positions, labels, weights=None):
        """Log probability of the labels that are not None; with weights (T,) a weighted sum."""
        if weights is not None:
            return weighted_log_likelihood(self.chain(positions), self.codes(labels), weights)
        if None not in labels:
            return self.enumerate(positions).log_probs[self.codes(labels)]
        known = self.enumerate(positions, labels)
        return -np.inf if known is None else known.log_z - self.enumerate(positions).log_z

    def best(self, positions, known=None):
        """(labels, log probability) of all labellings, the most probable first."""
        found = self.enumerate(positions, known)
        return [
            ([self.classes[k] for k in codes], score - found.log_z) for score, codes in found.best
        ]

    def penalty(self, reg_lambda, reg_alpha, strength_of=None):
        """Of all weights; patterns may have another L2 penalty, by their length."""
        tables = self.node_weights, self.edge_weights, self.pattern_weights, self.pattern_attributes
        weights = np.array([weight for table in tables for weight in table.values()])
        squares = reg_lambda * (weights**2).sum()
        if strength_of is not None:
            for (pattern,), weight in self.pattern_weights.items():
                squares += (strength_of(len(pattern)) - reg_lambda) * weight**2
        return squares / 2 + reg_alpha * np.abs(weights).sum()

    def codes(self, labels):
        return tuple(-1 if label is None else self.classes.index(label) for label in labels)


# Attributes of two kinds by the first letter of their names, and labels.
PREFIXED = [[{"U1": 1, "B1": 1}, {"U2": 1, "B1": 0.5}, {"U1": 1}], [{"U2": 1}, {"B1": 2}]]
PREFIXED_LABELS = [["a", "b", "b"], ["a", "b"]]


def fit_prefixed(crf):
    """Train on these, and compare marginals, likelihoods and the loss with enumeration."""
    crf.fit(PREFIXED, PREFIXED_LABELS)
    naive, found = NaiveModel(crf), crf.predict_marginals(PREFIXED)
    for x, labels, marginals in zip(PREFIXED, PREFIXED_LABELS, found, strict=True):
        np.testing.assert_allclose(marginals, naive.marginals(x), atol=1e-10)
        likelihood = naive.log_likelihood(x, labels)
        np.testing.assert_allclose(crf.log_likelihood([x], [labels]), likelihood, rtol=1e-6)
    loss = naive.penalty(1.0, 0.0) - crf.log_likelihood(PREFIXED, PREFIXED_LABELS).sum()
    np.testing.assert_allclose(crf.loss_, loss, rtol=1e-6)
    return crf


def strength_by_length(pattern_lambda, ys, weights):
    """The penalty for a length by `pattern_lambda`; runs are weighted by their last label."""
    if pattern_lambda is None:
        return None
    if pattern_lambda != "auto":
        numbers = np.ravel(pattern_lambda)
        return lambda length: numbers[min(length - 2, len(numbers) - 1)]

    def strength_of(length):
        counts = Counter()
        for labels, own in zip(ys, weights, strict=True):
            for end in range(length, len(labels) + 1):
                counts[tuple(labels[end - length : end])] += own[end - 1]
        known = [count for run, count in counts.items() if None not in run and count > 0]
        share = np.mean([count <= 1 for count in known]) if known else 0.0
        return max(0.01, 5 * share**2)  # the minimum of LinearCRF

    return strength_of


def rules_of(crf, classes):
    """The constraints of the parameters, in the format of `PatternChain`."""
    start = set(classes if crf.start_labels is None else crf.start_labels)
    end = set(classes if crf.end_labels is None else crf.end_labels)
    pairs = set(itertools.product(classes, repeat=2))
    if crf.allowed is not None:
        pairs &= set(map(tuple, crf.allowed))
    if crf.forbidden is not None:
        pairs -= set(map(tuple, crf.forbidden))
    if crf.constraints is not None:
        first, inside, last = legal_steps(crf.constraints, tuple(classes))
        start, pairs, end = start & first, pairs & inside, end & last
    code = classes.index
    return {
        "forbidden": {
            (code(j), code(k))
            for j, k in itertools.product(classes, repeat=2)
            if (j, k) not in pairs
        },
        "start": set(map(code, start)),
        "end": set(map(code, end)),
    }


def _sum(weights, values, *outputs):
    return sum(value * weights.get((name, *outputs), 0.0) for name, value in values.items())


def _split(table, *names):
    """Weights without an attribute, and with one, by its name and the others."""
    if "attribute" not in table:
        return _by_key(table, *names), {}
    every = _by_key(table, "attribute", *names)
    plain = {key[1:]: weight for key, weight in every.items() if not key[0]}
    return plain, {key: weight for key, weight in every.items() if key[0]}


def _by_key(table, *names):
    keys = zip(*(table[name].tolist() for name in names), strict=True)
    return dict(zip(keys, table["weight"].tolist(), strict=True))
