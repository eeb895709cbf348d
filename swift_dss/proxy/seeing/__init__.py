"""Listings that show classes and tiers, or the rows of one class alone.

Holds the query's words, the fields of rows, and the pages that a filter makes.
In: a client's GET of a container. Out: rows with ``dss_class``, ``dss_tier``.
Never: a listing that nobody asked this of; ``proxy.listing`` has those.
"""
