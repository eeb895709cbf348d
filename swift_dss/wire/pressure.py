"""How full a device's tiers are: the daemon writes it, others read it.

A JSON file a device, replaced whole by rename, so that a reader sees an
old state or a new one and never a mixture. It only steers placement: a
missing or stale file makes writes go where their class says first.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from swift_dss.core.pressure import Pressure
from swift_dss.wire.jsonfields import Fields

__all__ = ('Pressure', 'decode', 'encode')


def encode(pressure: Pressure) -> bytes:
    """The file's bytes."""
    return json.dumps(asdict(pressure)).encode('utf-8') + b'\n'


def decode(raw: bytes) -> Pressure:
    """The pressure of a file.

    :raises DamagedRecord: not one of ours
    """
    fields = Fields(raw, 'pressure file')
    return Pressure(
        fields.whole('ssd_bytes'), fields.whole('ssd_used_bytes'),
        fields.whole('high_bytes'), fields.whole_or_none('lowest_rank'),
        fields.flag('hdd_ready'), fields.number('at'))
