"""The last error of the work on bundles, for the log and for status."""

from __future__ import annotations

from swift_dss.core.errors import DssError, RemoteUnavailable
from swift_dss.gateway.ports import Logger


class Troubles:
    """Thread-safe."""

    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        #: '' while the last bundle went well.
        self.last_error = ''

    def note(self, err: DssError) -> None:
        """A piece of work failed, and is put off."""
        self.last_error = '%s: %s' % (type(err).__name__, err)
        level = (self._logger.warning if isinstance(err, RemoteUnavailable)
                 else self._logger.error)
        level('gateway: bundles: %s', self.last_error)

    def clear(self) -> None:
        """A bundle went well."""
        self.last_error = ''
