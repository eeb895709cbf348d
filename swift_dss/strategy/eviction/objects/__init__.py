"""Orders of eviction over objects of any size, for replay."""
