"""Boosted trees as potentials: what training them needs to know about a chain."""
