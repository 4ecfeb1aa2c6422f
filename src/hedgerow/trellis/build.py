"""Build: the trellis for a grammar."""

from __future__ import annotations

import numpy as np

from hedgerow.labels.automaton import Automaton
from hedgerow.labels.grammar import Grammar
from hedgerow.labels.patterns import Patterns
from hedgerow.trellis.automaton_chain import AutomatonChain
from hedgerow.trellis.chain import Chain
from hedgerow.trellis.trellis import Trellis

__all__ = ["build_trellis"]

# The first-order kernel processes all K * K pairs at full speed; the automaton processes only
# existing pairs, but takes this many times as long for each. Measured for posteriors
# (marginals and sums of pairs or arcs; one thread, CPU time, sequences of 40, random pairs, a
# quarter of all): 3.2 with K = 400 labels, 4.5 with 200, 5 with 100. With fewer labels the
# automaton's work per label outweighs its arcs: with 5 to 25 % of the pairs it takes 1.3 to 2 times
# as long as the first-order kernel for K = 45, and 2 to 2.5 times for K = 26.
COST_OF_ARC = 4


def build_trellis(grammar: Grammar) -> Trellis:
    """A chain over an automaton, or a first-order chain if that is possible and faster."""
    if grammar.patterns.longest <= 2:
        n_pairs = len(grammar.patterns) + len(grammar.forbidden_pairs)
        if grammar.has_edges or n_pairs * COST_OF_ARC >= grammar.n_labels**2:
            return Chain(grammar.n_labels, grammar.pair_codes, grammar.constraints)
    others = [grammar.forbidden_pairs]
    if grammar.has_edges:
        others.append(np.argwhere(grammar.allowed_pairs).astype(np.int32))
    patterns = grammar.patterns.join(Patterns.from_rows(others))
    automaton = Automaton.build(grammar.n_labels, patterns)
    return AutomatonChain(automaton, len(grammar.patterns), grammar.constraints)
