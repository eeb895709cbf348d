"""Ask and tell the door of the S3."""

from __future__ import annotations

import json
import socket
from typing import Any, Dict, List, Optional

from swift_dss.core.errors import DssError

_SECONDS = 30.0


class S3Door:
    """The requests and faults of a bed's S3.

    :param path: the door's socket
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def counts(self, reset: bool = False) -> Dict[str, Any]:
        """Node to operation (``PUT``, ``LIST``, ...) to ``requests``,
        ``sent`` and ``got`` (bytes) and ``status`` (how many of each).

        :param reset: begin at 0
        """
        return dict(self._ask(verb='counts', reset=reset))

    def count(self, operation: str, node: str = '') -> int:
        """How many requests of a kind there were.

        :param node: whose requests; '' is all nodes
        """
        return sum(by_kind.get(operation, {}).get('requests', 0)
                   for name, by_kind in self.counts().items()
                   if node in ('', name))

    def requests(self, operation: str = '',
                 key: str = '') -> List[Dict[str, Any]]:
        """The latest requests since the last reset, the oldest first: node,
        operation, key, sent, got, status, time, seconds, fault.

        :param operation: only these
        :param key: only those whose key has this in it
        """
        return [asked for asked in self._ask(verb='requests')
                if operation in ('', asked['operation'])
                and key in asked['key']]

    def fault(self, kind: str, **options: Any) -> None:
        """From now on something is wrong (:class:`faults.Fault` has the
        options).

        :raises DssError: it makes no sense
        """
        self._ask(verb='fault', fault=dict(options, kind=kind))

    def faults(self) -> List[Dict[str, Any]]:
        """The faults in force."""
        return list(self._ask(verb='faults'))

    def heal(self) -> int:
        """End all faults, and release requests that hang.

        :returns: how many faults there were
        """
        return int(self._ask(verb='heal'))

    def name(self, address: str, node: str) -> None:
        """Name the node at an address, if it came later."""
        self._ask(verb='name', address=address, node=node)

    def _ask(self, **order: Any) -> Any:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SECONDS)
            try:
                connection.connect(self._path)
            except OSError as err:
                raise DssError('the door of the S3 does not answer on %s: '
                               '%s' % (self._path, err.strerror)) from err
            connection.sendall(json.dumps(order).encode() + b'\n')
            with connection.makefile('rb') as lines:
                answer: Optional[Dict[str, Any]] = json.loads(
                    lines.readline() or b'{"error": "no answer"}')
        assert answer is not None
        if 'error' in answer:
            raise DssError('the door of the S3: %s' % answer['error'])
        return answer['result']
