"""Datasets that are included in the package."""

from hedgerow.datasets.ocr import OCR, load_ocr

__all__ = ["OCR", "load_ocr"]
