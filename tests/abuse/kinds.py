"""The table of kinds."""

from abuse import (
    bad_places,
    commands,
    differential,
    exceptions,
    exits,
    explanations,
    forks,
    interrupts,
    metamorphic,
    model_files,
    odd_facts,
    odd_values,
    threads,
    trellises,
)
from abuse.kind import Kind

__all__ = ["KINDS"]

MODULES = (
    differential,
    explanations,
    trellises,
    metamorphic,
    model_files,
    odd_facts,
    odd_values,
    commands,
    bad_places,
    threads,
    forks,
    interrupts,
    exceptions,
    exits,
)

KINDS: dict[str, Kind] = {kind.name: kind for module in MODULES for kind in module.KINDS}
