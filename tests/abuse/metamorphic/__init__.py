"""Metamorphic kinds: what must hold between two runs that differ in what should not matter."""

from abuse.metamorphic import columns, copies, forms, init, labels, order, threads, weights

__all__ = ["KINDS"]

KINDS = [
    kind
    for module in (order, forms, labels, columns, weights, threads, copies, init)
    for kind in module.KINDS
]
