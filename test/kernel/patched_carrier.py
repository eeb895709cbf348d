"""The carrier ``classified`` and a real object server. Runs in a guest.

``patched_carrier.py DEVICE KIND`` writes spans through the carrier that
``auto`` takes and leaves them to the flusher, reads them cold, then sends a
classified PUT and GET to a real object server (functional/kernel_view.py).
Prints a line of JSON: the carrier and why the better ones are not, the
wrong spans of each, and the table of the object server.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, List, Tuple

from patched_view import drain, limit, mounted

from kernel_view import (
    CLASS_MAP, SIZE, Issue, followed, observe, seen_by_span, table,
    wrong_rows)
from support.nodes.object_node import running_node

from swift_dss.core.spans import Span
from swift_dss.io import carriers
from swift_dss.io.classified import (
    Piece, expect_random, read_exact, write_pieces)

Seen = Dict[str, List[Tuple[Span, Dict[int, int]]]]


def by_carrier(carrier: carriers.Carrier, device: str, path: str) -> Seen:
    """Spans through the carrier; nobody syncs."""
    body = os.urandom(SIZE)
    view = memoryview(body)
    spans = list(CLASS_MAP.split(0, SIZE))
    writes: List[Issue] = []
    reads: List[Issue] = []
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with followed(device, writes):
        write_pieces(carrier, fd, [
            Piece(span.offset, span.length, span.class_id,
                  [view[span.offset:span.end]]) for span in spans])
        carrier.leave()
        drain()
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    expect_random(fd)
    with followed(device, reads):
        data = b''.join(
            read_exact(carrier, fd, span.length, span.offset, span.class_id)
            for span in spans)
    assert data == body
    os.close(fd)
    return {'write': seen_by_span(path, CLASS_MAP, SIZE, writes, 'W'),
            'read': seen_by_span(path, CLASS_MAP, SIZE, reads, 'R')}


def main(device: str, kind: str) -> int:
    limit('dirty_expire_centisecs', 100)
    limit('dirty_writeback_centisecs', 50)
    choice = carriers.choose('auto')
    out: Dict[str, Any] = {'carrier': choice.carrier.name,
                           'refused': choice.refused}
    with mounted(device, kind) as folder:
        seen = by_carrier(choice.carrier, device,
                          os.path.join(folder, 'spans'))
        out['carrier_wrong'] = wrong_rows(seen)
        out['carrier_table'] = table(seen)
        with running_node(os.path.join(folder, 'node'),
                          carrier='auto') as node:
            served = observe(node, device)
        out['server_wrong'] = wrong_rows(served)
        out['server_table'] = table(served)
    print(json.dumps(out))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2]))
