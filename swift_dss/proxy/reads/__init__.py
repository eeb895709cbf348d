"""Which copy a GET is read from.

Holds objects that no node has, hot objects, slow devices.
In: a request. Out: the answer of the best node, in one round or two.
Never: a 404 while a node may have the object.
"""
