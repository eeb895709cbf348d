"""The same orders over rows of the index, for the daemon."""
