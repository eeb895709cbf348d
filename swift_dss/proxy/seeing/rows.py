"""Rows of listings: the class behind the content type becomes a field.

``dss_class`` is the class of the object as HEAD has it: its name in the class
table, else its id as text. Symbolic links have none: null. Subdirectories of
a listing with a delimiter do not have the field.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Optional

from swift_dss.core.classes import ClassTable
from swift_dss.core.limits import UNCLASSIFIED
from swift_dss.wire import names

CLASS = 'dss_class'
Row = Dict[str, Any]

_MARK = names.LISTED_CLASS
_KIND = re.compile(r'(?s)(.*)%s(\d{1,2})' % re.escape(_MARK))
#: Swift's symlink has the target of a link behind the ETag of its row.
_LINK = '; symlink_target='
#: A content type and the field behind it, as container servers write rows. A
#: quote inside a name has a backslash before it, so no name looks like this.
_BEHIND = b'", "last_modified": "'
_FIRST = re.compile(rb'"content_type": "[^"\\]*(?:\\.[^"\\]*)*'
                    + re.escape(_BEHIND))


def take_class(row: Row) -> Optional[int]:
    """Take the class off the content type of a row.

    :returns: None for a subdirectory or a link
    """
    kind = row.get('content_type')
    if kind is None:
        return None
    match = _KIND.fullmatch(kind)
    if match is not None:
        row['content_type'] = match.group(1)
    if _LINK in row.get('hash', ''):
        return None
    return UNCLASSIFIED if match is None else int(match.group(2))


def show_class(row: Row, class_id: Optional[int], table: ClassTable) -> None:
    """Give the row of an object, or of a link, its field."""
    if 'name' in row:
        row[CLASS] = None if class_id is None else table.name_of(class_id)


def with_classes(text: bytes, table: ClassTable) -> bytes:
    """A listing in JSON whose rows have the field.

    Ten thousand rows are a few replacements of bytes. Rows that could be
    misread so are parsed.
    """
    first = text.find(b'"content_type": "')
    if first < 0 or _LINK.encode() in text or \
            _FIRST.match(text, first) is None:
        return _parsed(text, table)
    before = b'", "%s": ' % CLASS.encode()
    plain = before + _word(UNCLASSIFIED, table) + _BEHIND[1:]
    marked = re.compile(re.escape(_MARK.encode()) + rb'(\d{1,2})'
                        + re.escape(plain))
    changed = text.replace(_BEHIND, plain)
    at = changed.find(_MARK.encode())
    while at >= 0:
        # All rows of a class at once; those of others follow.
        match = marked.match(changed, at)
        if match is None:
            return _parsed(text, table)
        changed = changed.replace(
            match.group(0),
            before + _word(int(match.group(1)), table) + _BEHIND[1:])
        at = changed.find(_MARK.encode(), at)
    return changed


def _word(class_id: int, table: ClassTable) -> bytes:
    return json.dumps(table.name_of(class_id)).encode('ascii')


def _parsed(text: bytes, table: ClassTable) -> bytes:
    listed = json.loads(text)
    for row in listed:
        show_class(row, take_class(row), table)
    return json.dumps(listed).encode('ascii')
