"""The table of kinds."""

from abuse import metamorphic, smoke
from abuse.kind import Kind

__all__ = ["KINDS"]

KINDS: dict[str, Kind] = {
    kind.name: kind for module in (smoke, metamorphic) for kind in module.KINDS
}
