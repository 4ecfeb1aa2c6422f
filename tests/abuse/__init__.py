"""Abuse (fuzzing): random training runs, damaged files, odd input and badly timed signals.

``make test`` runs a small, fixed part; ``make abuse MINUTES=n`` runs for that long. Every failure
is shrunk and saved in ``cases``, and each file there is a test from then on.
"""
