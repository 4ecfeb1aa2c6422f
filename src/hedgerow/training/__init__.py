"""Training: the training set, eval sets, and the loop around any update that learns."""
