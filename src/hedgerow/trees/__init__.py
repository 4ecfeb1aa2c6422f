"""Trees: the columns they split, as bins."""
