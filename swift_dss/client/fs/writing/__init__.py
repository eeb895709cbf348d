"""One object on its way up, whole or in segments.

Holds what cuts a file, sends it, and finds the classes of its format.
In: bytes and the classes that a program gave them.
Out: PUTs of segments and objects, and POSTs of classes.
Never: an object under its name before all of it is there.
"""
