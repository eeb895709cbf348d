"""Engine ``block``: the kernel target dm-dss, controlled from here.

``kmod/`` holds the C. Its decision core knows no kernel header: the module
and a shared library are built from the same source, and the library makes
the decisions of the reference in :mod:`swift_dss.strategy.eviction`.
"""
