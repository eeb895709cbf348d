"""Rows of containers: the class of each object, for listings.

Holds what an object server adds to the update of a container, and the way to
take it out of container databases again.
In: headers of updates, class maps, container databases.
Never: a proxy's listing; ``proxy.listing`` reads what is written here.
"""
