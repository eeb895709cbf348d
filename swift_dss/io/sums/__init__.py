"""Sums of bytes: digests of versions, and sums of blocks."""
