"""Latencies of devices and clouds, and prices of clouds. Seeded.

Where each figure is from is said beside it, and in
``doc/source/howto/replay.rst``. An operator's own figures come from a file::

   {"name": "ours",
    "get_ms": {"quantiles": [[0.5, 90], [0.9, 210], [0.99, 900]]},
    "put_ms": {"median": 120, "sigma": 0.4},
    "bytes_per_second": 60e6,
    "dollars": {"get_1000": 0.0004, "put_1000": 0.005, "gb_out": 0.09,
                "gb_in": 0}}

``get_ms`` and ``put_ms`` are until the first byte: quantiles (joined by
straight lines over the logarithm), or a median and the standard deviation
of the logarithm. Omitted figures are those of ``s3``.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterable, Tuple

from swift_dss.core.errors import BadConfig
from swift_dss.replay.traces.model import numpy

GB = 1e9
#: Random numbers that are drawn at a time.
_BATCH = 8192


@dataclass(frozen=True)
class Times:
    """A distribution of milliseconds.

    :param quantiles: (share, ms), rising; if empty, log-normal
    :param median: ms
    :param sigma: of the logarithm; 0 is always the median
    """

    median: float = 0.0
    sigma: float = 0.0
    quantiles: Tuple[Tuple[float, float], ...] = ()

    @property
    def middle(self) -> float:
        """The median, ms."""
        if not self.quantiles:
            return self.median
        shares, ms = zip(*self.quantiles)
        return float(numpy().interp(0.5, shares, ms))

    def draw(self, dice: Any, count: int) -> Any:
        """``count`` of them, as an array."""
        np = numpy()
        if not self.quantiles:
            return self.median * np.exp(
                self.sigma * dice.standard_normal(count))
        shares, ms = zip(*self.quantiles)
        return np.exp(np.interp(dice.random(count), shares, np.log(ms)))


@dataclass(frozen=True)
class Disk:
    """Time of a read or write: ``times`` and the bytes at the rate."""

    name: str
    times: Times
    bytes_per_second: float


@dataclass(frozen=True)
class Cloud:
    """An object store behind a network.

    :param bytes_per_second: of one request
    :param get_dollars, put_dollars: of one request
    :param out_dollars: of a byte that comes from it
    :param in_dollars: of a byte that goes to it
    """

    name: str
    get: Times
    put: Times
    bytes_per_second: float
    get_dollars: float = 0.0
    put_dollars: float = 0.0
    out_dollars: float = 0.0
    in_dollars: float = 0.0


#: The data sheets behind the laboratory's ``sata-ssd`` (Intel DC S4500
#: class): 110 us for 4 KiB read, 500 MB/s.
SSD = Disk('ssd', Times(0.11, 0.1), 500e6)
#: The laboratory's ``hdd``: 0.1 ms of overhead, 8.5 ms average seek, half
#: of an 8.333 ms turn on average; 129 MB/s in the middle of the platter.
#: The quantiles are those of a seek over a uniform distance plus a uniform
#: angle.
HDD = Disk('hdd', Times(quantiles=(
    (0.0, 1.2), (0.1, 7.3), (0.25, 9.8), (0.5, 12.8), (0.75, 15.7),
    (0.9, 18.2), (0.99, 21.7), (1.0, 24.4))), 129e6)

#: AWS, "Performance guidelines for Amazon S3" and "design patterns": 100
#: to 200 ms for small objects (taken as the middle 80 per cent), 85 MB/s
#: for one request. Prices: S3 Standard, us-east-1, November 2025: 0.40 and
#: 5 dollars a million GETs and PUTs, 0.09 dollars a GB to the Internet.
S3 = Cloud('s3', Times(141.4, 0.27), Times(141.4, 0.27), 85e6,
           0.4e-6, 5e-6, 0.09 / GB)
#: The cloud's latency that the percentiles of Yang et al. (MSST 2016, S3
#: behind 90 GB of cache) imply: with a miss ratio of 6 per cent, 885 and 1976
#: ms at the 95th and 99th percentile are 17 and 83 per cent of all misses;
#: log-normal through both.
S3_2016 = replace(S3, name='s3-2016', get=Times(1323.0, 0.42),
                  put=Times(1323.0, 0.42))
#: Our own assumption, for want of a published distribution: an edge near
#: by that has the object, at a third of S3's time. Prices: CloudFront, US,
#: November 2025: 1 dollar a million HTTPS requests, 0.085 dollars a GB.
CLOUDFRONT = Cloud('cloudfront', Times(45.0, 0.45), Times(141.4, 0.27),
                   85e6, 1e-6, 5e-6, 0.085 / GB)
#: No cloud: the cache is in front of the HDD of its own node.
ORIGIN_HDD = Cloud('hdd', HDD.times, HDD.times, HDD.bytes_per_second)

CLOUDS: Dict[str, Cloud] = {cloud.name: cloud for cloud in (
    S3, S3_2016, CLOUDFRONT, ORIGIN_HDD)}


class Link:
    """The link from the cloud, shared by all that comes.

    Transfers go over it one after the other, those that readers wait for
    before those that are ahead of demand.

    :param bytes_per_second: 0: there is no limit
    """

    def __init__(self, bytes_per_second: float) -> None:
        self._rate_ms = bytes_per_second / 1000.0
        #: When it is free of readers' bytes, and of all.
        self._readers_ms = self._free_ms = 0.0

    def wait_ms(self, now_ms: float, length: int, ahead: bool) -> float:
        """Until the last of ``length`` bytes that are asked for is here."""
        if not self._rate_ms:
            return 0.0
        took = length / self._rate_ms
        self._free_ms = max(now_ms, self._free_ms) + took
        if ahead:
            return self._free_ms - now_ms
        self._readers_ms = max(now_ms, self._readers_ms) + took
        return self._readers_ms - now_ms


class Lots:
    """Numbers of a distribution, one by one; the same for a seed."""

    def __init__(self, times: Times, seed: int) -> None:
        self._times = times
        self._dice = numpy().random.Generator(
            numpy().random.PCG64([seed, 77]))
        self._ready: Any = []

    def next(self) -> float:
        """Milliseconds."""
        if not self._ready:
            self._ready = self._times.draw(self._dice, _BATCH).tolist()
        lot: float = self._ready.pop()
        return lot


def cloud(name: str) -> Cloud:
    """A cloud by its name, or of a file.

    :raises BadConfig: names the field and the reason
    """
    if name in CLOUDS:
        return CLOUDS[name]
    return _parsed(name, said_in('--cloud', name, CLOUDS))


def said_in(option: str, path: str, known: Iterable[str]) -> Any:
    """The JSON of a file that an option names.

    :param known: names that the option takes besides
    :raises BadConfig: names the option, the file and the reason
    """
    try:
        with open(path, encoding='utf-8') as source:
            return json.load(source)
    except OSError as err:
        raise BadConfig('%s: %s is none of %s, and no file: %s' % (
            option, path, ', '.join(known), err.strerror)) from err
    except ValueError as err:
        raise BadConfig('%s: %s: %s' % (option, path, err)) from err


def _parsed(source: str, said: Any) -> Cloud:
    known = {'name', 'get_ms', 'put_ms', 'bytes_per_second', 'dollars'}
    if not isinstance(said, dict) or set(said) - known:
        raise BadConfig('--cloud: %s: not an object of %s' % (
            source, ', '.join(sorted(known))))
    dollars = said.get('dollars', {})
    prices = {'get_1000': ('get_dollars', 1000.0),
              'put_1000': ('put_dollars', 1000.0),
              'gb_out': ('out_dollars', GB), 'gb_in': ('in_dollars', GB)}
    if not isinstance(dollars, dict) or set(dollars) - set(prices):
        raise BadConfig('--cloud: %s: dollars: not an object of %s' % (
            source, ', '.join(prices)))
    cloud = replace(
        S3, name=str(said.get('name', source)),
        get=_times(source, 'get_ms', said.get('get_ms'), S3.get),
        put=_times(source, 'put_ms', said.get('put_ms'), S3.put),
        bytes_per_second=_number(source, 'bytes_per_second', said.get(
            'bytes_per_second', S3.bytes_per_second)) or math.inf)
    changes: Dict[str, Any] = {
        prices[key][0]: _number(source, 'dollars: ' + key, value)
        / prices[key][1] for key, value in dollars.items()}
    return replace(cloud, **changes)


def _times(source: str, field: str, said: Any, default: Times) -> Times:
    if said is None:
        return default
    if not isinstance(said, dict):
        raise BadConfig('--cloud: %s: %s: not an object' % (source, field))
    if 'quantiles' not in said:
        return Times(_number(source, field + ': median',
                             said.get('median')),
                     _number(source, field + ': sigma',
                             said.get('sigma', 0)))
    where = field + ': quantiles'
    try:
        rows = tuple((_number(source, where, share),
                      _number(source, where, ms))
                     for share, ms in said['quantiles'])
    except (TypeError, ValueError):
        rows = ()
    if len(rows) < 2 or sorted(rows) != list(rows) or rows[-1][0] > 1 or \
            rows[0][1] <= 0 or list(rows) != sorted(
                rows, key=lambda row: row[1]):
        raise BadConfig('--cloud: %s: %s: not two or more pairs [share of '
                        '0..1, ms above 0], both rising' % (source, where))
    return Times(quantiles=rows)


def _number(source: str, field: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or \
            not 0 <= value < math.inf:
        raise BadConfig('--cloud: %s: %s: %r is not a number of at least 0'
                        % (source, field, value))
    return float(value)
