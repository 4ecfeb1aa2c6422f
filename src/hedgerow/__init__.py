"""hedgerow: conditional random fields for sequences."""

from typing import TYPE_CHECKING, Any

from hedgerow.version import __version__

if TYPE_CHECKING:
    from hedgerow.checkpoint import Checkpoint
    from hedgerow.data_warning import DataWarning
    from hedgerow.linear_crf import LinearCRF
    from hedgerow.loading import load
    from hedgerow.state import ModelFileError
    from hedgerow.tree_crf import TreeCRF

__all__ = [
    "Checkpoint",
    "DataWarning",
    "LinearCRF",
    "ModelFileError",
    "TreeCRF",
    "__version__",
    "load",
]

_HOMES = {
    "Checkpoint": "hedgerow.checkpoint",
    "DataWarning": "hedgerow.data_warning",
    "LinearCRF": "hedgerow.linear_crf",
    "ModelFileError": "hedgerow.state",
    "TreeCRF": "hedgerow.tree_crf",
    "load": "hedgerow.loading",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: importing hedgerow alone is quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
