"""The wrong twin: a ``.dss`` reader that believes what it reads.

It is what a first draft looks like. The campaign must see through it: if
this one passed, the table of evils would prove nothing.
"""

from __future__ import annotations

import struct
from typing import Optional

from swift_dss.core.errors import BadClassInput
from swift_dss.core.spans import ClassMap, Span


class NaiveDecoder:
    """Holds everything, checks the magic, trusts the counts."""

    def __init__(self, content_length: Optional[int] = None,
                 object_bytes: Optional[int] = None) -> None:
        del content_length, object_bytes
        self._raw = b''
        self.class_map: Optional[ClassMap] = None

    def feed(self, chunk: bytes) -> bytes:
        """Keep the chunk."""
        self._raw += chunk
        return b''

    def finish(self) -> None:
        """Take it all apart."""
        if self._raw[:2] != b'DS':
            raise BadClassInput('naive', 'magic', 0)
        _, version, width, sectors, blocks, _ = struct.unpack_from(
            '>2sBBIII', self._raw)
        if version == 1:
            table = self._raw[16:16 + blocks * width:width or 1]
            self.class_map = ClassMap.from_spans(
                Span(at * sectors * 512, sectors * 512, class_id)
                for at, class_id in enumerate(table))
            return
        count, = struct.unpack_from('>I', self._raw, 16)
        spans = []
        for at in range(min(count, 4096)):
            offset, length = struct.unpack_from(
                '>QQ', self._raw, 21 + at * 17)
            spans.append(Span(offset, length, self._raw[37 + at * 17]))
        self.class_map = ClassMap(tuple(spans), 0)
