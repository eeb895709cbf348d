"""Engine ``block``: the kernel target dm-dss, controlled from here.

Holds tables, messages, attach at boot, and the tools of its metadata.
``kmod/`` holds the C. Its decision core knows no kernel header: the tests
build it as a shared library too, and hold it to a reference in Python.

In: an operator's verbs, and a class table.
Never: a device that holds data of others, without an order to take it.
"""
