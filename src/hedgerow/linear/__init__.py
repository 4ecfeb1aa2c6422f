"""Linear potentials: attributes, their weights, and how weights are shown and stored."""
