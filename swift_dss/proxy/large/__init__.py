"""Large objects: the class of a manifest is the class of its data.

Holds the reading of manifests, and the way of classes to segments.
In: a manifest and its class map. Out: POSTs to segments, and what they have.
Never: a class for a segment that the client may not write.
"""
