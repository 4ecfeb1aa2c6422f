"""Metamorphic tests: relations between two runs that differ in something irrelevant."""

from abuse.metamorphic import (
    checkpoint,
    columns,
    copies,
    forms,
    graphs,
    init,
    labels,
    order,
    process,
    threads,
    weights,
    workers,
)

__all__ = ["KINDS"]

MODULES = (
    *(order, forms, labels, columns, weights, threads),
    *(copies, checkpoint, init, process, graphs, workers),
)
KINDS = [kind for module in MODULES for kind in module.KINDS]
