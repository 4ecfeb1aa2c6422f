"""Shared parameters: those that both estimators have, explained once.

The docstring of each estimator has a placeholder; `explain_shared` replaces it by the text here, so
that ``help``, notebooks and the reference show all of them.
"""

from __future__ import annotations

from inspect import cleandoc
from typing import TypeVar

__all__ = ["explain_shared"]

Kind = TypeVar("Kind", bound=type)

PARAMETERS = """
decode : {"auto", "viterbi", "marginal"}, default "auto"
    The decoder: "viterbi" finds the most probable labelling of each sequence as a whole; "marginal"
    finds the most probable label of each position. "auto" chooses the one with the higher accuracy
    on the last `eval_set`, or on the training sequences that are held out. Without either, it
    depends on the objective: "viterbi" for "max_margin", "marginal" for all others except
    "likelihood" and "softmax_margin". For these two it is "viterbi" if labels look like chunks
    (B-NP, I-NP, O), or if it is significantly more accurate in a short trial on the training
    sequences, otherwise "marginal"; see the guide "Which decoder?". ``decode_`` is the decoder that
    was chosen.
early_stopping_rounds : int or None, default None
    Early stopping: stop if the metric on the `eval_set`, the last one if there are several, has not
    improved for this many rounds or iterations, and keep the model of the best one. Without an
    `eval_set` some training sequences are held out (`validation_fraction`). Training never stops
    during warm-up rounds or iterations (`warm_rounds`, `warm_iter`).
early_stopping_metric : str or None, default None
    The metric for early stopping: "loss", "accuracy", or the name of one in `eval_metric`. None:
    the last one of `eval_metric`, or "loss".
eval_metric : str, callable, list, dict or None, default None
    Metrics on the `eval_set` after each round or iteration, in addition to loss and accuracy;
    greater is better. "sequence_accuracy", the share of sequences without an error; "chunk_f1",
    "chunk_precision" or "chunk_recall"; the name of one of scikit-learn's scorers that compare
    labels, such as "f1_macro"; a scorer from `hedgerow.scorers.make_position_scorer` or
    scikit-learn's ``make_scorer``; or a function, called as ``metric(y_true, y_pred)`` with two
    lists of label lists. Several metrics: a list, or a dict by name.
validation_fraction : float or None, default 0.1
    Share of the training sequences that early stopping holds out if there is no `eval_set`. The
    model is not trained on them. They are drawn with the seed `random_state` (None, or a
    `RandomState`, counts as the seed 0 here), so they are the same every time. At least one
    sequence is held out. A sequence with a label that occurs in no other one is not held out,
    unless this is true of all sequences. If there is only one sequence, its last part is held out.
    Loss and accuracy on held-out sequences are weighted as in training (`sample_weight`,
    `class_weight`); other metrics are not. None: an `eval_set` is required.
callbacks : list of callables or None, default None
    Functions that are called after every round or iteration with a
    `hedgerow.training.stopping.Step`; training stops when one of them returns a true value.
order : int, default 1
    Number of previous labels that a label depends on directly. 1: every pair of neighbouring
    labels has a weight. m > 1: every label pattern of 2 to m + 1 labels that occurs in training has
    one; the time grows with the number of patterns, not with a power of the number of labels. 0:
    labels do not depend on each other; a `TreeCRF` is then LogitBoost.
min_pattern_count : int, default 0
    Leave out label patterns that occur fewer times than this in training. With 0, order 1 has all
    pairs of labels; with 1, only the pairs that occur.
label_patterns : list of tuples of labels or None, default None
    The label patterns that have weights, instead of those that `order` finds. Here and in the
    constraints below, every label must occur in y. Lists, sets (which are sorted), arrays and
    Series are accepted.
constraints : "BIO", "IOB1", "BILOU", "BIOES" or None, default None
    Allow only labellings that follow this chunk labelling scheme. Constraints hold in training too:
    probabilities are normalised over the allowed labellings only.
allowed : list of (label before, label) or None, default None
    Pairs of neighbouring labels that may occur. All other pairs are forbidden.
forbidden : list of (label before, label) or None, default None
    Pairs of neighbouring labels that may not occur. All other pairs are allowed.
start_labels : list of labels or None, default None
    Labels that a sequence may start with. None: any.
end_labels : list of labels or None, default None
    Labels that a sequence may end with. None: any.
missing_label : str, int or None, default None
    A label that marks positions whose label is not known, such as -1; None and NaN always do.
    Training then maximises the probability of the labels that are known.
group_column : str, int or None, default None
    Name or number of the column of X with the sequence id of each row, for a flat X. It is not used
    as a feature. The argument `groups` is then not needed, even where scikit-learn passes X without
    groups. A table without this column needs `groups`.
parents_column : str, int or None, default None
    Name or number of the column of X, or key of the dicts, with the parent of each position in a
    tree-shaped graph. It is not used as a feature. The argument `parents` of `fit` is then not
    needed, even where scikit-learn passes X without parents.
parents_format : {"zero_based", "conllu"}, default "zero_based"
    How parents are numbered: from 0, with -1 for a root; or from 1, with 0 for a root, like the
    heads in CoNLL-U files. None and NaN mark a root in both.
queries : hedgerow.relational.RelationalFeatures or None, default None
    If X contains facts: the transformer that finds queries, which are conditions on facts. The
    queries that hold at a position are its attributes. ``queries_`` is the fitted copy. None:
    ``RelationalFeatures()`` if X is `hedgerow.relational.Atoms`; lists whose positions are sets of
    facts need this parameter.
class_weight : dict, "balanced" or None, default None
    Weight of each position in training, by its label: a weight for each label (1 for those left
    out), or "balanced" for weights inversely proportional to how often a label occurs. The term log
    P(y_t | labels before) of the likelihood is multiplied by the weight. Not supported with missing
    labels.
label_costs : "hamming", float, dict or matrix, default "hamming"
    Costs of errors for the objective "softmax_margin" (or "max_margin"). "hamming": 1 for each
    error. A number: that much for each error. ``{"A": 5}``: 5 for any other label where "A" is
    true. ``{"A": {"B": 5}}``: 5 for "B" where "A" is true; errors that are left out cost 1. Or a
    (K, K) matrix with one row per true label and one column per predicted label, in the order of
    ``classes_``, and 0 on the diagonal. Positions whose label is not known cost nothing. Costs are
    added to the scores of wrong labels, which are log-odds: if a wrong label costs 3, the odds of
    the true label against it must be 20 times as high to make up for that.
f1_labels : list of labels or None, default None
    Labels whose F1 the objective "f1" maximises. None: all labels; where labels look like chunks
    (B-NP, I-NP, O), all but O.
f1_average : {"macro", "micro"}, default "macro"
    "macro": the mean of the F1 of these labels. "micro": one F1 from the sums of their counts.
n_jobs : int or None, default None
    Number of threads; None or -1 means all cores, -2 all but one. The result does not depend on it.
verbose : int, default 0
    1: show progress, as a bar in a terminal or notebook, otherwise in lines. 2: always in lines.
"""

ATTRIBUTES = """
classes_ : (K,) array
    The labels, sorted.
decode_ : {"viterbi", "marginal"}
    The decoder that `predict`, `score` and other methods use by default.
label_patterns_ : list of tuples of labels
    The label patterns that have weights.
queries_ : hedgerow.relational.RelationalFeatures
    The fitted transformer with the queries; only if X holds facts.
model_ : hedgerow.model.Model
    The trained model: labels, columns of X, potentials and a trellis.
"""


def explain_shared(estimator: Kind) -> Kind:
    """Insert the shared explanations into the docstring of an estimator, at its placeholders."""
    text = cleandoc(estimator.__doc__ or "")
    text = text.replace("<parameters of both estimators>", PARAMETERS.strip())
    estimator.__doc__ = text.replace("<attributes of both estimators>", ATTRIBUTES.strip())
    return estimator
