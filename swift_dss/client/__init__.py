"""For client programs: make and read classified objects.

Holds the ``.dss`` form of files, bundles, and lists of classes.
In: a program's bytes and their classes.
Never: a server's module; a client has none of them installed.
"""
