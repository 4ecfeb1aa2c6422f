"""Odds: how the labels around a position affect its own label.

With all other labels summed out, the log-odds of two labels a and b at position t are

    log P(y_t = a) - log P(y_t = b) = (score of a - score of b at t) + before + after.

The scores are the sums of the bias and of the contributions of the position's features. The first
of the two other terms is the effect of the labels before t: the log-odds in the sequence that ends
at t, minus the scores; the second is the rest. Both are split once more: into the weights of the
label patterns through t, with the predicted labels at its neighbours, and a remainder
(`Explanation.before` and `Explanation.after`), because the neighbours may have other labels. In a
tree-shaped graph, the descendants of t are after it, and all other positions are before it.
Everything is computed from sums over labellings in which y_t is held fixed, in log space, so that
odds of any size are accurate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow import trellis
from hedgerow.explain.explanation import Explanation
from hedgerow.explain.relatives import Relatives
from hedgerow.labels import Grammar, Labels
from hedgerow.labels.tables import name_patterns
from hedgerow.tables import Table
from hedgerow.trellis import NoPathError, Scores

__all__ = ["Contributions", "Place"]


class Contributions(NamedTuple):
    """The parts of the log-odds that need no sum over labellings.

    Attributes
    ----------
    bias : float
        See `Explanation`.
    features, transitions : Table
        As in an `Explanation`, but features are in no particular order.
    """

    bias: float
    features: Table
    transitions: Table


@dataclass(frozen=True, eq=False)
class Place:
    """A position of a sequence, and everything that its label depends on.

    Attributes
    ----------
    part : Scores
        Scores of the sequence, with known labels fixed.
    position : int
        The position.
    predicted : (T,) int32
        Codes of the labels of all positions.
    grammar, weights : Grammar, (P,) array
        How labels depend on each other, and the weights of the label patterns.
    labels : Labels
        Names of the labels.
    """

    part: Scores
    position: int
    predicted: NDArray[np.int32]
    grammar: Grammar
    weights: NDArray[np.float64]
    labels: Labels

    def choose(self, label: Any, against: Any) -> tuple[int, int]:
        """Codes of the two labels to compare; raises ValueError if one is not possible here."""
        names = self.labels.classes.tolist()
        code = int(self.predicted[self.position])
        if label is not None:
            code = self.labels.read_codes([label], "label")[0]
        self._check_possible(code)
        if against is None:
            rival = self._find_rival(code)
        else:
            rival = self.labels.read_codes([against], "against")[0]
            if rival == code:
                raise ValueError(f"label and against are both {names[code]!r}; pass two labels")
            self._check_possible(rival)
        return code, rival

    def explain(
        self, pair: tuple[int, int], bias: float, features: Table, *, explains_arcs: bool
    ) -> Explanation:
        """Compute the explanation; `bias` and `features` add up to the scores of the position.

        With ``explains_arcs``, the features also explain the scores of arcs into the position.
        """
        label, against = pair
        part, position = self.part, self.position
        relatives = Relatives.of(part, position)
        so_far = self._without_what_follows(relatives)
        log_odds = self._log_z(label) - self._log_z(against)
        odds_so_far = so_far._log_z(label) - so_far._log_z(against)
        scores = part.nodes[position, label] - part.nodes[position, against]
        if explains_arcs:
            scores = bias + float(features["contribution"].sum())
        transitions = self.weigh_transitions(pair, explains_arcs=explains_arcs)
        is_before = transitions["offset"] == 0
        before = odds_so_far - scores - transitions["contribution"][is_before].sum()
        after = log_odds - odds_so_far - transitions["contribution"][~is_before].sum()
        log_z = trellis.log_z(part, n_threads=1)[0]
        prob, prob_against = (float(np.exp(self._log_z(code) - log_z)) for code in pair)
        names = self.labels.classes.tolist()
        order = np.argsort(-np.abs(features["contribution"]), kind="stable")
        return Explanation(
            position=position,
            length=part.n_positions,
            label=names[label],
            against=names[against],
            prob=prob,
            prob_against=prob_against,
            log_odds=log_odds,
            bias=bias,
            feature_table=Table({name: column[order] for name, column in features.items()}),
            transition_table=transitions,
            before=0.0 if relatives.parent is None else float(before),
            after=float(after) if relatives.children else 0.0,
            relatives=None if part.parents is None else relatives,
        )

    def _log_z(self, code: int) -> float:
        """Log of the sum over the labellings with this label here; -inf if there is none."""
        nodes = self.part.nodes.copy()
        nodes[self.position] = -np.inf
        nodes[self.position, code] = self.part.nodes[self.position, code]
        try:
            return float(trellis.log_z(replace(self.part, nodes=nodes), n_threads=1)[0])
        except NoPathError:
            return -np.inf

    def _check_possible(self, code: int) -> None:
        if self._log_z(code) == -np.inf:
            raise ValueError(
                f"label {self.labels.classes.tolist()[code]!r} is not possible at position "
                f"{self.position}: constraints or known labels forbid it, so it has no odds to "
                "explain"
            )

    def _find_rival(self, code: int) -> int:
        """The most probable other label."""
        marginals = trellis.forward_backward(self.part, pairs=None, n_threads=1).marginals
        figures = marginals[self.position]
        others = np.delete(np.arange(len(figures)), code)
        figures = figures[others]
        if not figures.any():  # all other labels are impossible, or their probabilities underflow
            figures = np.array(list(map(self._log_z, others.tolist())))
        if not len(others) or figures.max() == -np.inf:
            raise ValueError(
                f"no label but {self.labels.classes.tolist()[code]!r} is possible at position "
                f"{self.position}, so there is nothing to compare it with"
            )
        return int(others[figures.argmax()])

    def weigh_transitions(self, pair: tuple[int, int], *, explains_arcs: bool) -> Table:
        """Weights of the patterns through the position, by the position where they end.

        Edges into the position are left out if the features explain arcs.
        """
        relatives = Relatives.of(self.part, self.position)
        edges, first_edge = self.part.edges, 1 if explains_arcs else 0
        reach = max(self.grammar.patterns.longest - 1, 0 if edges is None else 1)
        # No pattern ends at a root.
        ends = [
            (offset, end)
            for offset, end in (relatives.generations(reach) if reach else [])
            if relatives.parents[end] >= 0
        ]
        strings: list[list[int]] = []
        weights = np.empty((len(ends), 2))
        for row, (offset, end) in enumerate(ends):
            path = relatives.path(end, reach)
            labels = self.predicted[path]
            for column, code in enumerate(pair[::-1]):
                labels[-1 - offset] = code
                weight = self.part.trellis.pattern_scores(labels, self.weights)[-1]
                if edges is not None and offset >= first_edge:
                    weight += self._edge_taken(edges[end], labels)
                weights[row, column] = weight
            strings.append(labels.tolist())
        return Table(
            {
                "offset": np.array([offset for offset, _ in ends], np.int64),
                **self._where_they_end(ends),
                "labels": np.fromiter(
                    name_patterns(strings, self.labels.classes), np.object_, len(strings)
                ),
                "weight": weights[:, 1],
                "weight_against": weights[:, 0],
                "contribution": weights[:, 1] - weights[:, 0],
            }
        )

    def _where_they_end(self, ends: list[tuple[int, int]]) -> dict[str, NDArray[np.int64]]:
        """Positions at which patterns end; in a chain, offsets are enough."""
        if self.part.parents is None:
            return {}
        return {"end": np.array([end for _, end in ends], np.int64)}

    def _edge_taken(self, edges: NDArray[np.float64], labels: NDArray[np.int32]) -> float:
        """Score of the edge into a position, given the labels on the path that ends there."""
        chain = self.part.trellis if edges.ndim == 1 else trellis.Chain(self.part.n_labels)
        arc = int(chain.arcs_taken(labels, np.array([0, len(labels)]))[-1])
        return float(edges.ravel()[arc]) if arc >= 0 else 0.0

    def _without_what_follows(self, relatives: Relatives) -> Place:
        """The same place in the sequence without the positions after it."""
        part, kept = self.part, relatives.without_descendants()
        parents = None
        if part.parents is not None:
            # The parents of the positions that are kept are kept too.
            above = relatives.parents[kept]
            parents = np.where(above < 0, -1, np.searchsorted(kept, above)).astype(np.int32)
        return replace(
            self,
            position=int(np.searchsorted(kept, self.position)),
            part=replace(
                part,
                nodes=part.nodes[kept],
                offsets=np.array([0, len(kept)]),
                edges=None if part.edges is None else part.edges[kept],
                parents=parents,
            ),
        )
