"""Trees: columns as bins, tree growing, and forests."""
