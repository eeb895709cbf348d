"""Bytes to core values and back. Pure: no I/O, no clock.

Holds headers, the ``.dss`` form, records, control messages and their names.
In: bytes and texts, whoever wrote them. Out: values of ``core``.
Never: a value of bytes that were not checked first.
"""
