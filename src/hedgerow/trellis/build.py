"""Which trellis a grammar asks for."""

from __future__ import annotations

import numpy as np

from hedgerow.labels.automaton import Automaton
from hedgerow.labels.grammar import Grammar
from hedgerow.labels.patterns import Patterns
from hedgerow.trellis.automaton_chain import AutomatonChain
from hedgerow.trellis.chain import Chain
from hedgerow.trellis.trellis import Trellis

__all__ = ["build_trellis"]

# The first-order kernel takes all K * K pairs at full speed; the automaton takes only those that
# are there, each in as much time as this many of the other's.
COST_OF_ARC = 4


def build_trellis(grammar: Grammar) -> Trellis:
    """A chain over an automaton, or a first-order chain where that is faster and can be."""
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
