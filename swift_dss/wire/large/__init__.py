"""Large objects: stored manifests, and claims on segments.

Holds the formats that Swift and segments' metadata have of them.
In: bytes and header text. Out: entries, spans.
Never: an entry or a claim that was not checked whole.
"""
