"""The table of kinds."""

from abuse import exceptions, exits, forks, interrupts, smoke, threads
from abuse.kind import Kind

__all__ = ["KINDS"]

KINDS: dict[str, Kind] = {
    kind.name: kind
    for module in (smoke, threads, forks, interrupts, exceptions, exits)
    for kind in module.KINDS
}
