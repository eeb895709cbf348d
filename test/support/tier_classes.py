"""The class table of tests that look at tiers."""

from __future__ import annotations

#: Class 1: SSD; 2: never on the SSD; 3: on both at once.
TIERS = """\
[class:0]
name = unclassified
rank = 0
[class:1]
name = gold
rank = 90
[class:2]
name = cold
rank = 10
allocate = never
[class:3]
name = safe
rank = 50
write = through
"""
