"""Start one Swift server or daemon of a cluster: ``SWIFT_DIR NAME ...``.

Swift reads ``swift.conf`` while it is imported and its daemons have no
option for its place, so the place is set here, before anything else of
Swift is loaded. Logs go to ``$SWIFT_DSS_AIO_LOG`` instead of syslog. A
handler on the root logger keeps ``logging.basicConfig`` from being called
inside eventlet's thread pool, where it can wedge a server for good.
"""

from __future__ import annotations

import importlib
import logging
import logging.handlers
import os
import sys
import time
from typing import List, Optional, Sequence

#: Server name -> module with a ``main()``.
MODULES = {
    'proxy-server': 'swift.proxy.server',
    'account-server': 'swift.account.server',
    'container-server': 'swift.container.server',
    'object-server': 'swift.obj.server',
    'object-replicator': 'swift.obj.replicator',
    'object-reconstructor': 'swift.obj.reconstructor',
    'object-auditor': 'swift.obj.auditor',
    'object-updater': 'swift.obj.updater',
    'object-expirer': 'swift.obj.expirer',
    'object-relinker': 'swift.cli.relinker',
    'container-replicator': 'swift.container.replicator',
    'container-updater': 'swift.container.updater',
    'container-auditor': 'swift.container.auditor',
    'account-replicator': 'swift.account.replicator',
    'account-auditor': 'swift.account.auditor',
    'account-reaper': 'swift.account.reaper',
}

LOG_ENV = 'SWIFT_DSS_AIO_LOG'


def file_handler_class(base: type, path: str) -> type:
    """A stand-in for Swift's syslog handler that appends to ``path``.

    One ``write`` a line on an ``O_APPEND`` file: workers share it.
    """
    file_fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    class FileHandler(base):
        """Swift's handler, with a file where the socket was."""

        def __init__(self, *args: object, **kwargs: object) -> None:
            logging.Handler.__init__(self)

        def emit(self, record: logging.LogRecord) -> None:
            try:
                stamp = time.strftime('%Y-%m-%d %H:%M:%S',
                                      time.gmtime(record.created))
                line = '%s.%03d %s %s\n' % (
                    stamp, record.msecs, record.levelname,
                    self.format(record))
                os.write(file_fd, line.encode('utf-8', 'replace'))
            except (OSError, ValueError, TypeError):
                self.handleError(record)

        def close(self) -> None:
            logging.Handler.close(self)

    return FileHandler


def prepare(swift_dir: str) -> None:
    """Tell Swift where ``swift.conf`` is, before more of it is loaded."""
    logging.getLogger().addHandler(logging.NullHandler())
    from swift.common import utils
    utils.set_swift_dir(swift_dir)


def log_to(path: str) -> None:
    """Have Swift's loggers write to a file."""
    from swift.common.utils import logs
    logs.ThreadSafeSysLogHandler = file_handler_class(
        logs.ThreadSafeSysLogHandler, path)


def start(name: str, arguments: Sequence[str]) -> int:
    """Be a server or daemon until it ends.

    :returns: its exit code
    """
    sys.argv = [name, *arguments]
    return importlib.import_module(MODULES[name]).main() or 0


def main(argv: Optional[List[str]] = None) -> int:
    """Run a server until it ends."""
    arguments = sys.argv[1:] if argv is None else argv
    prepare(arguments[0])
    log_path = os.environ.get(LOG_ENV)
    if log_path:
        log_to(log_path)
    return start(arguments[1], arguments[2:])


if __name__ == '__main__':
    sys.exit(main())
