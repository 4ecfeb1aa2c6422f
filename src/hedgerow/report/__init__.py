"""The report page: a model and its performance on some data, as one HTML file."""

from hedgerow.report.page import write_report

__all__ = ["write_report"]
