"""hedgerow: conditional random fields for sequences."""

from typing import TYPE_CHECKING, Any

from hedgerow.version import __version__

if TYPE_CHECKING:
    from hedgerow import comm as comm
    from hedgerow import dask as dask
    from hedgerow import datasets as datasets
    from hedgerow import files as files
    from hedgerow import inspection as inspection
    from hedgerow import metrics as metrics
    from hedgerow import model_selection as model_selection
    from hedgerow import objectives as objectives
    from hedgerow import plots as plots
    from hedgerow import preprocessing as preprocessing
    from hedgerow import relational as relational
    from hedgerow import report as report
    from hedgerow import scorers as scorers
    from hedgerow import stats as stats
    from hedgerow import trellis as trellis
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
_MODULES = (
    "comm",
    "dask",
    "datasets",
    "files",
    "inspection",
    "metrics",
    "model_selection",
    "objectives",
    "plots",
    "preprocessing",
    "relational",
    "report",
    "scorers",
    "stats",
    "trellis",
)


def __getattr__(name: str) -> Any:
    """Import a public name or module when it is first used, so that `import hedgerow` is fast."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"hedgerow.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
