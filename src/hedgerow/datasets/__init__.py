"""Data that come with the package."""

from hedgerow.datasets.ocr import OCR, load_ocr

__all__ = ["OCR", "load_ocr"]
