"""Shared by all handlers of the filter: limits, secrets, counters."""

from __future__ import annotations

from typing import Any

from swift_dss.core.spans import ClassMap
from swift_dss.proxy import trusted
from swift_dss.proxy.accounts import AccountClasses
from swift_dss.proxy.admit.admission import Admission
from swift_dss.proxy.admit.full_devices import FullDevices
from swift_dss.proxy.replicas import Replicas
from swift_dss.proxy.settings import Settings, State
from swift_dss.proxy.trusted import Sealer
from swift_dss.proxy.uploads import Uploads
from swift_dss.proxy.wsgi import Env


class Services:
    """Built once a filter.

    :param max_spans: spans one object may have
    :param max_section_bytes: bytes of a ``.dss`` class section
    :param client_timeout: seconds a client may take to send a class
        section
    """

    def __init__(self, logger: Any, accounts: AccountClasses,
                 uploads: Uploads, max_spans: int, max_section_bytes: int,
                 client_timeout: float, admission: Admission,
                 full_devices: FullDevices, replicas: Replicas,
                 settings: Settings) -> None:
        self.logger = logger
        self.accounts = accounts
        self.uploads = uploads
        self.max_spans = max_spans
        self.max_section_bytes = max_section_bytes
        self.client_timeout = client_timeout
        self.admission = admission
        self.full_devices = full_devices
        self.replicas = replicas
        self.settings = settings
        self.sealer = Sealer()

    def count(self, counter: str) -> None:
        """One more of ``dss.<counter>``."""
        self.logger.increment('dss.' + counter)

    def strip(self, env: Env) -> None:
        """Drop headers that only we may set, and count them."""
        dropped = trusted.strip(env)
        if dropped:
            self.logger.increment('dss.dropped_headers')

    def note(self, env: Env, state: State, event: str,
             class_map: ClassMap) -> None:
        """Count a classified request and mark its access-log line.

        The mark is ``dss:25``, or ``dss:25/7`` for a map of 7 spans.
        """
        self.count('%s.%s' % (event, state.table.name_of(class_map.rest)))
        mark = 'dss:%d' % class_map.rest
        if not class_map.is_uniform:
            self.count(event + '_mixed')
            mark += '/%d' % len(class_map.spans)
        env.setdefault('swift.log_info', []).append(mark)
