"""hedgerow: conditional random fields for sequences."""

from hedgerow.linear_crf import LinearCRF
from hedgerow.persist import ModelFileError, load

__all__ = ["LinearCRF", "ModelFileError", "load"]
__version__ = "0.1.0"
