"""Inference: the probabilities of labellings, given scores.

The score of a labelling y of T positions is, for first-order chains,

    sum_t nodes[t, y_t] + sum_{t>0} (arcs[y_{t-1}, y_t] + edges[t, y_{t-1}, y_t]),

with arcs (K, K). With label patterns of more than two labels, arcs (A,) are those of an automaton:
each of its states stands for the last labels, as many as the patterns need. Then ``arcs[y_{t-1},
y_t]`` becomes ``arcs[a_t]``: the labels before position t lead to a state, and a_t is the arc that
leaves this state with the label y_t. An arc ends in a pattern if the labels of its state, followed
by its own label, end with the pattern. The probability of a labelling is exp(score) / Z. All
functions take a batch of sequences, concatenated: positions ``offsets[s]`` to ``offsets[s + 1]``
belong to sequence s. Scores may be any finite number, or -inf, which forbids a label or an arc;
``NoPathError`` is raised if a sequence has no possible labelling. Results do not depend on the
number of threads, nor on the other sequences of the batch, to the last bit.

If scores have parents, sequences are tree-shaped graphs: the previous label of a position is that
of its parent, "t > 0" means "t is not a root", and the labels so far are those on the path from the
root.
"""

from hedgerow._core import NoPathError
from hedgerow.trellis.automaton_chain import AutomatonChain
from hedgerow.trellis.build import build_trellis
from hedgerow.trellis.chain import Chain
from hedgerow.trellis.output_edges import OutputEdges, PairEdges, PatternEdges, flatten_edges
from hedgerow.trellis.paths import k_best, sample, viterbi
from hedgerow.trellis.posteriors import (
    Pairs,
    Posteriors,
    forward_backward,
    log_likelihood,
    log_z,
    weighted_forward_backward,
)
from hedgerow.trellis.tangents import Tangents, tangent
from hedgerow.trellis.tree_graph import TreeGraph
from hedgerow.trellis.trellis import EdgeContexts, Mixing, Outputs, PairsByLabel, Scores, Trellis

__all__ = [
    "AutomatonChain",
    "Chain",
    "EdgeContexts",
    "Mixing",
    "NoPathError",
    "OutputEdges",
    "Outputs",
    "PairEdges",
    "Pairs",
    "PairsByLabel",
    "PatternEdges",
    "Posteriors",
    "Scores",
    "Tangents",
    "TreeGraph",
    "Trellis",
    "build_trellis",
    "flatten_edges",
    "forward_backward",
    "k_best",
    "log_likelihood",
    "log_z",
    "sample",
    "tangent",
    "viterbi",
    "weighted_forward_backward",
]

NoPathError.__doc__ = "All labellings of a sequence are forbidden, by scores of -inf."
