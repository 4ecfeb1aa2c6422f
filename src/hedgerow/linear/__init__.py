"""Linear potentials: weights on attributes, and how they are trained."""
