"""Prefetch: strategies hear of reads, and bytes are fetched ahead.

Holds the book of fetched parts, objects and manifests as strategies know
them, and the spare rate of the link.
In: reads. Out: fetches.
Never: bytes of one account for another's reader.
"""
