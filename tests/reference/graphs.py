"""Random tree-shaped graphs, and exact results by enumeration of all labellings."""

import itertools
from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace

import numpy as np

import hedgerow.model
import hedgerow.training.training
from hedgerow.labels import Patterns
from hedgerow.labels.automaton import Automaton
from hedgerow.trellis import AutomatonChain, Chain, Scores

# Order of label patterns, and kind of pair scores.
KINDS = {
    "order 0": (0, None),
    "order 1": (1, None),
    "order 1, edges": (1, "pairs"),
    "order 2": (2, None),
    "order 2, edges of arcs": (2, "arcs"),
    "order 3": (3, None),
    "order 3, edges of pairs": (3, "pairs"),
}


def random_parents(rng, length, share_of_roots=0.2):
    """A random forest, its positions in any order."""
    order = rng.permutation(length)
    parents = np.full(length, -1, np.int32)
    for i in range(1, length):
        if rng.random() >= share_of_roots:
            parents[order[i]] = order[rng.integers(i)]
    return parents


def random_trellis(rng, order, n_labels, edges):
    """All pairs and some longer patterns, or none at all."""
    if order <= 1:
        return Chain(n_labels)
    patterns = dict.fromkeys(Patterns.pairs(n_labels)) if edges == "pairs" else {}
    for length in range(2, order + 2):
        for _ in range(n_labels + 2):
            patterns[tuple(rng.integers(0, n_labels, length).tolist())] = None
    return AutomatonChain(Automaton.build(n_labels, Patterns.of(patterns)))


def random_graphs(rng, kind, n_labels=3, lengths=(1, 4, 5, 0, 2), scale=1.0):
    """Scores of some sequences."""
    order, edges = KINDS[kind]
    trellis = random_trellis(rng, order, n_labels, edges)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n_positions = int(offsets[-1])
    arcs = scale * rng.normal(size=trellis.arc_shape) * (order > 0)
    shape = {None: None, "pairs": (n_labels, n_labels), "arcs": trellis.arc_shape}[edges]
    return Scores(
        scale * rng.normal(size=(n_positions, n_labels)),
        arcs,
        offsets,
        trellis,
        None if shape is None else scale * rng.normal(size=(n_positions, *shape)),
        np.concatenate([random_parents(rng, length) for length in lengths]),
    )


class ExactGraph:
    """One sequence: its M labellings (M, T), their scores and probabilities."""

    def __init__(self, scores):
        assert scores.n_sequences == 1
        self.scores, self.parents = scores, scores.parents.tolist()
        n_labels, length = scores.n_labels, scores.n_positions
        every = itertools.product(range(n_labels), repeat=length)
        self.every = np.array(list(every), np.int32).reshape(n_labels**length, length)
        self.arcs, self.edges = np.full((2, *self.every.shape), -1)
        for t, parent in enumerate(self.parents):
            self.arcs[:, t] = self._arcs_into(t)
            if parent >= 0:
                pairs = self.every[:, parent] * n_labels + self.every[:, t]
                by_arc = scores.edges is not None and scores.edges.ndim == 2
                self.edges[:, t] = self.arcs[:, t] if by_arc else pairs
        self.labelling_scores = self.measure(scores.nodes, scores.arcs, scores.edges)

    def path(self, t):
        """Positions from the root to t."""
        path = [t]
        while self.parents[path[0]] >= 0:
            path.insert(0, self.parents[path[0]])
        return path

    def _arcs_into(self, t):
        """The arcs that the labels on the path to t take."""
        path = self.path(t)
        offsets = np.arange(len(self.every) + 1) * len(path)
        taken = self.scores.trellis.arcs_taken(self.every[:, path].ravel(), offsets)
        return taken.reshape(-1, len(path))[:, -1]

    def measure(self, nodes, arcs, edges=None):
        """Sum of scores, or of a direction, for each labelling, (M,)."""
        flat, total = np.append(arcs, 0.0), np.zeros(len(self.every))
        for t in range(self.every.shape[1]):
            total += nodes[t, self.every[:, t]] + flat[self.arcs[:, t]]
            if edges is not None and self.parents[t] >= 0:
                total += edges[t].ravel()[self.edges[:, t]]
        return total

    @cached_property
    def log_z(self):
        return np.logaddexp.reduce(self.labelling_scores)

    @cached_property
    def probs(self):
        return np.exp(self.labelling_scores - self.log_z)

    def sum(self, masses):
        """Masses of the labellings by label (T, K), arc (T, A) and edge (T, M)."""
        scores = self.scores
        shape = (scores.n_labels,) * 2 if scores.edges is None else scores.edges.shape[1:]
        return SimpleNamespace(
            marginals=_count(self.every, masses, scores.n_labels),
            arcs=_count(self.arcs, masses, scores.arcs.size),
            pairs=_count(self.edges, masses, int(np.prod(shape))),
        )

    def covariances(self, gains):
        """Derivatives of all probabilities where the scores of labellings move by `gains`."""
        return self.sum(self.probs * (gains - self.probs @ gains))

    def find(self, labels):
        return int(np.flatnonzero((self.every == labels).all(axis=1))[0])

    def weighted_log_likelihood(self, labels, weights):
        """The sum of w_t log P(y_t | labels on the path before)."""
        total = 0.0
        for t, weight in enumerate(weights):
            path = self.path(t)
            agree = self.every[:, path] == labels[path]
            here, before = agree.all(axis=1), agree[:, :-1].all(axis=1)
            total += weight * (
                np.logaddexp.reduce(self.labelling_scores[here])
                - np.logaddexp.reduce(self.labelling_scores[before])
            )
        return total


def _count(codes, masses, n_codes):
    rows = [np.bincount(column + 1, masses, n_codes + 1)[1:] for column in codes.T]
    return np.array(rows).reshape(-1, n_codes)


def split(scores):
    """The single sequences, with their slices."""
    for s in range(scores.n_sequences):
        yield (
            s,
            slice(int(scores.offsets[s]), int(scores.offsets[s + 1])),
            ExactGraph(scores.part(slice(s, s + 1))),
        )


def grow_trees(monkeypatch):
    """Turn every sequence that is encoded from now on into a tree-shaped graph, by its length."""

    def with_parents(encode):
        def encode_graphs(*args, **kwargs):
            sequences = encode(*args, **kwargs)
            return replace(sequences, parents=parents_of(sequences.lengths))

        return encode_graphs

    for module, name in (
        (hedgerow.training.training, "encode"),
        (hedgerow.training.training, "encode_alike"),
        (hedgerow.model, "encode_alike"),
    ):
        monkeypatch.setattr(module, name, with_parents(getattr(module, name)))


def parents_of(lengths):
    """The parents that `grow_trees` gives to sequences."""
    return np.concatenate([random_parents(np.random.default_rng(n), n) for n in lengths])
