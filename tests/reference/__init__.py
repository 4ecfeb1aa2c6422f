"""Slow, obvious NumPy versions of the kernels: the oracles of the tests."""
