"""Orders of eviction over chunks: the reference of the kernel's core."""
