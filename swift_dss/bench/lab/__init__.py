"""Benchmarks in the kernel lab, in virtual time.

Holds the guest's cluster, its links, and the traffic of the paper's cases.
In: a kernel, and a case to run.
Never: a second of real time as a result.
"""
