"""Training: the training set, eval sets, and the training loop for any update."""
