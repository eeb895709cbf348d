"""A cluster of many nodes on one machine; :class:`bed.Bed` is it.

Holds namespaces with a network each, their nodes, and what happens to them.
In: a plan of nodes, and changes to a running cluster.
Never: an address outside its own namespaces.
"""
