"""Benchmarks of block engines: dm-dss beside dm-cache, bcache and others."""
