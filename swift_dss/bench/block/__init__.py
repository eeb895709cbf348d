"""Benchmarks of block engines: dm-dss beside dm-cache, bcache and others.

Holds loads, targets, and the guest that runs them.
In: devices that hold nothing of worth, or modelled ones.
Never: a write to a device that the caller did not name.
"""
