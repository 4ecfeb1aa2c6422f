"""The table of kinds."""

from abuse import bad_places, commands, model_files, odd_values
from abuse.kind import Kind

__all__ = ["KINDS"]

KINDS: dict[str, Kind] = {
    kind.name: kind
    for module in (model_files, odd_values, commands, bad_places)
    for kind in module.KINDS
}
