"""Supported settings of training on a device, and the memory that it needs."""

from __future__ import annotations

from hedgerow.boosting.settings import Settings, TreeParameters
from hedgerow.counting import count_of
from hedgerow.cuda.device import Device
from hedgerow.cuda.layout import Layout
from hedgerow.cuda.learner import OPEN_NODE, count_nodes
from hedgerow.objectives import Likelihood, OfMarginals, TrainingObjective
from hedgerow.training.training_set import TrainingSet
from hedgerow.trees.columns import Columns
from hedgerow.trellis import Chain

__all__ = ["bytes_of_training", "check_memory", "check_supported"]

MAX_LABELS = 128
MAX_LEAVES = 1024
GIB = 2**30


def check_supported(
    crf: TreeParameters,
    data: TrainingSet,
    settings: Settings,
    objective: TrainingObjective,
    *,
    refines: bool,
) -> None:
    """Raise ValueError, with the name of the setting, if a device does not support one."""
    targets, rules = data.targets, settings.growth_rules
    refused = {
        "transitions='trees'": crf.transitions != "weights",
        "order above 1, or label_patterns of more than two labels": data.grammar.patterns.longest
        > 2,
        "constraints, allowed, forbidden, start_labels and end_labels": data.grammar.constraints
        is not None,
        f"more than {MAX_LABELS} labels": targets.n_labels > MAX_LABELS,
        "parents, which make tree-shaped graphs": targets.parents is not None,
        "trees that extend queries about facts (set max_literals=1 to turn this off)": refines,
        "missing labels": targets.partial is not None,
        "objective='softmax_margin'": not isinstance(objective, (Likelihood, OfMarginals)),
        "base models that score label pairs": any(each.has_edges for each in data.given),
        f"missing={crf.missing!r}": crf.missing != "learned",
        f"curvature={crf.curvature!r}": crf.curvature != "mixing",
        "direction='conjugate' or line_search=True": settings.have_directions,
        "sampling_method='gradient_based'": settings.sampling.share < 1,
        "monotone_constraints and interaction_constraints": settings.column_rules is not None,
        f"trees with more than {MAX_LEAVES} leaves": rules.max_leaves > MAX_LEAVES,
    }
    for what, is_asked_for in refused.items():
        if is_asked_for:
            raise ValueError(f"device='cuda' does not support {what}; pass device='cpu'")
    if not isinstance(data.trellis, Chain):
        raise ValueError(
            "device='cuda' needs a first-order chain with weights for at least a quarter of all "
            "label pairs, which this model does not have; lower min_pattern_count, list more pairs "
            "in label_patterns, or pass device='cpu'"
        )


def bytes_of_training(
    columns: Columns,
    settings: Settings,
    offsets: range,
    n_labels: int,
    objective: TrainingObjective,
    *,
    has_position_weights: bool,
) -> tuple[int, int]:
    """Memory that training takes: for each row, which is a position or padding, and for trees."""
    n_words = -(-columns.n_columns // 4)
    # Scores before and after a step, marginals, derivatives, and two lists of examples; bins by row
    # and by column; messages, gammas, labels, where rows are; and the back pointers of Viterbi.
    by_row = 57 * n_labels + columns.n_columns + 4 * n_words + 28
    if not isinstance(objective, Likelihood):
        by_row += 40 * n_labels  # slopes, a direction, and messages and derivatives along it
    if has_position_weights:
        by_row += 8 * n_labels + 8  # slopes, and the weights
    if settings.sampling.negative_ratio > 0:
        by_row += 8  # what draws of examples depend on
    max_nodes, _, _ = count_nodes(settings.growth_rules)
    slots = int((columns.n_bins + 2).sum()) * len(offsets)
    by_tree = (1 + max_nodes // 2) * slots * 16 + max_nodes * (64 + OPEN_NODE + 4)
    return by_row, n_labels * by_tree


def check_memory(
    device: Device,
    layout: Layout,
    columns: Columns,
    settings: Settings,
    offsets: range,
    n_labels: int,
    objective: TrainingObjective,
    *,
    has_position_weights: bool,
) -> None:
    """Raise MemoryError if training does not fit into the memory of a device."""
    by_row, of_trees = bytes_of_training(
        columns, settings, offsets, n_labels, objective, has_position_weights=has_position_weights
    )
    needed, free = by_row * layout.n_rows + of_trees, device.free_bytes()
    if needed > free:
        raise MemoryError(
            f"training on the GPU would take about {needed / GIB:,.1f} GiB ({by_row} bytes for "
            f"each of {count_of(layout.n_rows, 'position')}, padding included, and "
            f"{of_trees / GIB:,.1f} GiB for histograms), but only {free / GIB:,.1f} GiB are free; "
            "use fewer sequences, a smaller max_bins, window or max_leaves, or device='cpu'"
        )
