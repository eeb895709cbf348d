"""Hear: events of the object servers become rows of the index.

Holds the socket, the spool of missed events, and the ledger.
In: datagrams and spool files. Out: rows.
Never: a sender that waits.
"""
