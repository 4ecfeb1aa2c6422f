"""Shared parameters: those that both estimators have, explained once.

The docstring of each estimator has a mark where the explanations belong; `explain_shared` puts them
there, so that ``help``, notebooks and the reference show all of them.
"""

from __future__ import annotations

from inspect import cleandoc
from typing import TypeVar

__all__ = ["explain_shared"]

Kind = TypeVar("Kind", bound=type)

PARAMETERS = """
decode : {"auto", "viterbi", "marginal"}, default "auto"
    How labels are found: "viterbi", the most probable labelling of each sequence as a whole;
    "marginal", the most probable label of each position. "auto": the one that labels more positions
    of the last `eval_set` right, or of the training sequences that are held out. Without either,
    "marginal" for objectives of the marginals and "viterbi" for "max_margin"; for others "viterbi"
    where labels look like chunks (B-NP, I-NP, O), else a short trial decides, which
    learns from some training sequences and labels others by both, see the guide "Which decoder?".
    ``decode_`` is the one chosen.
early_stopping_rounds : int or None, default None
    Early stopping: stop if the metric on the `eval_set`, the last one if there are several, has not
    improved for this many rounds or iterations, and keep the model of the best one. Without an
    `eval_set` some training sequences are held out (`validation_fraction`). Rounds and iterations
    that only warm up (`warm_rounds`, `warm_iter`) never stop the training.
early_stopping_metric : str or None, default None
    The metric of early stopping: "loss", "accuracy", or the name of one in `eval_metric`. None: the
    last one of `eval_metric`, or "loss".
eval_metric : str, callable, list, dict or None, default None
    What to measure on the `eval_set` after each round or iteration, beside loss and accuracy;
    greater is better. "sequence_accuracy", the share of sequences without a mistake; "chunk_f1",
    "chunk_precision" or "chunk_recall"; the name of one of scikit-learn's scorers that compare
    labels, such as "f1_macro"; what `hedgerow.scorers.make_position_scorer` or scikit-learn's
    ``make_scorer`` makes; or a function, called as ``metric(y_true, y_pred)`` with two lists of
    label lists. A list of such, or a dict that gives them names.
validation_fraction : float or None, default 0.1
    Share of the training sequences that early stopping holds out if there is no `eval_set`. They
    are drawn by `random_state` if it is a number, else always the same, and the model is not
    trained on them; at least one, but none that alone has a label, unless all do. If there is only
    one sequence, its last part is held out. Weights count there as in training. None: an `eval_set`
    is required.
callbacks : list of callables or None, default None
    Called after every round or iteration with a `hedgerow.training.stopping.Step`; training ends
    when one of them returns something true.
order : int, default 1
    How many labels before it a label depends on directly. 1: every pair of neighbouring labels has
    a weight. m > 1: every label pattern of 2 to m + 1 labels that occurs in training has one; time
    grows with the number of patterns, not with a power of the number of labels. 0: labels do not
    depend on each other, which makes boosted trees LogitBoost.
min_pattern_count : int, default 0
    Leave out label patterns that occur less often than this in training. With 0 order 1 has all
    pairs, with 1 only those that occur.
label_patterns : list of tuples of labels or None, default None
    The label patterns that have weights, in place of those that `order` finds. Here and in the
    constraints below every label must occur in y, and any collection will do that can be read
    again, such as a set, which is sorted, an array or a Series.
constraints : "BIO", "IOB1", "BILOU", "BIOES" or None, default None
    Allow only labellings that keep to this scheme of chunk labels. Constraints hold in training
    too, where only labellings that are allowed compete.
allowed, forbidden : list of (label before, label) or None, default None
    Pairs of neighbouring labels that may occur, all others being forbidden; pairs that may not.
start_labels, end_labels : list of labels or None, default None
    Labels that may begin a sequence, and that may end one.
missing_label : str, int or None, default None
    A label that says, as None and NaN always do, that the label of a position is not known; -1 is
    common. Training then maximises the probability of the labels that are known.
group_column : str, int or None, default None
    Name or number of a column of X that says which sequence each row of a flat X belongs to. It is
    no feature. A table then carries its groups to wherever scikit-learn hands it on without them,
    and needs none beside it; a table without the column of that name needs `groups`.
parents_column : str, int or None, default None
    Name or number of a column of X, or a key of all dicts, that holds the parent of each position
    in a tree-shaped graph, as the argument `parents` of `fit` does. It is no feature. A table then
    carries its parents to wherever scikit-learn hands it on.
parents_format : {"zero_based", "conllu"}, default "zero_based"
    How parents are counted: from 0 on, with -1 for a root; or from 1 on, with 0 for a root, as the
    heads of CoNLL-U are. None and NaN stand for a root in both.
queries : hedgerow.relational.RelationalFeatures or None, default None
    How queries about facts are made, where X holds facts: `hedgerow.relational.Atoms`, or lists
    whose positions are sets of atoms. They are the attributes of the model, which keeps them:
    ``queries_``. None: Atoms are turned into attributes by ``RelationalFeatures()``.
class_weight : dict, "balanced" or None, default None
    How much a position counts in training, by its label: a weight for each label (1 for those left
    out), or "balanced" for weights inversely proportional to how often a label occurs. The term
    log P(y_t | labels before) of the likelihood is multiplied by the weight. All labels must be
    known.
label_costs : "hamming", float, dict or matrix, default "hamming"
    What mistakes cost where the objective is "softmax_margin" (or "max_margin"): "hamming", 1 each;
    a number, as much each; ``{"A": 5}``, 5 for any other label where "A" is true;
    ``{"A": {"B": 5}}``, 5 for "B" where "A" is true, mistakes left out costing 1; or a (K, K)
    matrix with a row for each true label and a column for each predicted one, in the order of
    ``classes_``, and 0 on the diagonal. Where the label is not known nothing costs anything. Costs
    are added to scores, which are logarithms of odds: a cost of 3 asks for odds 20 times as high.
f1_labels : list of labels or None, default None
    Labels whose F1 the objective "f1" is about. None: all of them; where labels look like chunks
    (B-NP, I-NP, O) all but O.
f1_average : {"macro", "micro"}, default "macro"
    The mean of the F1 of each of these labels, or one F1 from the sums of their counts.
n_jobs : int or None, default None
    Number of threads; None or -1 is all cores. The result does not depend on it.
verbose : int, default 0
    1 shows progress: a bar on a terminal or in a notebook, else a few lines. 2: always lines.
"""

ATTRIBUTES = """
classes_ : (K,) array
    The labels, sorted.
decode_ : {"viterbi", "marginal"}
    How `predict`, `score` and all else that labels positions decodes by default.
label_patterns_ : list of tuples of labels
    The label patterns that have weights.
queries_ : hedgerow.relational.RelationalFeatures
    The queries, fitted; only if X holds facts.
model_ : hedgerow.model.Model
    The trained model: labels, columns of X, potentials and a trellis.
"""


def explain_shared(estimator: Kind) -> Kind:
    """Put the explanations into the docstring of an estimator, where it has their marks."""
    text = cleandoc(estimator.__doc__ or "")
    text = text.replace("<parameters of both estimators>", PARAMETERS.strip())
    estimator.__doc__ = text.replace("<attributes of both estimators>", ATTRIBUTES.strip())
    return estimator
