"""Hear: events of the object servers become rows of the index.

Holds the socket, the spool of missed events, the ledger, and versions that
left without an event.
In: datagrams and spool files.
Out: rows. A sender never waits.
"""
