"""Relational sequences: positions are sets of facts, and queries about them are attributes."""

from hedgerow.relational.atoms import Atoms, AtomSequence
from hedgerow.relational.fact_reader import At
from hedgerow.relational.features import RelationalFeatures

__all__ = ["At", "AtomSequence", "Atoms", "RelationalFeatures"]
