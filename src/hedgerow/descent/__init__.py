"""Descent: training of linear weights, by L-BFGS, OWL-QN or the bundle method."""
