"""Abuse: random trainings, damaged files, odd input and bad moments, until something gives way.

``make test`` runs a small, fixed part; ``make abuse MINUTES=n`` as much as fits into the time.
Every failure is shrunk and saved under ``cases``, and each file there is a test from then on.
"""
