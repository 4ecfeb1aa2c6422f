"""Training and prediction on one GPU. Nothing here is imported before it is used."""
