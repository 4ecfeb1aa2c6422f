"""Colours of labels: a label looks the same in every plot and on the report page."""

from __future__ import annotations

__all__ = ["COLOURS", "HATCHES"]

# Colours that stay distinct for all common kinds of colour blindness (Okabe and Ito), and hatches
# for when there are more labels than colours: label k has colour k % 7 and hatch k // 7.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
HATCHES = ("", "////", "....", "xxxx")
