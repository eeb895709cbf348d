"""How full a device's tiers are: the daemon writes it, others read it.

A JSON file a device, replaced whole by rename, so that a reader sees an
old state or a new one and never a mixture. It only steers placement: a
missing or stale file makes writes go where their class says first.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Optional, Union

from swift_dss.core.pressure import Backlog, Pressure
from swift_dss.wire.jsonfields import Fields

__all__ = ('Backlog', 'Pressure', 'decode', 'encode')


def encode(pressure: Pressure) -> bytes:
    """The file's bytes."""
    return json.dumps(asdict(pressure)).encode('utf-8') + b'\n'


def decode(raw: Union[bytes, str]) -> Pressure:
    """The pressure of a file.

    :raises DamagedRecord: not one of ours
    """
    return of_fields(Fields(raw, 'pressure file'))


def of_fields(fields: Fields) -> Pressure:
    """The pressure of an object that was parsed."""
    return Pressure(
        fields.whole('ssd_bytes'), fields.whole('ssd_used_bytes'),
        fields.whole('high_bytes'), fields.whole_or_none('lowest_rank'),
        fields.flag('hdd_ready'), fields.number('at'), _backlog(fields))


def _backlog(fields: Fields) -> Optional[Backlog]:
    if fields.values.get('backlog') is None:
        return None
    inner = fields.inner('backlog')
    return Backlog(
        inner.whole('pending_bytes'), inner.whole('budget_bytes'),
        inner.whole('reserve_bytes'), inner.whole('room_bytes'),
        inner.number('drain_rate'), inner.flag('remote_up'),
        inner.number('probe_seconds'), inner.number('throttle_at'),
        inner.number('throttle_seconds'))
