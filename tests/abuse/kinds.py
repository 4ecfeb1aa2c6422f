"""The table of kinds."""

from abuse import (
    bad_places,
    commands,
    differential,
    explanations,
    metamorphic,
    model_files,
    odd_values,
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
    odd_values,
    commands,
    bad_places,
)

KINDS: dict[str, Kind] = {kind.name: kind for module in MODULES for kind in module.KINDS}
