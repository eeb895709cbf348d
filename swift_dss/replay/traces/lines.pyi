"""Lines of a native trace to columns (lines.c)."""

from typing import Any, Tuple

def read_lines(text: bytes, begin: int, has_clients: bool, most: int,
               row: int, at_ms: Any, verbs: Any, objects: Any, starts: Any,
               lengths: Any, sizes: Any, class_ids: Any, accounts: Any,
               clients: Any) -> Tuple[int, int]:
    """Read lines until one is not as they mostly are, or ends beyond the
    text, or the columns are full.

    :param begin: where in the text the next line begins
    :param most: bytes of an object
    :param row: the next row of the columns, buffers of eight bytes a row,
        but for verbs and class ids of one
    :returns: ``begin`` and ``row`` after the last line that was read
    :raises ValueError: columns differ in length, or a place is none
    """

def hashed(name: bytes) -> int:
    """The number of an object or account of that name in columns."""
