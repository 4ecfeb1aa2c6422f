"""The table of kinds."""

from abuse import smoke
from abuse.kind import Kind

__all__ = ["KINDS"]

KINDS: dict[str, Kind] = {kind.name: kind for module in (smoke,) for kind in module.KINDS}
