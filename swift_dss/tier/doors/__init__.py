"""Doors: how operators and readers reach the daemon.

Holds the admin socket, the fetch socket, and the status page.
In: requests as JSON lines, reads that lack bytes, HTTP on loopback.
Out: answers, bytes, pages.
Never: state that outlives an answer.
"""
