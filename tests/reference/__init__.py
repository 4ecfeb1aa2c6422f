"""Slow, obvious NumPy twins of the kernels: the oracles of the tests."""
