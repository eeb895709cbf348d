"""Large objects: which class each byte of a segment gets.

Holds how a class map is cut over segments, and who wins where they are shared.
In: uses of segments, claims of manifests. Out: class maps.
Never: a request, or a segment's name that means anything.
"""
