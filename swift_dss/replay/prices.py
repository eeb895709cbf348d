"""Price lists: what room, requests and bytes cost, with date and source.

A list of your own is a JSON object with all of these fields; dollars, and GB
of 10^9 bytes::

   {"name": "ours", "date": "2026-03", "source": "contract 4711",
    "ssd_gb_month": 0.03, "hdd_gb_month": 0.01, "s3_gb_month": 0.021,
    "get_1000": 0.0004, "put_1000": 0.005, "gb_out": 0.05, "gb_in": 0}
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Dict

from swift_dss.core.errors import BadConfig
from swift_dss.replay.latency import GB, Cloud, said_in

MONTH_SECONDS = 30 * 86400.0


@dataclass(frozen=True)
class Prices:
    """One list; dollars.

    :param date: when the prices were valid
    :param source: whose prices they are
    :param ssd_gb_month, hdd_gb_month, s3_gb_month: of a GB kept for 30 days
    :param get_1000, put_1000: of requests to S3
    :param gb_out: of a GB read from S3, the fee of its class included
    :param gb_in: of a GB written to S3
    """

    name: str
    date: str
    source: str
    ssd_gb_month: float
    hdd_gb_month: float
    s3_gb_month: float
    get_1000: float
    put_1000: float
    gb_out: float
    gb_in: float

    def of(self, cloud: Cloud) -> Cloud:
        """A cloud as fast as ``cloud``, at these prices."""
        return replace(
            cloud, get_dollars=self.get_1000 / 1000,
            put_dollars=self.put_1000 / 1000, out_dollars=self.gb_out / GB,
            in_dollars=self.gb_in / GB)

    def room(self, tier: str, size: float) -> float:
        """Dollars a month of ``size`` bytes on ``ssd``, ``hdd`` or ``s3``."""
        price = {'ssd': self.ssd_gb_month, 'hdd': self.hdd_gb_month,
                 's3': self.s3_gb_month}[tier]
        return price * size / GB


#: List prices, us-east-1, to the Internet: the first steps of the scales.
_AWS = Prices('aws', '2025-11', 'AWS list prices, us-east-1: S3 Standard to '
              'the Internet, EBS gp3 and st1', 0.08, 0.045, 0.023, 0.0004,
              0.005, 0.09, 0.0)
PRESETS: Dict[str, Prices] = {prices.name: prices for prices in (
    _AWS,
    replace(_AWS, name='aws-ia', source='AWS list prices, us-east-1: S3 '
            'Standard-IA to the Internet with its fee for retrieval, EBS gp3 '
            'and st1', s3_gb_month=0.0125, get_1000=0.001, put_1000=0.01,
            gb_out=0.10),
    replace(_AWS, name='aws-inside', source='AWS list prices, us-east-1: S3 '
            'Standard from inside of the region, EBS gp3 and st1',
            gb_out=0.0))}
_TEXTS = ('name', 'date', 'source')


def prices(name: str) -> Prices:
    """A list by its name, or of a file.

    :raises BadConfig: names the field and the reason
    """
    if name in PRESETS:
        return PRESETS[name]
    said = said_in('--prices', name, PRESETS)
    wanted = [field.name for field in fields(Prices)]
    if not isinstance(said, dict) or set(said) != set(wanted):
        raise BadConfig('--prices: %s: not an object of %s, all of them' % (
            name, ', '.join(wanted)))
    for field in wanted:
        _check(name, field, said[field])
    return Prices(**said)


def _check(source: str, field: str, value: Any) -> None:
    if field in _TEXTS:
        if not isinstance(value, str) or not value.strip():
            raise BadConfig('--prices: %s: %s: %r is not a text'
                            % (source, field, value))
    elif isinstance(value, bool) or not isinstance(value, (int, float)) or \
            not 0 <= value < math.inf:
        raise BadConfig('--prices: %s: %s: %r is not a number of at least 0'
                        % (source, field, value))
